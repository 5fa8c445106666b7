package expr

import "strings"

// cursor is a place among the elements of an array; the zero value is before
// the first.
type cursor struct {
	header int // the next to look at
	offset int // within a string that holds several elements
}

// elements gives the elements of an array one after the other: the one at a
// cursor, and where the next one is.
type elements func(r *Request, at cursor) (v string, next cursor, ok bool)

// element returns element i, counted from 0.
func (e elements) element(r *Request, i int) (string, bool) {
	for at := (cursor{}); ; i-- {
		v, next, ok := e(r, at)
		if !ok || i == 0 {
			return v, ok
		}
		at = next
	}
}

func (e elements) count(r *Request) int64 {
	n := int64(0)
	for at := (cursor{}); ; n++ {
		_, next, ok := e(r, at)
		if !ok {
			return n
		}
		at = next
	}
}

// headersOf says whose header fields are meant: those of a request, or of the response.
type headersOf func(r *Request) Headers

func (of headersOf) at(r *Request, i int) (name, value string, ok bool) {
	h := of(r)
	if h == nil {
		return "", "", false
	}
	return h.Header(i)
}

// named returns the values of the fields of a name, which is in lower case.
func (of headersOf) named(name string) elements {
	return func(r *Request, at cursor) (string, cursor, bool) {
		for i := at.header; ; i++ {
			n, v, ok := of.at(r, i)
			if !ok {
				return "", at, false
			}
			if equalFold(n, name) {
				return v, cursor{header: i + 1}, true
			}
		}
	}
}

func (of headersOf) names(r *Request, at cursor) (string, cursor, bool) {
	name, _, ok := of.at(r, at.header)
	return name, cursor{header: at.header + 1}, ok
}

func (of headersOf) values(r *Request, at cursor) (string, cursor, bool) {
	_, value, ok := of.at(r, at.header)
	return value, cursor{header: at.header + 1}, ok
}

// headers returns the values of the fields of a request.
func headers(name string) elements { return headersOf(request).named(name) }

// cookies returns the values of the cookies of a name, in the order in which
// they were sent (RFC 6265, 4.2.1). A pair without = is no cookie.
func cookies(name string) elements {
	fields := headers("cookie")
	return func(r *Request, at cursor) (string, cursor, bool) {
		for {
			line, next, ok := fields(r, cursor{header: at.header})
			if !ok {
				return "", at, false
			}
			for at.offset < len(line) {
				pair, _, _ := strings.Cut(line[at.offset:], ";")
				at.offset += len(pair) + 1
				if n, v, ok := strings.Cut(pair, "="); ok && trim(n) == name {
					return trim(v), at, true
				}
			}
			at = next
		}
	}
}

// trim cuts off what may stand around the parts of a cookie.
func trim(s string) string { return strings.Trim(s, " \t") }

// arguments returns the values of the arguments of a name, as they stand in the
// query.
func arguments(name string) elements {
	return func(r *Request, at cursor) (string, cursor, bool) {
		for {
			n, v, next, ok := argumentAt(r.Query, at)
			if !ok || n == name {
				return v, next, ok
			}
			at = next
		}
	}
}

func argumentNames(r *Request, at cursor) (string, cursor, bool) {
	name, _, next, ok := argumentAt(r.Query, at)
	return name, next, ok
}

func argumentValues(r *Request, at cursor) (string, cursor, bool) {
	_, value, next, ok := argumentAt(r.Query, at)
	return value, next, ok
}

// argumentAt cuts the next argument out of a query. What has no = has the value
// "".
func argumentAt(query string, at cursor) (name, value string, next cursor, ok bool) {
	for at.offset < len(query) {
		pair, _, _ := strings.Cut(query[at.offset:], "&")
		at.offset += len(pair) + 1
		if pair != "" {
			name, value, _ = strings.Cut(pair, "=")
			return name, value, at, true
		}
	}
	return "", "", at, false
}

// equalFold reports whether s is lower, which is in lower case, in any case of
// its ASCII letters. Others do not fold in names of HTTP.
func equalFold(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		if lowerByte(s[i]) != lower[i] {
			return false
		}
	}
	return true
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upperByte(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}
