package httpfront

import (
	"bytes"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"unsafe"

	"github.com/ropeline/ropeline/httpfront/conn/address"
	"github.com/ropeline/ropeline/httpfront/http1"
)

// trust says whose word about visitors is taken, and by which field.
type trust struct {
	proxies []netip.Prefix
	field   string // in lower case, the one that names the visitor
	country string // in lower case, the one that tells the visitor's country; "" for none
}

// Fields by which proxies name a visitor. Any other one holds a single address.
const (
	fieldForwardedFor = "x-forwarded-for"
	fieldForwarded    = "forwarded"
)

// forwarded is what stands in front of us according to trusted proxies.
type forwarded struct {
	trusted bool       // whether the peer is a trusted proxy
	client  netip.Addr // the visitor; the nearest address that is known if no proxy tells
	chain   []byte     // client and the proxies behind it, peer excluded, as in X-Forwarded-For; empty if client is the peer
	host    []byte     // that the visitor asked for, as told; nil if not told
	name    string     // of host: in lower case, without port and trailing dot
	port    []byte     // of it; nil if not told
	country string     // trust.country, if trusted
}

// chainMax is how many proxies behind a visitor are looked at.
const chainMax = 16

// addrChain are the addresses that a request came through, the nearest first.
type addrChain struct {
	addrs [chainMax]netip.Addr
	n     int
}

// add takes the next address, and reports whether another one is to be looked at:
// whoever is not trusted may make up all that is left of it.
func (c *addrChain) add(a netip.Addr, t *trust) bool {
	c.addrs[c.n] = a
	c.n++
	return c.n < chainMax && address.Contains(t.proxies, a)
}

// locate fills in who the visitor is, and whether the visitor's side is TLS.
// Forwarding fields are believed only if the TCP peer is a trusted proxy, and
// then from the right: each trusted proxy added who it got the request from, so
// the first untrusted entry from the right is the visitor, and all that is left
// of it may be made up. Where an entry is no address, the visitor hides, and is
// known by the proxy that says so.
func (r *request) locate(peer netip.Addr, tls bool, t *trust) http1.Refusal {
	r.peer, r.secure = peer, tls
	r.via.client = peer
	if r.via.trusted = address.Contains(t.proxies, peer); !r.via.trusted {
		return http1.Refusal{}
	}
	r.via.country = t.country
	var c addrChain
	if t.field == fieldForwarded {
		if !r.readForwarded(&c, t) {
			return http1.Refusal{Code: http.StatusBadRequest, Reason: "the Forwarded field is not in order"}
		}
	} else {
		r.readForwardedFor(&c, t)
	}
	if c.n > 0 {
		r.via.client = c.addrs[c.n-1]
	}
	for i := c.n - 1; i >= 0; i-- {
		if i < c.n-1 {
			r.via.chain = append(r.via.chain, ", "...)
		}
		r.via.chain = c.addrs[i].AppendTo(r.via.chain)
	}
	return http1.Refusal{}
}

// readForwardedFor reads the field that names the visitor, and X-Forwarded-Proto,
// -Host and -Port.
func (r *request) readForwardedFor(c *addrChain, t *trust) {
	depth := 0 // of the visitor's entry, counted from the right
	for ; ; depth++ {
		v, more := r.fromRight(t.field, depth)
		a, ok := parseAddr(v)
		if !ok || !c.add(a, t) || !more || t.field != fieldForwardedFor {
			break
		}
	}
	if v, _ := r.fromRight("x-forwarded-proto", depth); v != nil {
		r.tellProto(v)
	}
	if v, _ := r.fromRight("x-forwarded-host", depth); v != nil {
		r.tellHost(v)
	}
	if v, _ := r.fromRight("x-forwarded-port", depth); isPort(v) {
		r.via.port = v
	}
}

// fromRight returns the i-th element from the right of all fields of a name taken
// together, and whether there are more left of it. If there are fewer it returns
// the leftmost: proxies that pass on what they are told add nothing. It returns nil
// if there is none.
func (r *request) fromRight(name string, i int) (element []byte, more bool) {
	for f := len(r.Fields) - 1; f >= 0; f-- {
		if !http1.EqualFold(r.Fields[f].Name, name) {
			continue
		}
		rest := r.Fields[f].Value
		for len(rest) > 0 {
			comma := bytes.LastIndexByte(rest, ',')
			e := bytes.Trim(rest[comma+1:], " \t")
			rest = rest[:max(comma, 0)]
			if len(e) == 0 {
				continue
			}
			if i < 0 {
				return element, true
			}
			element = e
			i--
		}
	}
	return element, false
}

// tellProto takes over by which scheme the visitor came. What is neither is not
// believed.
func (r *request) tellProto(v []byte) {
	switch {
	case http1.EqualFold(v, "https"), http1.EqualFold(v, "wss"):
		r.secure = true
	case http1.EqualFold(v, "http"), http1.EqualFold(v, "ws"):
		r.secure = false
	}
}

// tellHost takes over which host the visitor asked for. It has to be what a Host field
// may be; anything else is not believed.
func (r *request) tellHost(v []byte) {
	if bytes.Equal(v, r.HostField) { // was checked
		r.via.host, r.via.name = v, r.Host
	} else if name, ok := http1.NormalHost(v); ok {
		r.via.host, r.via.name = v, name
	}
}

