package expr

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// pattern compiles the right side of matches. In a quoted string the escapes are
// those of regular expressions, so that \. needs no second backslash; there too
// \" is a quote.
func (c *checker) pattern(q *quoted, of length) (*regexp.Regexp, error) {
	source := patternSource(q)
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, c.errorf(q.Pos.Offset, "this regular expression is wrong: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	n := steps(parsed)
	if n > maxSteps {
		return nil, c.errorf(q.Pos.Offset, "this regular expression has %d steps with its repetitions written out; %d are allowed", n, maxSteps)
	}
	if err := c.spend(q.Pos.Offset, n, of); err != nil {
		return nil, err
	}
	return regexp.Compile(source)
}

func patternSource(q *quoted) string {
	if q.Raw != nil {
		return q.Raw.Text
	}
	return q.Escaped[1 : len(q.Escaped)-1]
}

// steps estimates how large a regular expression becomes once it is compiled. It
// stops to count a little beyond the bound.
func steps(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		if n += steps(sub); n > maxSteps {
			break
		}
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}
