package adminserver

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

// How many connections there may be. Each costs some 40 KiB at most before its token is known.
const (
	connsMax           = 1024
	connsMaxPerAddress = 256
)

// places is a listener with a bounded number of connections. One that waits for a request gives its
// place to the next connection where there is none left: that which has waited for longest. So
// whoever holds connections open without asking anything keeps nobody out, health checks least of
// all, which ask at once. A connection whose request is being answered keeps its place.
type places struct {
	net.Listener
	log  *slog.Logger
	full rate.Sometimes

	mu         sync.Mutex // guards the following
	waiting    list.List  // of *place, the one that has waited for longest in front
	open       int
	perAddress map[netip.Prefix]int
}

// newPlaces returns ln with bounds.
func newPlaces(ln net.Listener, log *slog.Logger) *places {
	return &places{Listener: ln, log: log, full: rate.Sometimes{Interval: time.Minute}, perAddress: map[netip.Prefix]int{}}
}

// Accept waits for the next connection that gets a place.
func (l *places) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p := newPlace(l, c)
		if l.enter(p) {
			return p, nil
		}
		c.Close()
		l.full.Do(func() {
			l.log.Warn("the admin listener has more requests under way than it takes, and refuses connections", "limit", connsMax, "limit_of_an_address", connsMaxPerAddress)
		})
	}
}

// enter has p take a place, if there is one or another connection can give up its own.
func (l *places) enter(p *place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	crowded := l.perAddress[p.from] >= connsMaxPerAddress
	if crowded || l.open >= connsMax {
		idle := l.longestWaitingLocked(func(other *place) bool { return !crowded || other.from == p.from })
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

func (l *places) longestWaitingLocked(eligible func(*place) bool) *place {
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		if p := e.Value.(*place); eligible(p) {
			return p
		}
	}
	return nil
}

func (l *places) leaveLocked(p *place) {
	if p.left {
		return
	}
	p.left = true
	if p.waits != nil {
		l.waiting.Remove(p.waits)
	}
	l.open--
	if l.perAddress[p.from]--; l.perAddress[p.from] == 0 {
		delete(l.perAddress, p.from)
	}
}

// place is a connection that has one.
type place struct {
	net.Conn
	of   *places
	from netip.Prefix

	// guarded by of.mu
	waits *list.Element // nil while a request is being answered
	left  bool
}

func newPlace(of *places, c net.Conn) *place {
	return &place{Conn: c, of: of, from: address.Counted(address.Of(c.RemoteAddr()))}
}

// placeOf returns the place of a connection that the server hands out.
func placeOf(c net.Conn) *place {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	p, _ := c.(*place)
	return p
}

// keep has p keep its place, since a request that may be answered has come.
func (p *place) keep() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.waits != nil && !p.left {
		p.of.waiting.Remove(p.waits)
		p.waits = nil
	}
}

// await has p wait for its next request.
func (p *place) await() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.waits == nil && !p.left {
		p.waits = p.of.waiting.PushBack(p)
	}
}

// Close gives the place back.
func (p *place) Close() error {
	p.of.mu.Lock()
	p.of.leaveLocked(p)
	p.of.mu.Unlock()
	return p.Conn.Close()
}
