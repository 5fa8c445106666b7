package http1

import (
	"bytes"
	"cmp"

	"github.com/ropeline/ropeline/node/room"
)

// splitHost splits a Host field into its host and its port, which is 0 if none is named: the
// colon may stand there even so (RFC 3986, 3.2.3).
func splitHost(b []byte) (host []byte, port int64, ok bool) {
	host, rest := b, []byte(nil)
	if len(b) > 0 && b[0] == '[' {
		end := bytes.IndexByte(b, ']')
		if end < 0 {
			return nil, 0, false
		}
		host, rest = b[:end+1], b[end+1:]
	} else if i := bytes.IndexByte(b, ':'); i >= 0 {
		host, rest = b[:i], b[i:]
	}
	if len(rest) <= 1 {
		return host, 0, len(rest) == 0 || rest[0] == ':'
	}
	port, ok = parseLength(rest[1:])
	return host, port, ok && rest[0] == ':' && 0 < port && port <= 65535
}

// NormalHost checks a Host field and returns its host as room.NormalHost does, without
// port.
func NormalHost(b []byte) (string, bool) {
	host, _, ok := splitHost(b)
	if !ok {
		return "", false
	}
	return room.NormalHost(string(host))
}

// sameHost reports whether two Host fields are the same for a scheme, whose port is meant where
// none is named.
func sameHost(a, b []byte, scheme []byte) bool {
	hostA, portA, okA := splitHost(a)
	hostB, portB, okB := splitHost(b)
	usual := int64(80)
	if EqualFold(scheme, "https") {
		usual = 443
	}
	return okA && okB && len(hostA) > 0 && bytes.EqualFold(hostA, hostB) && cmp.Or(portA, usual) == cmp.Or(portB, usual)
}