// settleHost decides which host r is for, where a trusted proxy names another one than
// the Host field. Proxies that rewrite Host say so, and rooms stand at what visitors
// ask for. But many proxies leave Host as it is and pass a visitor's X-Forwarded-Host
// on, so who asks for a host that has a room could get around it by naming another:
// a Host that leads to a room by its name counts. The origin is told the same, or a
// visitor would wait for one host and be served another.
func (f *Front) settleHost(r *request) {
	switch {
	case r.via.host == nil || r.via.name == r.Host:
	case f.cfg.Rooms.Route(r.Host, r.Path.Route) == f.cfg.Rooms.Route("", r.Path.Route):
		r.Host = r.via.name
	default:
		r.via.host, r.via.name = nil, ""
	}
}

// parseAddr takes an address with or without a port: 192.0.2.1, 192.0.2.1:80,
// 2001:db8::1, [2001:db8::1], [2001:db8::1]:80. A port may also be hidden, as "_"
// and a word (RFC 7239, section 6).
func parseAddr(b []byte) (netip.Addr, bool) {
	host, port := b, []byte(nil)
	if len(b) > 0 && b[0] == '[' {
		end := bytes.IndexByte(b, ']')
		if end < 0 {
			return netip.Addr{}, false
		}
		if host, port = b[1:end], b[end+1:]; bytes.IndexByte(host, ':') < 0 {
			return netip.Addr{}, false
		}
	} else if colon := bytes.IndexByte(b, ':'); colon >= 0 && colon == bytes.LastIndexByte(b, ':') {
		host, port = b[:colon], b[colon:]
	}
	if len(port) > 0 && (port[0] != ':' || !isPort(port[1:]) && !isHidden(port[1:])) || len(host) == 0 {
		return netip.Addr{}, false
	}
	// The parser keeps its text in errors only.
	a, err := netip.ParseAddr(unsafe.String(unsafe.SliceData(host), len(host)))
	if err != nil {
		return netip.Addr{}, false
	}
	return a.Unmap().WithZone(""), true
}

// isPort reports whether b is a port to connect to.
func isPort(b []byte) bool {
	_, err := strconv.ParseUint(string(b), 10, 16)
	return err == nil && b[0] != '0'
}

// isHidden reports whether b is a name that a proxy made up so as not to tell.
func isHidden(b []byte) bool {
	if len(b) < 2 || b[0] != '_' {
		return false
	}
	for _, c := range b[1:] {
		if !http1.IsAlnum(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// appendForwarding tells the origin who asks, for what, and how. What the visitor
// may have made up is not in it.
func (r *request) appendForwarding(dst []byte) []byte {
	host, proto := r.via.host, "http"
	if len(host) == 0 {
		host = r.HostField
	}
	if r.secure {
		proto = "https"
	}
	dst = append(dst, "X-Forwarded-For: "...)
	if len(r.via.chain) > 0 {
		dst = append(dst, r.via.chain...)
		dst = append(dst, ", "...)
	}
	dst = r.peer.AppendTo(dst)
	dst = append(dst, "\r\nX-Real-IP: "...)
	dst = r.via.client.AppendTo(dst)
	dst = append(dst, "\r\nX-Forwarded-Proto: "...)
	dst = append(dst, proto...)
	if len(host) > 0 {
		dst = append(dst, "\r\nX-Forwarded-Host: "...)
		dst = append(dst, host...)
	}
	dst = append(dst, "\r\nX-Forwarded-Port: "...)
	dst = r.appendPort(dst, host)
	dst = append(dst, "\r\nForwarded: "...)
	dst = r.appendForwarded(dst, host, proto)
	return append(dst, "\r\n"...)
}

// appendPort appends the port that the visitor asked for.
func (r *request) appendPort(dst, host []byte) []byte {
	port := r.via.port
	if colon := bytes.LastIndexByte(host, ':'); port == nil && colon > bytes.LastIndexByte(host, ']') {
		port = host[colon+1:]
	}
	switch {
	case port != nil:
		return append(dst, port...)
	case r.secure:
		return strconv.AppendInt(dst, 443, 10)
	}
	return strconv.AppendInt(dst, 80, 10)
}

// mayForward reports whether a forwarding field is passed on as it came from a trusted proxy:
// what such a proxy has cut off the path, and what it is configured to tell of visitors in,
// unless that is one that we write ourselves.
func (r *request) mayForward(name []byte) bool {
	if !r.via.trusted {
		return false
	}
	return http1.EqualFold(name, "x-forwarded-prefix") ||
		r.mayTell(name) && !http1.EqualFold(name, fieldForwardedFor) && !http1.EqualFold(name, fieldForwarded) && !http1.EqualFold(name, "x-real-ip")
}

// mayTell reports whether a field of r.told is passed on: it comes from a trusted proxy,
// and under the very name that those write.
func (r *request) mayTell(name []byte) bool {
	return r.via.trusted && slices.ContainsFunc(r.told, func(told string) bool { return http1.EqualFold(name, told) })
}
