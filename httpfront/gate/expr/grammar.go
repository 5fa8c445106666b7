package expr

import (
	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// tokens are the words of the language. The first rule that fits wins, so an
// address comes before the number and the name that it may begin with. Tokens of
// names that begin in lower case are left out.
//
// A raw string ends at a quote with as many # behind it as it began with, which
// takes a state of the lexer of its own.
var tokens = lexer.MustStateful(lexer.Rules{
	"Root": {
		{Name: "space", Pattern: `[ \t\r\n]+`},
		{Name: "RawStart", Pattern: `r(#*)"`, Action: lexer.Push("Raw")},
		{Name: "String", Pattern: `"(?s:[^"\\]|\\.)*"`},
		{Name: "Address", Pattern: `(?:[0-9A-Fa-f]*:[0-9A-Fa-f:]*(?:\.[0-9]+)*|[0-9]+(?:\.[0-9]+)+)(?:/[0-9]+)?`},
		{Name: "Number", Pattern: `-?[0-9]+`},
		{Name: "Keyword", Pattern: `(?:and|or|xor|not|eq|ne|lt|le|gt|ge|contains|matches|in|strict|wildcard|true|false)\b`},
		{Name: "Name", Pattern: `[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*`},
		{Name: "List", Pattern: `\$[A-Za-z0-9_.]*`},
		{Name: "Symbol", Pattern: `==|!=|<=|>=|&&|\|\||\^\^|\.\.|[<>~!(){}\[\],*]`},
	},
	"Raw": {
		{Name: "RawEnd", Pattern: `"\1`, Action: lexer.Pop()},
		{Name: "RawText", Pattern: `[^"]+|"`},
	},
})

// grammar always knows from the next token where it is. So the parser never has
// to go back, which keeps its time in proportion to the source and its errors
// where they belong.
var grammar = participle.MustBuild[disjunction](participle.Lexer(tokens), participle.UseLookahead(0))

// The levels bind tighter from top to bottom: or, xor, and, not. They are what the parser needs;
// all else goes by the condition that they come to.
type (
	disjunction struct {
		Terms []*exclusion `parser:"@@ (('or' | '||') @@)*"`
	}
	exclusion struct {
		Terms []*conjunction `parser:"@@ (('xor' | '^^') @@)*"`
	}
	conjunction struct {
		Terms []*negation `parser:"@@ (('and' | '&&') @@)*"`
	}
	negation struct {
		Pos        lexer.Position
		Nots       []string     `parser:"@('not' | '!')*"`
		Group      *disjunction `parser:"( '(' @@ ')'"`
		Truth      string       `parser:"| @('true' | 'false')"`
		Comparison *comparison  `parser:"| @@ )"`
	}
)

// comparison is an operand alone where that is true or false by itself.
type comparison struct {
	Left     *operand  `parser:"@@"`
	Operator *operator `parser:"( @@"`
	Right    *value    `parser:"  @@ )?"`
}

type operator struct {
	Pos  lexer.Position
	Word string `parser:"@('eq' | '==' | 'ne' | '!=' | 'lt' | '<' | 'le' | '<=' | 'gt' | '>' | 'ge' | '>=' | 'contains' | 'matches' | '~' | 'in' | 'wildcard') | @'strict' @'wildcard'"`
}

// operand is a field, an element of one, or what a function makes of them.
type operand struct {
	Pos   lexer.Position
	Name  string   `parser:"@Name"`
	Call  *call    `parser:"@@?"`
	Index []*index `parser:"@@*"`
}

type call struct {
	Arguments []*argument `parser:"'(' (@@ (',' @@)*)? ')'"`
}

// argument may be a whole expression, of which any and all make use.
type argument struct {
	Pos        lexer.Position
	Literal    *literal     `parser:"@@"`
	Expression *disjunction `parser:"| @@"`

	condition *condition // what Expression comes to
}

type index struct {
	Pos   lexer.Position
	Text  *quoted `parser:"'[' ( @@"`
	Place string  `parser:"| @Number"`
	Each  bool    `parser:"| @'*' ) ']'"`
}

type value struct {
	Pos     lexer.Position
	List    string   `parser:"@List"`
	Set     *set     `parser:"| @@"`
	Truth   string   `parser:"| @('true' | 'false')"`
	Literal *literal `parser:"| @@"`
}

type set struct {
	Items []*item `parser:"'{' @@* '}'"`
}

// item is one literal or a range of two.
type item struct {
	From *literal `parser:"@@"`
	To   *literal `parser:"('..' @@)?"`
}

type literal struct {
	Pos     lexer.Position
	Text    *quoted `parser:"@@"`
	Address string  `parser:"| @Address"`
	Number  string  `parser:"| @Number"`
}

// quoted is a string as it stands in the source.
type quoted struct {
	Pos     lexer.Position
	Escaped string `parser:"@String"` // quotes included
	Raw     *raw   `parser:"| @@"`
}

type raw struct {
	Text string `parser:"RawStart @RawText* RawEnd"`
}
