package httpfront

import (
	"bytes"
	"strconv"
)

// appendHead appends the head that the origin is sent. It is written anew from
// what the guard understood: fields that concern one connection are left out,
// and so are those that the client may not speak to the origin with.
//
// The Host field is the client's own, so that the origin builds links to the
// name that visitors see.
func (r *request) appendHead(dst []byte, t target) []byte {
	dst = append(dst, r.method...)
	dst = append(dst, ' ')
	dst = append(dst, r.target...)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	if len(r.hostField) > 0 {
		dst = append(dst, r.hostField...)
	} else {
		dst = append(dst, t.host...)
	}
	dst = append(dst, "\r\n"...)
	for _, f := range r.fields {
		switch {
		case isFraming(f.name), isHop(f.name), isForwarding(f.name), r.isConnectionOption(f.name), isNamed(f.name, r.proofName):
		case equalFold(f.name, "cookie"):
			dst = appendForeignCookies(dst, f.value)
		default:
			dst = appendField(dst, f.name, f.value)
		}
	}
	switch {
	case r.length == lengthChunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	case r.length >= 0:
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, r.length, 10)
		dst = append(dst, "\r\n"...)
	}
	if r.upgrade {
		dst = append(dst, "Connection: Upgrade\r\nUpgrade: websocket\r\n"...)
	}
	dst = r.appendForwarding(dst)
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
		return equalFold(name, "trailer") || equalFold(name, "upgrade")
	case 10:
		return equalFold(name, "connection") || equalFold(name, "keep-alive")
	case 14:
		return equalFold(name, "http2-settings")
	case 17:
		if equalFold(name, "transfer-encoding") {
			return true
		}
	}
	return len(name) > 6 && equalFold(name[:6], "proxy-")
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

// appendForwarding tells the origin who asks, for what, and how.
func (r *request) appendForwarding(dst []byte) []byte {
	dst = append(dst, "X-Forwarded-For: "...)
	if len(r.via.chain) > 0 {
		dst = append(dst, r.via.chain...)
		dst = append(dst, ", "...)
	}
	dst = r.peer.AppendTo(dst)
	dst = append(dst, "\r\nX-Real-IP: "...)
	dst = r.via.client.AppendTo(dst)
	dst = append(dst, "\r\nX-Forwarded-Proto: "...)
	dst = append(dst, r.proto()...)
	dst = append(dst, "\r\nForwarded: for="...)
	if r.via.client.Is6() {
		dst = append(dst, `"[`...)
		dst = r.via.client.AppendTo(dst)
		dst = append(dst, `]"`...)
	} else {
		dst = r.via.client.AppendTo(dst)
	}
	dst = append(dst, ";proto="...)
	dst = append(dst, r.proto()...)
	host := r.via.host
	if host == "" {
		host = string(r.hostField)
	}
	if host != "" {
		dst = append(dst, `;host="`...)
		dst = append(dst, host...) // was checked: no quotes in it
		dst = append(dst, "\"\r\nX-Forwarded-Host: "...)
		dst = append(dst, host...)
	}
	return append(dst, "\r\n"...)
}

func (r *request) proto() string {
	if r.secure {
		return "https"
	}
	return "http"
}
