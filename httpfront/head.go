package httpfront

import (
	"bytes"
	"strconv"

	"github.com/ropeline/ropeline/httpfront/forwarding"
)

// appendHead appends the head that the origin is sent. It is written anew from
// what the guard understood: fields that concern one connection are left out,
// and so are those that the client may not speak to the origin with.
//
// The Host field is the client's own, so that the origin builds links to the
// name that visitors see.
//
// host is for requests that have none; self is what the node calls itself to find
// out whether a request comes back.
func (r *request) appendHead(dst []byte, host, self string) []byte {
	dst = append(dst, r.method...)
	dst = append(dst, ' ')
	dst = append(dst, r.target...)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	if len(r.hostField) > 0 {
		dst = append(dst, r.hostField...)
	} else {
		dst = append(dst, host...)
	}
	dst = append(dst, "\r\n"...)
	for _, f := range r.fields {
		switch {
		case isFraming(f.name), isHop(f.name), forwarding.Is(f.name) && !r.mayForward(f.name), isLookalike(f.name), r.isConnectionOption(f.name):
		case isNamed(f.name, r.proofName), r.told.has(f.name) && !r.mayTell(f.name), !r.mayTrace(f.name):
		case equalFold(f.name, "cookie"):
			dst = appendForeignCookies(dst, f.value)
		default:
			dst = appendField(dst, f.name, f.value)
		}
	}
	switch {
	case r.length == lengthChunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
		dst = r.appendTrailerNames(dst)
	case r.length >= 0:
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, r.length, 10)
		dst = append(dst, "\r\n"...)
	}
	switch {
	case r.upgrade:
		dst = append(dst, "Connection: Upgrade\r\nUpgrade: websocket\r\n"...)
	case r.trailers:
		dst = append(dst, "TE: trailers\r\nConnection: TE\r\n"...)
	}
	dst = r.appendForwarding(dst)
	dst = r.appendLoop(dst, self)
	dst = r.appendTrace(dst)
	dst = r.appendProof(dst)
	return append(dst, "\r\n"...)
}

// appendProof tells the origin that the visitor was let in, if there is a proof of it.
func (r *request) appendProof(dst []byte) []byte {
	if r.proof == "" {
		return dst
	}
	return appendField(dst, r.proofName, r.proof)
}

// isNamed reports whether a field has a name, in any case, and with underscores for
// dashes, which many origins cannot tell apart.
func isNamed(field []byte, name string) bool {
	if len(field) != len(name) || name == "" {
		return false
	}
	for i, c := range field {
		if c == '_' {
			c = '-'
		}
		d := name[i]
		if d == '_' {
			d = '-'
		}
		if lowerByte(c) != lowerByte(d) {
			return false
		}
	}
	return true
}

// fieldNames are names of fields; "" is none.
type fieldNames []string

// has reports whether a field has one of the names, as isNamed.
func (n fieldNames) has(field []byte) bool {
	for _, name := range n {
		if isNamed(field, name) {
			return true
		}
	}
	return false
}

// isFieldName reports whether a field of that name may be added to requests.
func isFieldName(name string) bool {
	b := []byte(name)
	for _, c := range b {
		if !isToken(c) {
			return false
		}
	}
	return len(b) > 0 && !isFraming(b) && !isHop(b) && !equalFold(b, "cookie")
}

func appendField[T []byte | string](dst []byte, name, value T) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// isFraming reports whether appendHead writes this field by itself.
func isFraming(name []byte) bool {
	return equalFold(name, "host") || equalFold(name, "content-length") || equalFold(name, "expect")
}

// isHop reports whether a field concerns one connection only.
func isHop(name []byte) bool {
	switch len(name) {
	case 2:
		return equalFold(name, "te")
	case 7:
		if equalFold(name, "trailer") || equalFold(name, "upgrade") {
			return true
		}
	case 10:
		if equalFold(name, "connection") || equalFold(name, "keep-alive") {
			return true
		}
	case 14:
		if equalFold(name, "http2-settings") {
			return true
		}
	case 17:
		if equalFold(name, "transfer-encoding") {
			return true
		}
	}
	return len(name) >= 6 && equalFold(name[:6], "proxy-")
}

// isLookalike reports whether a name would be one of those that say where a
// message ends, or what becomes of the connection, if its underscores were
// dashes. Many origins cannot tell the two apart.
func isLookalike(name []byte) bool {
	var buf [20]byte // the longest has 17
	if len(name) > len(buf) || bytes.IndexByte(name, '_') < 0 {
		return false
	}
	dashes := append(buf[:0], name...)
	for i, c := range dashes {
		if c == '_' {
			dashes[i] = '-'
		}
	}
	return isFraming(dashes) || isHop(dashes)
}

// isConnectionOption reports whether the client named the field in Connection,
// which makes it one that concerns one connection only.
func (r *request) isConnectionOption(name []byte) bool {
	for v := range r.all("connection") {
		for e := range elements(v) {
			if bytes.EqualFold(e, name) {
				return true
			}
		}
	}
	return false
}
