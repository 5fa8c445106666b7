package server

import (
	"fmt"
	"sort"

	"github.com/ropeline/ropeline/httpfront/edge"
	"github.com/ropeline/ropeline/httpfront/integrations/verdict"
	"github.com/ropeline/ropeline/httpfront/operator/adminserver"
)

// Bounds are how many connections of each kind a node has at one time. Each takes a descriptor of the process.
type Bounds struct {
	Visitors   int
	Handshakes int // in their TLS handshake, or before their PROXY header
	Redirects  int
	Origins    int // to all origins together
	Verdicts   int
	Admin      int

	reserve int // descriptors for all else
}

// What a node opens besides connections, at most: 20 that stay (the standard streams, those of the runtime, listeners and
// the socket of the mesh, the store and its lock, the access log, a collector of traces), and 28 for a moment (a
// connection at each listener before it is refused, a new store beside an old one, a log that is opened again, files of
// secrets, tokens and certificates, what the metrics read of the process, lookups of names, an authority of
// certificates). An origin is checked, and its name looked up, with three.
const (
	reserved          = 48
	reservedPerOrigin = 3
)

// Where descriptors are few, each part of a node but visitors and origins has an eighth of those that are left, and none
// has fewer connections than leastConns.
const leastConns = 8

// Bounds returns those that c asks for.
func (c *Config) Bounds() (Bounds, error) {
	l := c.Proxy.Limits
	if err := l.Complete(); err != nil {
		return Bounds{}, err
	}
	b := Bounds{Admin: adminserver.ConnsMax, reserve: reserved}
	if c.Clients.VerdictListen != "" {
		b.Verdicts = verdict.ConnsMax
	}
	if !c.servesVisitors() {
		return b, nil
	}
	b.Visitors = l.Conns
	if c.TLS.on() || len(c.Clients.Edge.ProxyProtocol) > 0 {
		b.Handshakes = l.Handshakes
	}
	if c.TLS.RedirectListen != "" {
		b.Redirects = l.Redirects
	}
	group := func(servers int) {
		b.Origins += 2*servers*l.Upstream.Conns + l.Upstream.Tunnels // as many are kept as have requests
		b.reserve += reservedPerOrigin * servers
	}
	group(len(c.Proxy.Origins.Servers))
	for _, r := range c.Proxy.Routes {
		if n := len(r.Origins.Servers); n > 0 {
			group(n)
		}
	}
	b.Origins = min(b.Origins, b.Visitors) // a connection of a visitor has one request at a time
	return b, nil
}

// Descriptors returns how many the process takes at most with b.
func (b Bounds) Descriptors() int {
	return b.reserve + withRefused(b.Visitors) + b.Handshakes + withRefused(b.Redirects) + b.Origins + b.Verdicts + b.Admin
}

// withRefused returns how many connections there are where so many are served, and more are told that there are too many.
func withRefused(conns int) int {
	if conns == 0 {
		return 0
	}
	return conns + edge.Limits{Conns: conns}.Refused()
}

// Within returns b where so many descriptors suffice for it, and else lower bounds for which they do: of a visitor who has
// a connection each request has one to an origin, and operators, the store and the mesh have theirs whatever visitors do. The
// error says that there are too few for any use.
func (b Bounds) Within(limit int) (Bounds, error) {
	if b.Descriptors() <= limit {
		return b, nil
	}
	part := max(leastConns, (limit-b.reserve)/8)
	// How many of those that the node is for there are: visitors, or else proxies that ask about theirs.
	n := sort.Search(max(b.Visitors, b.Verdicts), func(n int) bool { return b.lowered(part, n+1).Descriptors() > limit })
	if n >= min(leastConns, max(b.Visitors, b.Verdicts)) {
		return b.lowered(part, n), nil
	}
	least := b.lowered(leastConns, leastConns).Descriptors()
	return Bounds{}, fmt.Errorf("the limit of open files is %d, and a node with these settings needs %d at least: raise it (LimitNOFILE= in the unit of systemd, ulimit -n)", limit, least)
}

// lowered returns b for n visitors and up to part of what is beside them, or else for n proxies.
func (b Bounds) lowered(part, n int) Bounds {
	b.Admin = min(b.Admin, part)
	if b.Visitors == 0 {
		b.Verdicts = min(b.Verdicts, n)
		return b
	}
	b.Verdicts, b.Redirects = min(b.Verdicts, part), min(b.Redirects, part)
	b.Visitors, b.Origins = min(b.Visitors, n), min(b.Origins, n)
	b.Handshakes = min(b.Handshakes, max(leastConns, n/8))
	return b
}

// keepWithin has s keep within the descriptors that the process may have.
func (s *Server) keepWithin() error {
	wanted, err := s.cfg.Bounds()
	if s.bounds = wanted; err != nil || s.cfg.Descriptors == 0 {
		return err
	}
	if s.bounds, err = wanted.Within(s.cfg.Descriptors); err != nil {
		return err
	}
	if b := &s.bounds; *b != wanted {
		s.log.Warn("the limit of open files is too low for as many connections as are configured, and fewer are taken: raise it (LimitNOFILE= in the unit of systemd, ulimit -n), or lower max-connections",
			"limit", s.cfg.Descriptors, "wanted", wanted.Descriptors(), "max_connections", b.Visitors, "of", wanted.Visitors,
			"max_handshakes", b.Handshakes, "redirects", b.Redirects, "origins", b.Origins, "verdicts", b.Verdicts, "admin", b.Admin)
	}
	l := &s.cfg.Proxy.Limits
	l.Origins = s.bounds.Origins
	for limit, bound := range map[*int]int{&l.Conns: s.bounds.Visitors, &l.Handshakes: s.bounds.Handshakes, &l.Redirects: s.bounds.Redirects} {
		if bound > 0 {
			*limit = bound
		}
	}
	return nil
}
