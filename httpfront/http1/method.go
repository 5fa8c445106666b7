package http1

import "net/http"

// methodMax is the longest method. The longest that is registered has 17.
const methodMax = 32

// MethodRule says in words what IsMethod takes.
const MethodRule = "want up to 32 upper-case letters, digits, \"-\" or \"_\", and not CONNECT, TRACE or TRACK"

// IsMethod reports whether requests with that method can be served.
func IsMethod(s string) bool { return methodOf([]byte(s)) != "" }

// UnknownMethod is why a method is refused.
var UnknownMethod = Refusal{Code: http.StatusNotImplemented, Reason: "this method is not supported"}

// methodOf returns the method as a string of its own, without allocating those
// that are common, or "" if it is refused.
//
// A method may be any token (RFC 9110, 9.1). Here it has no small letters: all
// that are registered have none, methods differ by case, and origins that take
// "get" for GET would be asked for something else than was let through.
func methodOf(m []byte) string {
	switch string(m) {
	case "GET":
		return "GET"
	case "HEAD":
		return "HEAD"
	case "POST":
		return "POST"
	case "PUT":
		return "PUT"
	case "PATCH":
		return "PATCH"
	case "DELETE":
		return "DELETE"
	case "OPTIONS":
		return "OPTIONS"
	case "PROPFIND":
		return "PROPFIND"
	case "REPORT":
		return "REPORT"
	}
	if len(m) == 0 || len(m) > methodMax || OpensTunnel(string(m)) {
		return ""
	}
	for _, c := range m {
		if !('A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return ""
		}
	}
	return string(m)
}

// OpensTunnel reports whether a method is one that nobody passes on. CONNECT would make
// a tunnel of us, or of a proxy that asks us, through which more is said than was decided
// about; PRI begins a connection of HTTP/2, which is the same; TRACE and its old variant
// would show what proxies added.
func OpensTunnel(method string) bool {
	switch method {
	case "CONNECT", "TRACE", "TRACK", "PRI":
		return true
	}
	return false
}
