package expr

import "net/netip"

// Request is what expressions see of a request. The zero value is a request
// about which nothing is known, from nowhere.
//
// A *Request that is given to Match counts as shared: kept in a variable of its
// own it is allocated anew for each request. Keep it in something that is used
// again.
type Request struct {
	Method  string // in upper case: GET
	Version string // of the protocol: HTTP/1.1
	Host    string // in lower case, without port and trailing dot

	// Path is decoded once, without dot segments and doubled slashes. Where it is
	// another reading than the one that finds a room, a visitor can write a path
	// that is around the room for a rule and in the room for the site.
	Path string

	Query   string     // what follows the first question mark, as sent
	Secure  bool       // the visitor's side is TLS
	Source  netip.Addr // who asks; not the last proxy, if that one is trusted
	Country string     // of Source, two letters in upper case; "" where nobody told

	Headers Headers // nil: none

	Response Response // to the request, once there is one
}

// Response is what expressions see of the answer to a request. The zero value is one that
// has not come.
type Response struct {
	Code    int
	Headers Headers // nil: none
}

// Headers are the header fields of a request.
type Headers interface {
	// Header returns field i, counted from 0 in the order in which they were sent,
	// and reports whether there are that many. The strings have to stay as they are
	// until Match returns.
	Header(i int) (name, value string, ok bool)
}

// Pairs are header fields in a slice: name, value.
type Pairs [][2]string

// Header returns pair i.
func (p Pairs) Header(i int) (name, value string, ok bool) {
	if i >= len(p) {
		return "", "", false
	}
	return p[i][0], p[i][1], true
}
