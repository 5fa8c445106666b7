package expr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

const (
	// MaxLength is how many characters a source may have.
	MaxLength = 4096
	// MaxDepth is how many parentheses may be open at one place of a source, those
	// of functions included.
	MaxDepth = 32
)

var symbols = tokens.Symbols()

// parse turns a source into its tree, or says where it stops to be an
// expression.
func parse(source string) (*disjunction, error) {
	for i, c := range source {
		if c == utf8.RuneError && !strings.HasPrefix(source[i:], string(utf8.RuneError)) {
			return nil, errorAt(source, i, `this is not UTF-8; write bytes as \x and two digits: "\xff"`)
		}
	}
	toks, err := scan(source)
	if err != nil {
		return nil, err
	}
	lex, err := lexer.Upgrade(&replay{toks: toks})
	if err != nil {
		return nil, err
	}
	tree, err := grammar.ParseFromLexer(lex)
	var wrong participle.Error
	if errors.As(err, &wrong) {
		return nil, unexpected(source, toks, wrong.Position().Offset)
	}
	if err != nil {
		return nil, err
	}
	tree.flatten()
	return tree, nil
}

// replay gives tokens that were read before.
type replay struct{ toks []lexer.Token }

func (r *replay) Next() (lexer.Token, error) {
	t := r.toks[0]
	if !t.EOF() {
		r.toks = r.toks[1:]
	}
	return t, nil
}

// scan splits a source into tokens, of which the last is the end. It refuses
// what nests too deeply: the parser would follow down to the end of its stack,
// which Go does not recover from.
func scan(source string) ([]lexer.Token, error) {
	lex, err := tokens.LexString("", source)
	if err != nil {
		return nil, err
	}
	toks, err := lexer.ConsumeAll(lex)
	var wrong *lexer.Error
	if errors.As(err, &wrong) {
		return nil, stray(source, wrong.Pos.Offset)
	}
	if err != nil {
		return nil, err
	}
	depth, open := 0, 0
	for i, t := range toks {
		switch {
		case t.Type == symbols["RawStart"]:
			open = i
		case t.EOF() && i > 0 && (toks[i-1].Type == symbols["RawText"] || toks[i-1].Type == symbols["RawStart"]):
			begin := toks[open]
			return nil, errorAt(source, begin.Pos.Offset, "this string is not closed; it ends at %s", `"`+strings.Trim(begin.Value, `r"`))
		case t.Type != symbols["Symbol"]:
		case t.Value == "(":
			if depth++; depth > MaxDepth {
				return nil, errorAt(source, t.Pos.Offset, "too many open parentheses; %d are allowed", MaxDepth)
			}
		case t.Value == ")":
			depth--
		}
	}
	return toks, nil
}

// stray says what is wrong with a character that no token begins with.
func stray(source string, offset int) *Error {
	c, _ := utf8.DecodeRuneInString(source[offset:])
	hint := ""
	switch c {
	case '"':
		return errorAt(source, offset, `this string is not closed; it ends at ", and a " within it is written \"`)
	case '\'', '`', '“', '”', '„', '«', '»':
		hint = `; strings stand in straight double quotes: "text"`
	case '=':
		hint = "; equality is written == or eq"
	case '&':
		hint = "; both of two is written && or and"
	case '|':
		hint = "; one of two is written || or or"
	case '^':
		hint = "; just one of two is written ^^ or xor"
	case '/':
		hint = `; paths and regular expressions are strings: "/text"`
	case '#':
		hint = "; there are no comments"
	case '.':
		hint = "; a range is written with two dots and nothing around them: 1..5"
	}
	return errorAt(source, offset, "found %q, which nothing begins with%s", string(c), hint)
}

// unexpected says what was found at offset, where the grammar does not go on,
// and what may stand there.
func unexpected(source string, toks []lexer.Token, offset int) *Error {
	at := 0
	for !toks[at].EOF() && toks[at].Pos.Offset < offset {
		at++
	}
	here := place{toks: toks[:at], found: toks[at]}
	for i, t := range here.toks {
		if t.Type != symbols["Symbol"] {
			continue
		}
		switch t.Value {
		case "(", "[", "{":
			here.open = append(here.open, i)
		case ")", "]", "}":
			here.open = here.open[:max(len(here.open)-1, 0)]
		}
	}
	if n := len(here.open); n > 0 && here.found.EOF() {
		opener := toks[here.open[n-1]]
		from := errorAt(source, opener.Pos.Offset, "")
		return errorAt(source, offset, "found the end, want %s; the %s of line %d, column %d is not closed", here.want(), opener.Value, from.Line, from.Column)
	}
	return errorAt(source, offset, "found %s, want %s%s", here.describe(), here.want(), here.hint())
}

