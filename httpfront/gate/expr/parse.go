package expr

import (
	"errors"
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

// parse turns a source into a condition, or says where it stops to be an
// expression.
func parse(source string) (*condition, error) {
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
	return tree.condition(), nil
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
