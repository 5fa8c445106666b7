package httpfront

import (
	"slices"
	"strconv"

	"github.com/ropeline/ropeline/httpfront/forwarding"
	"github.com/ropeline/ropeline/httpfront/http1"
)

// appendHead appends the head that the origin is sent. It is written from
// what was understood: fields that concern one connection are left out,
// and so are those that the client may not speak to the origin with.
//
// The Host field is the client's own, so that the origin builds links to the
// name that visitors see.
//
// host is for requests that have none; self is what the node calls itself to find
// out whether a request comes back.
func (r *request) appendHead(dst []byte, host, self string) []byte {
	dst = append(dst, r.Method...)
	dst = append(dst, ' ')
	dst = append(dst, r.Target...)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	if len(r.HostField) > 0 {
		dst = append(dst, r.HostField...)
	} else {
		dst = append(dst, host...)
	}
	dst = append(dst, "\r\n"...)
	for _, f := range r.Fields {
		switch {
		case forwarding.Has(heldBack, f.Name) && !r.mayForward(f.Name), r.IsConnectionOption(f.Name):
		case isNamed(f.Name, r.proofName), r.told.has(f.Name) && !r.mayTell(f.Name), !r.mayTrace(f.Name):
		case http1.EqualFold(f.Name, "cookie"):
			dst = appendForeignCookies(dst, f.Value)
		default:
			dst = http1.AppendField(dst, f.Name, f.Value)
		}
	}
	switch {
	case r.Length == http1.LengthChunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
		dst = r.appendTrailerNames(dst)
	case r.Length >= 0:
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, r.Length, 10)
		dst = append(dst, "\r\n"...)
	}
	switch {
	case r.Upgrade:
		dst = append(dst, "Connection: Upgrade\r\nUpgrade: websocket\r\n"...)
	case r.Trailers:
		dst = append(dst, "TE: trailers\r\nConnection: TE\r\n"...)
	}
	dst = r.via.AppendFields(dst, r.HostField)
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
	return http1.AppendField(dst, r.proofName, r.proof)
}

// mayForward reports whether a field of heldBack is passed on as it came from a trusted proxy:
// what such a proxy has cut off the path, and what it is configured to tell of visitors in,
// unless that is one that we write ourselves.
func (r *request) mayForward(name []byte) bool {
	if !r.via.Trusted || forwarding.Has(ownFields, name) {
		return false
	}
	return http1.EqualFold(name, "x-forwarded-prefix") ||
		r.mayTell(name) && !http1.EqualFold(name, "x-forwarded-for") && !http1.EqualFold(name, "forwarded") && !http1.EqualFold(name, "x-real-ip")
}

// mayTell reports whether a field of r.told is passed on: it comes from a trusted proxy,
// and under the very name that those write.
func (r *request) mayTell(name []byte) bool {
	return r.via.Trusted && slices.ContainsFunc(r.told, func(told string) bool { return http1.EqualFold(name, told) })
}

// isNamed reports whether a field has a name, in any case, and with whatever is neither a letter nor a digit for
// dashes, which many origins cannot tell apart.
func isNamed(field []byte, name string) bool {
	if len(field) != len(name) || name == "" {
		return false
	}
	for i, c := range field {
		if d := name[i]; http1.LowerByte(c) != http1.LowerByte(d) && (http1.IsAlnum(c) || http1.IsAlnum(d)) {
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
	return http1.IsName(name) && !forwarding.Has(ownFields, name) && !http1.EqualFold([]byte(name), "cookie")
}

// ownFieldNames are those that appendHead writes by itself, and those that concern one connection
// only, which end there. A name with underscores for its dashes would say the same to many origins.
var ownFieldNames = []string{
	"content-length", "expect", "host",
	"connection", "http2-settings", "keep-alive", "proxy-", "te", "trailer", "transfer-encoding", "upgrade",
}

var (
	ownFields = forwarding.NewSet(ownFieldNames...)
	// heldBack are all fields that do not go on to the origin, but for what mayForward says.
	heldBack = forwarding.NewSet(slices.Concat(ownFieldNames, forwarding.Names())...)
)
