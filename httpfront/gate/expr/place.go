package expr

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2/lexer"
)

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
	here := newPlace(toks[:at], toks[at])
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

	operand bool // an operand ended, or could have
}

func newPlace(toks []lexer.Token, found lexer.Token) *place {
	p := &place{toks: toks, found: found}
	for i, t := range toks {
		p.operand = t.Type == symbols["Name"]
		if t.Type != symbols["Symbol"] {
			continue
		}
		switch t.Value {
		case "(", "[", "{":
			p.open = append(p.open, i)
		case ")", "]", "}":
			n := len(p.open) - 1
			opener := p.open[n]
			p.open = p.open[:n]
			p.operand = t.Value == "]" || opener > 0 && toks[opener-1].Type == symbols["Name"]
		}
	}
	return p
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
	if p.operand {
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
	case p.operand && p.found.Value == "not":
		return "; not stands before the whole comparison"
	case p.operand && name && functions[p.found.Value] != nil:
		return "; " + p.found.Value + " is a function: " + functions[p.found.Value].usage
	case name && isOperator(last) && (fields[p.found.Value] != nil || functions[p.found.Value] != nil):
		return "; only the left side may come from the request"
	case name && isOperator(last):
		return fmt.Sprintf("; strings stand in double quotes: %q", p.found.Value)
	case isOperator(p.found) && !p.operand && last.Value == ")":
		return "; parentheses stand around whole comparisons"
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