// place is where a source stops to be an expression.
type place struct {
	toks  []lexer.Token // what came before
	found lexer.Token
	open  []int // brackets among toks that are not closed
}

func (p *place) describe() string {
	switch {
	case p.found.EOF() && len(p.toks) == 0:
		return "nothing"
	case p.found.EOF():
		return "the end"
	case p.found.Type == symbols["String"] || p.found.Type == symbols["RawStart"]:
		return "a string"
	}
	return strconv.Quote(p.found.Value)
}

// last returns the token before the one that was found; its value is "" at the
// beginning.
func (p *place) last() lexer.Token {
	if len(p.toks) == 0 {
		return lexer.Token{}
	}
	return p.toks[len(p.toks)-1]
}

// bracket returns the innermost open bracket, or "", and whether it is that of
// arguments; any and all, which take an expression, are as good as a group.
func (p *place) bracket() (b string, arguments bool) {
	if len(p.open) == 0 {
		return "", false
	}
	i := p.open[len(p.open)-1]
	if i == 0 || p.toks[i].Value != "(" || p.toks[i-1].Type != symbols["Name"] {
		return p.toks[i].Value, false
	}
	f := functions[p.toks[i-1].Value]
	return "(", f == nil || f.call != nil
}

// term is what a comparison begins with, and what stands between and and or.
const term = `a field, a function, "not" or "("`

// want says what may come next.
func (p *place) want() string {
	bracket, arguments := p.bracket()
	last := p.last()
	switch last.Value {
	case "", "and", "&&", "or", "||", "xor", "^^", "not", "!":
		return term
	case "(", ",":
		if arguments {
			return "an argument: a field, a function, or a string"
		}
		return term
	case "[":
		return `a name in quotes, a number from 0, or *`
	case "..":
		return "the end of the range"
	case "in":
		return "a set in braces or a $list"
	case "strict":
		return `"wildcard"`
	}
	switch {
	case isOperator(last):
		return "a value: a string, a number, an address, true or false"
	case bracket == "[":
		return `"]"`
	case bracket == "{":
		return `another element or "}"`
	case arguments:
		return `"," or ")"`
	case last.Type == symbols["Name"] && functions[last.Value] != nil:
		return `"(" and the arguments of ` + last.Value
	}
	end := "the end"
	if bracket == "(" {
		end = `")"`
	}
	if last.Type == symbols["Name"] || last.Value == "]" {
		return `an operator ("eq", "in", "and", "or", …) or ` + end
	}
	return `"and", "or", "xor" or ` + end
}

// hint tells what helps with mistakes that are made often.
func (p *place) hint() string {
	bracket, _ := p.bracket()
	last := p.last()
	name := p.found.Type == symbols["Name"]
	lower := strings.ToLower(p.found.Value)
	switch {
	case name && isKeyword(lower):
		return "; operators are in lower case: " + lower
	case name && functions[p.found.Value] != nil && (last.Type == symbols["Name"] || last.Value == "]"):
		return fmt.Sprintf(`; %s is a function: %[1]s(%s, "text")`, p.found.Value, last.Value)
	case name && isOperator(last) && (fields[p.found.Value] != nil || functions[p.found.Value] != nil):
		return "; only the left side may come from the request"
	case name && isOperator(last):
		return fmt.Sprintf("; strings stand in double quotes: %q", p.found.Value)
	case p.found.Value == "," && bracket == "{":
		return "; elements are separated by spaces"
	case p.found.Value == ")" && bracket == "":
		return "; no ( is open"
	case isLiteral(p.found) && p.want() == term:
		return "; a comparison begins with the field"
	}
	return ""
}

func isKeyword(word string) bool {
	switch word {
	case "and", "or", "xor", "not", "strict", "true", "false":
		return true
	}
	_, known := operators[word]
	return known
}

func isLiteral(t lexer.Token) bool {
	switch t.Type {
	case symbols["String"], symbols["RawStart"], symbols["Number"], symbols["Address"]:
		return true
	}
	return false
}

func isOperator(t lexer.Token) bool {
	_, known := operators[t.Value]
	return known && (t.Type == symbols["Keyword"] || t.Type == symbols["Symbol"])
}
