package httpfront

import (
	"net/netip"
	"strings"
)

// forwarded is what stands in front of us according to a trusted proxy.
type forwarded struct {
	client netip.Addr // who the proxy, or the proxies, got the request from
	chain  []byte     // X-Forwarded-For as it came; nil if not believed
	host   string     // the host that the visitor asked for, "" if not told
}

// locate fills in who the visitor is, and whether the visitor's side is TLS.
// Forwarding fields are believed only if the TCP peer is a trusted proxy, and
// then from the right: each trusted proxy added who it got the request from, so
// the first untrusted entry from the right is the visitor, and all that is left
// of it may be made up.
func (r *request) locate(peer netip.Addr, tls bool, trusted []netip.Prefix) {
	r.peer, r.secure = peer, tls
	r.via.client = peer
	if !contains(trusted, peer) {
		return
	}
	r.via.chain = []byte{}
	for v := range r.all("x-forwarded-for") {
		if len(r.via.chain) > 0 {
			r.via.chain = append(r.via.chain, ", "...)
		}
		r.via.chain = append(r.via.chain, v...)
	}
	rest := string(r.via.chain)
	for rest != "" {
		var last string
		if i := strings.LastIndexByte(rest, ','); i >= 0 {
			rest, last = rest[:i], rest[i+1:]
		} else {
			rest, last = "", rest
		}
		addr, ok := parseAddr(strings.TrimSpace(last))
		if !ok {
			break
		}
		if r.via.client = addr; !contains(trusted, addr) {
			break
		}
	}
	// Of several proxies the nearest wrote the last field.
	for v := range r.all("x-forwarded-proto") {
		r.secure = equalFold(v, "https")
	}
	for v := range r.all("x-forwarded-host") {
		if _, ok := normalHost(v); ok {
			r.via.host = string(v)
		}
	}
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// parseAddr takes an address with or without a port.
func parseAddr(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Unmap().WithZone(""), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	return netip.Addr{}, false
}

// isForwarding reports whether a field of this name tells the origin where a
// request came from or where it goes, or speaks in our name. A client's are
// dropped. Underscores count as dashes, because many origins cannot tell them
// apart.
func isForwarding(name []byte) bool {
	var buf [32]byte
	name = name[:min(len(name), len(buf))] // what tells is at the beginning
	n := buf[:len(name)]
	for i, c := range name {
		if n[i] = lowerByte(c); c == '_' {
			n[i] = '-'
		}
	}
	switch string(n) {
	case "forwarded", "x-real-ip", "x-original-url", "x-rewrite-url", "true-client-ip", "x-client-ip":
		return true
	}
	return strings.HasPrefix(string(n), "x-forwarded-") || strings.HasPrefix(string(n), "ropeline-")
}
