package edge

import (
	"container/list"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/httpfront/conn/address"
)

// PlacesConfig says how many connections a listener of Places has. All of it is given.
type PlacesConfig struct {
	Name              string // of the listener, for the log
	Conns, PerAddress int
	Trusted           []netip.Prefix // peers without a limit of their own
	Strangers         int            // connections of all others together
	TLS               *tls.Config    // nil for plain connections
	Log               *slog.Logger
}

// Places is a listener with a bounded number of connections. One that waits for a request gives its
// place to the next connection where there is none left: that which has waited for longest. So
// whoever holds connections open without asking anything keeps nobody out, health checks least of
// all, which ask at once. A connection whose request is being answered keeps its place, and of those
// that wait, peers that are trusted give up theirs last.
type Places struct {
	net.Listener
	cfg  PlacesConfig
	full rate.Sometimes

	mu         sync.Mutex // guards the following
	waiting    list.List  // of *Place, the one that has waited for longest in front
	open       int
	perAddress map[netip.Prefix]int
}

// NewPlaces returns ln with bounds, and as Patient has it.
func NewPlaces(ln net.Listener, cfg PlacesConfig) *Places {
	return &Places{Listener: Patient(ln, cfg.Log), cfg: cfg, full: rate.Sometimes{Interval: time.Minute}, perAddress: map[netip.Prefix]int{}}
}

// Accept waits for the next connection that gets a place.
func (l *Places) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p := newPlace(l, c)
		if l.enter(p) {
			if l.cfg.TLS != nil {
				return secure(p, l.cfg.TLS), nil
			}
			return p, nil
		}
		c.Close()
		l.full.Do(func() {
			l.cfg.Log.Warn("a listener has more requests under way than it takes, and refuses connections",
				"listener", l.cfg.Name, "limit", l.cfg.Conns, "limit_of_an_address", l.cfg.PerAddress)
		})
	}
}

// enter has p take a place, if there is one or another connection can give up its own.
func (l *Places) enter(p *Place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	crowded := p.IsLimited() && l.perAddress[p.from] >= l.cfg.PerAddress
	strange := p.IsLimited() && l.open-l.perAddress[netip.Prefix{}] >= l.cfg.Strangers
	if crowded || strange || l.open >= l.cfg.Conns {
		idle := l.longestWaitingLocked(func(other *Place) bool { return other.IsLimited() && (!crowded || other.from == p.from) })
		if idle == nil && !crowded && !strange {
			idle = l.longestWaitingLocked(func(*Place) bool { return true })
		}
		if idle == nil {
			return false
		}
		l.leaveLocked(idle)
		idle.Conn.Close() // whoever reads from it finds out
	}
	l.open++
	l.perAddress[p.from]++
	p.waits = l.waiting.PushBack(p)
	return true
}

func (l *Places) longestWaitingLocked(eligible func(*Place) bool) *Place {
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		if p := e.Value.(*Place); eligible(p) {
			return p
		}
	}
	return nil
}

func (l *Places) leaveLocked(p *Place) {
	if p.left {
		return
	}
	p.left = true
	close(p.gone)
	if p.waits != nil {
		l.waiting.Remove(p.waits)
	}
	l.open--
	if l.perAddress[p.from]--; l.perAddress[p.from] == 0 {
		delete(l.perAddress, p.from)
	}
}

// Place is a connection that has one.
type Place struct {
	net.Conn
	of   *Places
	from netip.Prefix // zero: an address without a limit of its own
	gone chan struct{}

	// guarded by of.mu
	waits *list.Element // nil while a request is being answered
	left  bool
}

func newPlace(of *Places, c net.Conn) *Place {
	p := &Place{Conn: c, of: of, gone: make(chan struct{})}
	if addr := address.Of(c.RemoteAddr()); !address.Contains(of.cfg.Trusted, addr) {
		p.from = address.Counted(addr)
	}
	return p
}

// PlaceOf returns the place of a connection that a server hands out; nil if it has none.
func PlaceOf(c net.Conn) *Place {
	if s, ok := c.(*secured); ok {
		c = s.from.Conn
	}
	p, _ := c.(*Place)
	return p
}

// Keep has p keep its place, since a request that may be answered has come.
func (p *Place) Keep() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.waits != nil && !p.left {
		p.of.waiting.Remove(p.waits)
		p.waits = nil
	}
}

// Await has p wait for its next request.
func (p *Place) Await() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.waits == nil && !p.left {
		p.waits = p.of.waiting.PushBack(p)
	}
}

// Gone is closed once p has given its place up, to another connection or at its own end.
func (p *Place) Gone() <-chan struct{} { return p.gone }

// IsLimited reports whether p is of an address that has a limit of its own.
func (p *Place) IsLimited() bool { return p.from.IsValid() }

// Close gives the place back.
func (p *Place) Close() error {
	p.of.mu.Lock()
	p.of.leaveLocked(p)
	p.of.mu.Unlock()
	return p.Conn.Close()
}
