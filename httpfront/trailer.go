package httpfront

import (
	"encoding/binary"
	"slices"

	"github.com/ropeline/ropeline/httpfront/forwarding"
)

// trailersMax is the longest trailer, in bytes.
const trailersMax = bufferSize

// notInTrailers are fields that say where a message goes or ends, who asks, or
// how it is to be read, cached and stored. They come too late in a trailer, and
// whoever merges trailers into heads would be misled (RFC 9110, 6.5.1). In
// alphabetical order, for a search.
var notInTrailers = []string{
	"accept-ranges", "age", "authentication-info", "authorization", "cache-control", "content-disposition",
	"content-encoding", "content-length", "content-location", "content-range", "content-security-policy",
	"content-type", "cookie", "date", "expect", "expires", "host", "if-match", "if-modified-since", "if-none-match",
	"if-range", "if-unmodified-since", "location", "max-forwards", "pragma", "range", "retry-after", "server",
	"set-cookie", "strict-transport-security", "user-agent", "vary", "warning", "www-authenticate",
}

// isTrailer reports whether a field of this name, which has the characters of a
// name, is passed on in a trailer.
func isTrailer(name []byte) bool {
	var buf [32]byte
	lower := buf[:0]
	if len(name) <= len(buf) { // longer than all in the list
		for _, c := range name {
			lower = append(lower, lowerByte(c))
		}
	}
	_, no := slices.BinarySearch(notInTrailers, string(lower))
	return !no && !isHop(name) && !forwarding.Is(name) && !isCommand(name)
}

// appendTrailerNames appends the names that are passed on of those which the origin announces, as
// a list.
func (h *originHead) appendTrailerNames(dst []byte) []byte {
	for i := range h.fields {
		if f := &h.fields[i]; equalFold(f.name, "trailer") {
			for name := range elements(f.value) {
				if isName(name) && isTrailer(name) {
					dst = appendElement(dst, name)
				}
			}
		}
	}
	return dst
}

// appendTrailerNames appends a Trailer field with those names of the client's own
// that are passed on, if there are any.
func (r *request) appendTrailerNames(dst []byte) []byte {
	start := len(dst)
	for list := range r.all("trailer") {
		for name := range elements(list) {
			if !isName(name) || !isTrailer(name) || r.withheld.has(name) {
				continue
			}
			if len(dst) == start {
				dst = append(dst, "Trailer: "...)
			} else {
				dst = append(dst, ", "...)
			}
			dst = append(dst, name...)
		}
	}
	if len(dst) == start {
		return dst
	}
	return append(dst, "\r\n"...)
}

// appendTrailers appends the fields of a trailer that are passed on, with the
// empty line that ends it. What is withheld is not.
func appendTrailers(dst []byte, trailer []field, withheld fieldNames) []byte {
	for _, f := range trailer {
		if isTrailer(f.name) && !withheld.has(f.name) {
			dst = appendField(dst, f.name, f.value)
		}
	}
	return append(dst, "\r\n"...)
}

// isName reports whether b may be the name of a field.
func isName(b []byte) bool {
	for _, c := range b {
		if !isToken(c) {
			return false
		}
	}
	return len(b) > 0
}

// isValue reports whether b may be the value of a field.
func isValue(b []byte) bool {
	for len(b) >= 8 && !hasControl(binary.LittleEndian.Uint64(b)) {
		b = b[8:] // most of most values, and cookies are long
	}
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// hasControl reports whether one of eight bytes is a control character, a tab being one: below
// a space, or DEL. The terms are hasless and haszero of S. E. Anderson's Bit Twiddling Hacks;
// that either finds too much is possible only where it also finds what is there.
func hasControl(w uint64) bool {
	const each = 0x0101010101010101
	below := (w - each*' ') &^ w
	del := w ^ each*0x7f
	del = (del - each) &^ del
	return (below|del)&(each*0x80) != 0
}
