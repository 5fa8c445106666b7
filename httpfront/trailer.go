package httpfront

import (
	"slices"

	"github.com/ropeline/ropeline/httpfront/forwarding"
	"github.com/ropeline/ropeline/httpfront/http1"
)

// notInTrailers are fields that say where a message goes or ends, who asks, or
// how it is to be read, cached and stored. They come too late in a trailer, and
// whoever merges trailers into heads would be misled (RFC 9110, 6.5.1).
var notInTrailers = forwarding.NewSet(slices.Concat(ownFieldNames, forwarding.Names(), []string{
	"accept-ranges", "age", "authentication-info", "authorization", "cache-control", "content-disposition",
	"content-encoding", "content-location", "content-range", "content-security-policy",
	"content-type", "cookie", "date", "expires", "if-match", "if-modified-since", "if-none-match",
	"if-range", "if-unmodified-since", "location", "max-forwards", "pragma", "range", "retry-after", "server",
	"set-cookie", "strict-transport-security", "user-agent", "vary", "warning", "www-authenticate",
})...)

// isTrailer reports whether a field of this name, which has the characters of a
// name, is passed on in a trailer.
func isTrailer(name []byte) bool { return !forwarding.Has(notInTrailers, name) && !isCommand(name) }

// appendAnnounced appends the names of trailers that are passed on of those which the origin announces, as
// a list.
func appendAnnounced(dst []byte, h *http1.Response) []byte {
	for i := range h.Fields {
		if f := &h.Fields[i]; http1.EqualFold(f.Name, "trailer") {
			for name := range http1.Elements(f.Value) {
				if http1.IsName(name) && isTrailer(name) {
					if len(dst) > 0 {
						dst = append(dst, ',')
					}
					dst = append(dst, name...)
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
	for list := range r.All("trailer") {
		for name := range http1.Elements(list) {
			if !http1.IsName(name) || !isTrailer(name) || r.withheld.has(name) {
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
func appendTrailers(dst []byte, trailer []http1.Field, withheld fieldNames) []byte {
	for _, f := range trailer {
		if isTrailer(f.Name) && !withheld.has(f.Name) {
			dst = http1.AppendField(dst, f.Name, f.Value)
		}
	}
	return append(dst, "\r\n"...)
}
