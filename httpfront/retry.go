package httpfront

import (
	"errors"

	"github.com/ropeline/ropeline/httpfront/relay"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// delivery is how far a request got that was not answered.
type delivery int

const (
	// delivered: the origin may have acted on it, or it failed for a reason that
	// another try will not change.
	delivered delivery = iota
	// undelivered: there was no connection, so nothing of it was sent.
	undelivered
	// unheard: it was sent on a connection that had served other requests, and
	// that was closed before a byte of an answer came. Nearly always the origin
	// closed it for being idle while the request was on its way; it is not known
	// that it did.
	unheard
)

// mayRepeat reports whether a request may be sent once more. others says whether
// there is an origin that it has not been to.
//
// What was never sent may go to another origin, whatever it is. What was sent
// may be repeated only if doing it twice is the same as doing it once (RFC 9110,
// 9.2.2) and if its body, which is passed on and not kept, is not gone. A time
// out is no reason: the origin may still be at it, and would be given the same
// work again.
func (r *request) mayRepeat(d delivery, others bool) bool {
	switch d {
	case undelivered:
		return others
	case unheard:
		return isIdempotent(r.Method) && !r.HasBody()
	}
	return false
}

// isIdempotent reports whether a method is idempotent by its definition, in RFC
// 9110 or for those of WebDAV in the registry of methods. Those that are left
// out may be or not be.
func isIdempotent(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PROPFIND", "REPORT", "SEARCH":
		return true
	}
	return false
}

// deliveryOf says how far a request got that failed with err. conn is nil if
// there was no connection.
func deliveryOf(conn *upstream.Conn, err error) delivery {
	if conn == nil {
		if _, ok := errors.AsType[*upstream.DialError](err); ok {
			return undelivered
		}
		return delivered
	}
	if _, ok := errors.AsType[*relay.ClientError](err); !ok && conn.Reused() && !conn.Received() && !isTimeout(err) {
		return unheard
	}
	return delivered
}
