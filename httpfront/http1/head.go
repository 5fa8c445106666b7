package http1

import (
	"bytes"
	"net/http"
)

// RawHead is a head as it arrived, split into the parts of the request line and the rest with
// its last empty line.
type RawHead struct {
	Method, Target, Protocol []byte
	Fields                   []byte
}

// Split splits a head, of which perhaps not all is there.
func Split(b []byte) (h RawHead, ok bool) {
	line, fields, _ := bytes.Cut(b, []byte("\r\n"))
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, protocol, _ := bytes.Cut(rest, []byte(" "))
	return RawHead{method, target, protocol, fields}, IsName(method) && len(target) > 0 && isVersion(protocol)
}

// isVersion reports whether b is a version of HTTP, spoken here or not.
func isVersion(b []byte) bool {
	const form = "HTTP/x.y"
	return len(b) == len(form) && string(b[:5]) == form[:5] && isDigit(b[5]) && b[6] == '.' && isDigit(b[7])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// HeadEnd returns the end of the last whole line of a head, up to the empty one behind its
// fields; from is where one line ends already.
func HeadEnd(b []byte, from int) (end int, no Refusal) {
	for end = from; ; {
		n := bytes.IndexByte(b[end:], '\n')
		if n < 0 {
			return end, Refusal{}
		}
		if n == 0 || b[end+n-1] != '\r' {
			return end, Bad("a line of the head does not end in CR LF")
		}
		if end += n + 1; n == 1 {
			return end, Refusal{}
		}
	}
}

// Refusal says why a request is not served. The zero value is none.
type Refusal struct {
	Code   int
	Reason string
	To     string // the address to ask for instead; "" for none
}

// Bad says that a request is not in order, and why.
func Bad(reason string) Refusal { return Refusal{Code: http.StatusBadRequest, Reason: reason} }
