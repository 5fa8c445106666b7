// Package visitor finds out who has sent a request, by the peer and by the word of trusted proxies, and
// tells it to the origin.
package visitor

import (
	"bytes"
	"net/http"
	"net/netip"
	"strconv"
	"unsafe"

	"github.com/ropeline/ropeline/httpfront/conn/address"
	"github.com/ropeline/ropeline/httpfront/http1"
)

// Trust says whose word about visitors is taken, and by which field.
type Trust struct {
	Proxies []netip.Prefix
	Field   string // in lower case, the one that names the visitor
	Country string // in lower case, the one that tells the visitor's country; "" for none
}

// Fields by which proxies name a visitor. Any other one holds a single address.
const (
	FieldForwardedFor = "x-forwarded-for"
	fieldForwarded    = "forwarded"
)

// Sender is who asks: the peer, and what stands behind it according to trusted proxies.
type Sender struct {
	peer   netip.Addr // the TCP peer
	Secure bool       // the visitor's side is TLS

	Trusted bool       // whether the peer is a trusted proxy
	Client  netip.Addr // the visitor; the nearest address that is known if no proxy tells
	chain   []byte     // client and the proxies behind it, peer excluded, as in X-Forwarded-For; empty if client is the peer
	Host    []byte     // that the visitor asked for, as told; nil if not told
	Name    string     // of host: in lower case, without port and trailing dot
	port    []byte     // of it; nil if not told
	Country string     // trust.country, if trusted
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
func (c *addrChain) add(a netip.Addr, t *Trust) bool {
	c.addrs[c.n] = a
	c.n++
	return c.n < chainMax && address.Contains(t.Proxies, a)
}

// Locate fills in who the visitor is, and whether the visitor's side is TLS.
// Forwarding fields are believed only if the TCP peer is a trusted proxy, and
// then from the right: each trusted proxy added who it got the request from, so
// the first untrusted entry from the right is the visitor, and all that is left
// of it may be made up. Where an entry is no address, the visitor hides, and is
// known by the proxy that says so.
func (s *Sender) Locate(r *http1.Request, peer netip.Addr, tls bool, t *Trust) http1.Refusal {
	s.peer, s.Secure = peer, tls
	s.Client = peer
	if s.Trusted = address.Contains(t.Proxies, peer); !s.Trusted {
		return http1.Refusal{}
	}
	s.Country = t.Country
	var c addrChain
	if t.Field == fieldForwarded {
		if !s.readForwarded(r, &c, t) {
			return http1.Refusal{Code: http.StatusBadRequest, Reason: "the Forwarded field is not in order"}
		}
	} else {
		s.readForwardedFor(r, &c, t)
	}
	if c.n > 0 {
		s.Client = c.addrs[c.n-1]
	}
	for i := c.n - 1; i >= 0; i-- {
		if i < c.n-1 {
			s.chain = append(s.chain, ", "...)
		}
		s.chain = c.addrs[i].AppendTo(s.chain)
	}
	return http1.Refusal{}
}

// readForwardedFor reads the field that names the visitor, and X-Forwarded-Proto,
// -Host and -Port.
func (s *Sender) readForwardedFor(r *http1.Request, c *addrChain, t *Trust) {
	depth := 0 // of the visitor's entry, counted from the right
	for ; ; depth++ {
		v, more := fromRight(r, t.Field, depth)
		a, ok := parseAddr(v)
		if !ok || !c.add(a, t) || !more || t.Field != FieldForwardedFor {
			break
		}
	}
	if v, _ := fromRight(r, "x-forwarded-proto", depth); v != nil {
		s.tellProto(v)
	}
	if v, _ := fromRight(r, "x-forwarded-host", depth); v != nil {
		s.tellHost(r, v)
	}
	if v, _ := fromRight(r, "x-forwarded-port", depth); isPort(v) {
		s.port = v
	}
}

// fromRight returns the i-th element from the right of all fields of a name taken
// together, and whether there are more left of it. If there are fewer it returns
// the leftmost: proxies that pass on what they are told add nothing. It returns nil
// if there is none.
func fromRight(r *http1.Request, name string, i int) (element []byte, more bool) {
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
func (s *Sender) tellProto(v []byte) {
	switch {
	case http1.EqualFold(v, "https"), http1.EqualFold(v, "wss"):
		s.Secure = true
	case http1.EqualFold(v, "http"), http1.EqualFold(v, "ws"):
		s.Secure = false
	}
}

// tellHost takes over which host the visitor asked for. It has to be what a Host field
// may be; anything else is not believed.
func (s *Sender) tellHost(r *http1.Request, v []byte) {
	if bytes.Equal(v, r.HostField) { // was checked
		s.Host, s.Name = v, r.Host
	} else if name, ok := http1.NormalHost(v); ok {
		s.Host, s.Name = v, name
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

// Reset makes s one of whom nothing is known. It keeps its memory for bytes.
func (s *Sender) Reset() { *s = Sender{chain: s.chain[:0]} }

// AppendFields tells the origin who asks, for what, and how; hostField is of the request. What the visitor
// may have made up is not in it.
func (s *Sender) AppendFields(dst, hostField []byte) []byte {
	host, proto := s.Host, "http"
	if len(host) == 0 {
		host = hostField
	}
	if s.Secure {
		proto = "https"
	}
	dst = append(dst, "X-Forwarded-For: "...)
	if len(s.chain) > 0 {
		dst = append(dst, s.chain...)
		dst = append(dst, ", "...)
	}
	dst = s.peer.AppendTo(dst)
	dst = append(dst, "\r\nX-Real-IP: "...)
	dst = s.Client.AppendTo(dst)
	dst = append(dst, "\r\nX-Forwarded-Proto: "...)
	dst = append(dst, proto...)
	if len(host) > 0 {
		dst = append(dst, "\r\nX-Forwarded-Host: "...)
		dst = append(dst, host...)
	}
	dst = append(dst, "\r\nX-Forwarded-Port: "...)
	dst = s.appendPort(dst, host)
	dst = append(dst, "\r\nForwarded: "...)
	dst = s.appendForwarded(dst, host, proto)
	return append(dst, "\r\n"...)
}

// appendPort appends the port that the visitor asked for.
func (s *Sender) appendPort(dst, host []byte) []byte {
	port := s.port
	if colon := bytes.LastIndexByte(host, ':'); port == nil && colon > bytes.LastIndexByte(host, ']') {
		port = host[colon+1:] // perhaps none behind it: see http1.NormalHost
	}
	switch {
	case len(port) > 0:
		return append(dst, port...)
	case s.Secure:
		return strconv.AppendInt(dst, 443, 10)
	}
	return strconv.AppendInt(dst, 80, 10)
}
