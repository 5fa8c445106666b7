package lang

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/feature/plural"
)

// pattern is a text with up to two places that are filled in: text[0], the
// value of hole[0], text[1], the value of hole[1], text[2]. The zero value
// stands for a form that a language does not have.
type pattern struct {
	text [3]string
	hole [2]int8 // index of the value plus 1; 0 for none
}

// parsePattern reads a text whose placeholders are among names, each at most
// once. The value for names[i] is the i-th that append is given.
func parsePattern(s string, names []string) (pattern, error) {
	var p pattern
	rest := s
	for i := 0; ; i++ {
		text, after, found := strings.Cut(rest, "{")
		p.text[i] = text
		if strings.Contains(text, "}") {
			return p, fmt.Errorf("%q has a } without a {", s)
		}
		if !found {
			return p, nil
		}
		name, after, closed := strings.Cut(after, "}")
		at := slices.Index(names, name)
		if !closed || at < 0 {
			return p, fmt.Errorf("%q has a placeholder other than {%s}", s, strings.Join(names, "} and {"))
		}
		if i >= len(p.hole) || slices.Contains(p.hole[:], int8(at+1)) {
			return p, fmt.Errorf("%q has the placeholder {%s} twice", s, name)
		}
		p.hole[i] = int8(at + 1)
		rest = after
	}
}

// holds reports whether all of n values are filled in.
func (p *pattern) holds(n int) bool {
	for i := range n {
		if !slices.Contains(p.hole[:], int8(i+1)) {
			return false
		}
	}
	return true
}

// filling is a value for a pattern: text, or a number of something.
type filling struct {
	kind fillingKind
	unit count
	n    int
	text string
}

type fillingKind uint8

const (
	aText   fillingKind = iota
	aNumber             // n
	aCount              // n of unit
	aSpan               // n minutes
)

// fill appends p with its values.
func (l *Language) fill(dst []byte, p *pattern, values ...filling) []byte {
	dst = append(dst, p.text[0]...)
	for i, h := range p.hole {
		if h == 0 {
			break
		}
		switch v := values[h-1]; v.kind {
		case aText:
			dst = append(dst, v.text...)
		case aNumber:
			dst = l.AppendNumber(dst, v.n)
		case aCount:
			dst = l.appendCount(dst, v.unit, v.n)
		case aSpan:
			dst = l.AppendMinutes(dst, v.n)
		}
		dst = append(dst, p.text[i+1]...)
	}
	return dst
}

// form returns the pattern of c for n.
func (l *Language) form(c count, n int) *pattern {
	p := &l.counts[c][plural.Cardinal.MatchPlural(l.rules, n, 0, 0, 0, 0)]
	if *p == (pattern{}) {
		return &l.counts[c][plural.Other]
	}
	return p
}

// appendCount appends n of c, such as "5 minutes".
func (l *Language) appendCount(dst []byte, c count, n int) []byte {
	return l.fill(dst, l.form(c, n), filling{kind: aNumber, n: n})
}
