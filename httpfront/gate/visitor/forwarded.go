package visitor

import (
	"bytes"

	"github.com/ropeline/ropeline/httpfront/http1"
)

// The Forwarded field of RFC 7239: for each proxy one element, which says for whom
// it asks, by which scheme, and for which host.

// hop is one element of a Forwarded field. What is not said is nil.
type hop struct{ client, proto, host []byte }

// hops keeps the last elements, which are the nearest.
type hops struct {
	ring [chainMax]hop
	n    int
}

func (h *hops) add(e hop) {
	h.ring[h.n%chainMax] = e
	h.n++
}

// fromRight calls yield with the elements that are kept, the last first.
func (h *hops) fromRight(yield func(hop) bool) {
	for i := h.n - 1; i >= max(h.n-chainMax, 0); i-- {
		if !yield(h.ring[i%chainMax]) {
			return
		}
	}
}

// readForwarded reads the Forwarded fields. It reports whether they are in order;
// where one is not, it cannot be told which part of it a proxy has written.
func (s *Sender) readForwarded(r *http1.Request, c *addrChain, t *Trust) bool {
	var all hops
	for v := range r.All(fieldForwarded) {
		if !all.parse(v) {
			return false
		}
	}
	var last hop
	for h := range all.fromRight {
		a, ok := parseAddr(h.client)
		if !ok {
			// The visitor hides from this proxy, which saw host and scheme.
			last = h
			break
		}
		if last = h; !c.add(a, t) {
			break
		}
	}
	if last.proto != nil {
		s.tellProto(last.proto)
	}
	if last.host != nil {
		s.tellHost(r, last.host)
	}
	return true
}

// parse adds the elements of one field, and reports whether it is in order.
func (h *hops) parse(v []byte) bool {
	for {
		v = skipBlanks(v)
		if len(v) == 0 {
			return true
		}
		if v[0] == ',' { // an empty element
			v = v[1:]
			continue
		}
		e, rest, ok := parseHop(v)
		if !ok {
			return false
		}
		h.add(e)
		if v = rest; len(v) > 0 {
			v = v[1:] // a comma
		}
	}
}

// parseHop takes one element off v; rest is empty or begins with a comma.
func parseHop(v []byte) (e hop, rest []byte, ok bool) {
	for {
		v = skipBlanks(v)
		if len(v) > 0 && v[0] == ';' { // an empty pair
			v = v[1:]
			continue
		}
		if len(v) == 0 || v[0] == ',' {
			return e, v, true
		}
		var name, value []byte
		if name, value, v, ok = parsePair(v); !ok {
			return hop{}, nil, false
		}
		into := e.of(name)
		if into == nil {
			continue
		}
		if *into != nil {
			return hop{}, nil, false // said twice: which one counts?
		}
		*into = value
	}
}

// of returns where the value of a parameter goes; nil for those that say nothing
// to us.
func (e *hop) of(name []byte) *[]byte {
	switch {
	case http1.EqualFold(name, "for"):
		return &e.client
	case http1.EqualFold(name, "proto"):
		return &e.proto
	case http1.EqualFold(name, "host"):
		return &e.host
	}
	return nil
}

// parsePair takes name=value off v. A value in quotes comes without them; one with
// a backslash in it is none of what we look for, so it may keep it. Out of quotes,
// addresses may have their colons and brackets, as many proxies write them.
func parsePair(v []byte) (name, value, rest []byte, ok bool) {
	n := 0
	for n < len(v) && http1.IsToken(v[n]) {
		n++
	}
	if n == 0 || n == len(v) || v[n] != '=' {
		return nil, nil, nil, false
	}
	name, v = v[:n], v[n+1:]
	if len(v) > 0 && v[0] == '"' {
		value, rest, ok = parseQuoted(v[1:])
	} else {
		n = 0
		for n < len(v) && (http1.IsToken(v[n]) || v[n] == ':' || v[n] == '[' || v[n] == ']') {
			n++
		}
		value, rest, ok = v[:n:n], v[n:], n > 0
	}
	if rest = skipBlanks(rest); len(rest) > 0 && rest[0] != ';' && rest[0] != ',' {
		return nil, nil, nil, false
	}
	return name, value, rest, ok
}

// parseQuoted takes what is left of a quoted string, without its first quote, off v.
func parseQuoted(v []byte) (value, rest []byte, ok bool) {
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '\\':
			i++
		case '"':
			return v[:i:i], v[i+1:], true
		}
	}
	return nil, nil, false
}

func skipBlanks(v []byte) []byte { return bytes.TrimLeft(v, " \t") }

// appendForwarded appends the value of a Forwarded field: the visitor's element,
// with scheme and host, and one for each proxy behind.
func (s *Sender) appendForwarded(dst, host []byte, proto string) []byte {
	var buf [64]byte
	peer := s.peer.AppendTo(buf[:0])
	visitor, rest, _ := bytes.Cut(s.chain, []byte(", "))
	if len(visitor) == 0 {
		visitor = peer
	}
	dst = appendNode(dst, visitor)
	dst = append(dst, ";proto="...)
	dst = append(dst, proto...)
	if len(host) > 0 {
		dst = append(dst, `;host="`...)
		dst = append(dst, host...) // was checked: no quotes in it
		dst = append(dst, '"')
	}
	for len(rest) > 0 {
		var next []byte
		next, rest, _ = bytes.Cut(rest, []byte(", "))
		dst = appendNode(append(dst, ", "...), next)
	}
	if len(s.chain) > 0 {
		dst = appendNode(append(dst, ", "...), peer)
	}
	return dst
}

// appendNode appends for= and an address. Those of IPv6 stand in brackets, and so
// in quotes.
func appendNode(dst, addr []byte) []byte {
	dst = append(dst, "for="...)
	if bytes.IndexByte(addr, ':') < 0 {
		return append(dst, addr...)
	}
	dst = append(dst, `"[`...)
	dst = append(dst, addr...)
	return append(dst, `]"`...)
}
