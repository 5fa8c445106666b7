package expr

import (
	"fmt"
	"strconv"
	"strings"

	"go4.org/netipx"
)

// constant is a literal that was read: an address is a range of one, and a
// network one of several.
type constant struct {
	kind    kind
	text    string
	number  int64
	address netipx.IPRange
}

func (c *checker) constant(l *literal) (constant, error) {
	at := l.Pos.Offset
	switch {
	case l.Text != nil:
		s, err := c.unquote(l.Text)
		return constant{kind: text, text: s}, err
	case l.Address != "":
		r, problem := addressRange(l.Address)
		if problem != "" {
			return constant{}, c.errorf(at, "%s: %s", l.Address, problem)
		}
		return constant{kind: address, address: r}, nil
	}
	n, err := strconv.ParseInt(l.Number, 10, 64)
	if err != nil {
		return constant{}, c.errorf(at, "%s does not fit into 64 bits", l.Number)
	}
	return constant{kind: number, number: n}, nil
}

// unquote returns what a string of the source stands for.
func (c *checker) unquote(q *quoted) (string, error) {
	if q.Raw != nil {
		return q.Raw.Text, nil
	}
	s, wrong := unescape(q.Escaped[1 : len(q.Escaped)-1])
	if wrong >= 0 {
		return "", c.errorf(q.Pos.Offset+1+wrong, `there is no such escape; there are \", \\, \x and two digits of base 16, and \ and three of base 8; r"…" has none`)
	}
	return s, nil
}

// unescape resolves the escapes of a quoted string. wrong is the place of the
// first that is none, or negative.
func unescape(s string) (out string, wrong int) {
	if !strings.Contains(s, `\`) {
		return s, -1
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		digits, base := "", 0
		switch next := s[i+1]; { // a \ never is the last byte: it would escape the quote
		case next == '"' || next == '\\':
			b.WriteByte(next)
			i++
			continue
		case next == 'x' && i+4 <= len(s):
			digits, base = s[i+2:i+4], 16
			i += 3
		case '0' <= next && next <= '7' && i+4 <= len(s):
			digits, base = s[i+1:i+4], 8
			i += 3
		default:
			return "", i
		}
		v, err := strconv.ParseUint(digits, base, 8)
		if err != nil {
			return "", i - 3
		}
		b.WriteByte(byte(v))
	}
	return b.String(), -1
}

// quote returns s as it may stand in a source.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c == '\uFFFD' && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// quoteRaw returns s as a raw string, between as many # as it takes.
func quoteRaw(s string) string {
	fence := ""
	for strings.Contains(s, `"`+fence) {
		fence += "#"
	}
	return "r" + fence + `"` + s + `"` + fence
}
