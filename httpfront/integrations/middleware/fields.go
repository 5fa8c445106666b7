package middleware

import (
	"maps"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/ropeline/ropeline/httpfront/forwarding"
)

// fields returns what a node is sent: all fields of the visitor but those of the
// connection, and what the visitor cannot say.
func (g *Gate) fields(q Question) http.Header {
	h := q.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	removeHops(h)
	h.Del("Content-Length")
	h.Del("Expect")
	h.Del(g.cfg.ProofField)
	if !g.cfg.TrustForwarded {
		h.Del(g.cfg.CountryHeader)
	}
	maps.DeleteFunc(h, func(name string, _ []string) bool {
		return strings.HasPrefix(name, "X-Forwarded-") || name == "Forwarded"
	})
	if q.Body {
		h.Del("Access-Control-Request-Method")
	}
	h.Set("X-Forwarded-Method", q.Method)
	h.Set("X-Forwarded-Uri", q.Target)
	h.Set("X-Forwarded-Host", q.Host)
	h.Set("X-Forwarded-Proto", q.Scheme)
	h.Set("X-Forwarded-For", q.For)
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = nil // or net/http would say one of its own
	}
	return h
}

// removeHops takes out what is about one connection only (RFC 9110, section 7.6.1).
func removeHops(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		h.Del(name)
	}
}

// RemoveForwarding takes out of h all fields that tell a site where a request came from or where
// it goes, for programs that pass requests on: what visitors send in them is not to be believed.
func RemoveForwarding(h http.Header) {
	maps.DeleteFunc(h, func(name string, _ []string) bool {
		return forwarding.Is(name) && !strings.HasPrefix(name, "Ropeline-")
	})
}

// fieldsMax is how many bytes of fields a question may have, less than a node takes, and
// lineMax what each field counts for besides its name and its value.
const (
	fieldsMax = 64 << 10
	lineMax   = len(": \r\n")
)

// unfit returns the code for requests about which no node can be asked; 0 if it can. A
// node would refuse the question, or net/http would not send it, which must not be taken
// for a node that is down.
func unfit(h http.Header) int {
	size := 0
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) {
			return http.StatusBadRequest
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return http.StatusBadRequest
			}
			size += len(name) + len(v) + lineMax
		}
	}
	if size > fieldsMax {
		return http.StatusRequestHeaderFieldsTooLarge
	}
	return 0
}

// refusal is for requests that are not in order.
func refusal(code int) Verdict {
	return Verdict{
		Code: code,
		Header: http.Header{
			"Content-Type":  {"text/plain; charset=utf-8"},
			"Cache-Control": {"no-store"},
			stateField:      {stateRefused},
		},
		Body: []byte(http.StatusText(code) + "\n"),
	}
}
