package expr

import "strings"

// wildcard is a pattern in which * stands for any bytes, cut at each *. A value
// matches if it is the parts in their order with anything between them.
type wildcard []string

// parseWildcard cuts a pattern. The problem is "" if there is none.
func parseWildcard(pattern string) (w wildcard, problem string) {
	var part []byte
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*' && len(part) == 0 && len(w) > 0:
			return nil, "two * in a row mean no more than one"
		case c == '*':
			w = append(w, string(part))
			part = nil
		case c != '\\':
			part = append(part, c)
		case i+1 < len(pattern) && (pattern[i+1] == '*' || pattern[i+1] == '\\'):
			i++
			part = append(part, pattern[i])
		default:
			return nil, `a \ stands only before * and another \; in quotes it is doubled: "\\*" or r"\*" is a *`
		}
	}
	return append(w, string(part)), ""
}

// match takes each part where it first occurs, which leaves the most for those
// behind it, so it never has to go back.
func (w wildcard) match(s string) bool {
	s, ok := strings.CutPrefix(s, w[0])
	if len(w) == 1 {
		return ok && s == ""
	}
	if !ok {
		return false
	}
	last := len(w) - 1
	for _, part := range w[1:last] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, w[last])
}
