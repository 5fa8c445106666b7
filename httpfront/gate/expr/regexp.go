package expr

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// maxSteps bounds the steps of all regular expressions of an expression together, with
// their repetitions written out. Matching takes up to that many for each byte of a value
// that a visitor chose, and a short source can ask for millions.
const maxSteps = 2000

// pattern compiles the right side of matches. In a quoted string the escapes are
// those of regular expressions, so that \. needs no second backslash; there too
// \" is a quote.
func (c *checker) pattern(q *quoted) (*regexp.Regexp, error) {
	source := patternSource(q)
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, c.errorf(q.Pos.Offset, "this regular expression is wrong: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	n := steps(parsed)
	if n > maxSteps {
		return nil, c.errorf(q.Pos.Offset, "this regular expression has %d steps with its repetitions written out; %d are allowed", n, maxSteps)
	}
	if c.steps += n; c.steps > maxSteps {
		return nil, c.errorf(q.Pos.Offset, "the regular expressions up to this one have %d steps together with their repetitions written out; %d are allowed", c.steps, maxSteps)
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
