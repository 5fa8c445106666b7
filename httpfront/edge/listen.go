package edge

import (
	"container/list"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/httpfront/conn/address"
	"github.com/ropeline/ropeline/httpfront/conn/socket"
	"github.com/ropeline/ropeline/httpfront/http1"
)

// Config says how a Listener takes connections. All of it is given.
type Config struct {
	TLS     *tls.Config    // nil for plain connections
	Proxied []netip.Prefix // peers whose connections begin with a PROXY header
	Trusted []netip.Prefix // peers without a limit of their own
	Limits  Limits
	Head    time.Duration // for what comes before the first request
	Write   time.Duration // longest time for one write
	Log     *slog.Logger

	Refuse   func(http1.Refusal) []byte // the answer to who is turned away
	Panicked func(any)                  // is told of a panic
}

// Limits bound what clients may make a Listener hold.
type Limits struct {
	Conns, PerAddress int // that are served at once, in all and of one address
	Handshakes        int // connections that are being prepared
	BodyRate          int // least bytes per second of a body, where rolled; below 0: any
}

// Refused is how many clients that are turned away are told why at a time, beyond Conns. Each costs a goroutine for up
// to twice politeTime.
func (l Limits) Refused() int { return min(politeMax, max(politeMin, l.Conns/8)) }

// Listener has connections that are ready for a first request served, and knows
// which are open, so that a shutdown can end those that do not end by themselves.
//
// A connection takes a place of three kinds: one of its address as soon as that
// is known, one among those that are being prepared (see prelude.go), and once it
// is handed out one among all.
type Listener struct {
	net.Listener
	cfg    Config
	each   func(*Conn)   // serves a connection, and closes it; runs in a goroutine of its own
	closed chan struct{} // by Close
	once   sync.Once     // of Close

	warnings warnings
	polite   chan struct{} // one element for each connection that is told why it is refused
	looks    *time.Timer   // when connections are looked at again, while there are some

	open sync.WaitGroup // one for each connection that its user has not closed, and for each that is being prepared

	mu        sync.Mutex // guards the following
	conns     map[*Conn]struct{}
	preparing list.List // of *Conn, the oldest first
	settled   int       // conns that were handed out
	addresses addressCounts
}

// warnings keep what a flood does from filling the log.
type warnings struct{ full, crowded, preparing, header rate.Sometimes }

const (
	warnEvery = time.Minute

	politeMin, politeMax = 8, 128
)

// New returns a listener whose connections each serves.
func New(ln net.Listener, cfg Config, each func(*Conn)) *Listener {
	l := &Listener{
		Listener: Patient(ln, cfg.Log), cfg: cfg, each: each,
		closed:    make(chan struct{}),
		polite:    make(chan struct{}, cfg.Limits.Refused()),
		looks:     time.NewTimer(lookEvery),
		conns:     map[*Conn]struct{}{},
		addresses: addressCounts{},
	}
	w := &l.warnings
	for _, s := range []*rate.Sometimes{&w.full, &w.crowded, &w.preparing, &w.header} {
		s.Interval = warnEvery
	}
	return l
}

// Serve serves until ctx ends, or fails once the listener was closed, and then calls end, which lets
// requests end and cuts off what is left. It returns when nothing of either is left.
func (l *Listener) Serve(ctx context.Context, end func()) error {
	accepting := make(chan error, 1)
	go func() { accepting <- l.accept() }()
	over, looking := make(chan struct{}), sync.WaitGroup{}
	looking.Go(func() { l.lookAgain(over) })
	defer looking.Wait()
	defer close(over)
	var err error
	select {
	case <-ctx.Done():
		l.Close()
		end()
		<-accepting
	case err = <-accepting:
		l.Close()
		end()
	}
	l.open.Wait()
	return err
}

// accept takes connections until the listener is closed or broken.
func (l *Listener) accept() error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		l.take(c)
	}
}

// Quiesce ends connections that have no request, and waits until the requests of the others have
// been answered, or ctx ends. The front is draining, so that each is the last of its connection;
// what was upgraded is no request any more.
func (l *Listener) Quiesce(ctx context.Context) error {
	l.mu.Lock()
	var conns []*Conn
	for e := range l.conns {
		if e.settled { // others are closed by Close
			conns = append(conns, e)
		}
	}
	l.mu.Unlock()
	for _, e := range conns {
		e.retire()
	}
	for _, e := range conns {
		select {
		case <-e.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Close stops listening, and drops connections that have not been handed out.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	err := l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := l.preparing.Front(); i != nil; i = i.Next() {
		i.Value.(*Conn).raw.Close()
	}
	return err
}

// isClosed reports whether Close was called.
func (l *Listener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// take makes c ready and hands it out, or turns it away. It never waits for the
// client.
func (l *Listener) take(c net.Conn) {
	e := newEdgeConn(socket.New(c), l)
	l.open.Add(1)
	l.mu.Lock()
	l.conns[e] = struct{}{}
	l.mu.Unlock()

	peer := address.Of(c.RemoteAddr())
	if address.Contains(l.cfg.Proxied, peer) {
		l.prepare(e, peer, true)
		return
	}
	if no := l.admit(e, peer); no.Code != 0 {
		l.turnAway(e, no)
		return
	}
	if l.cfg.TLS != nil {
		l.prepare(e, peer, false)
		return
	}
	l.handOut(e)
}

var (
	refuseFull    = http1.Refusal{Code: http.StatusServiceUnavailable, Reason: "too many connections to this server at the moment"}
	refuseCrowded = http1.Refusal{Code: http.StatusTooManyRequests, Reason: "too many connections from your address at the moment"}
)

// admit takes a place of addr for e, or says why there is none.
func (l *Listener) admit(e *Conn, addr netip.Addr) http1.Refusal {
	l.mu.Lock()
	full := l.settled >= l.cfg.Limits.Conns
	crowded := false
	if !full && !address.IsUnlimited(addr, l.cfg.Trusted) {
		e.counted = address.Counted(addr)
		crowded = !l.addresses.add(e.counted, l.cfg.Limits.PerAddress)
		if crowded {
			e.counted = netip.Prefix{}
		}
	}
	l.mu.Unlock()
	switch {
	case full:
		l.warnFull()
		return refuseFull
	case crowded:
		l.warnings.crowded.Do(func() {
			l.cfg.Log.Warn("an address has too many connections, and is refused more; if it is a proxy, name it in trusted-proxies",
				"network", address.Network(addr), "limit", l.cfg.Limits.PerAddress)
		})
		return refuseCrowded
	}
	return http1.Refusal{}
}

func (l *Listener) warnFull() {
	l.warnings.full.Do(func() {
		l.cfg.Log.Warn("the limit of client connections is reached, and more are refused", "limit", l.cfg.Limits.Conns)
	})
}

// handOut has e served.
func (l *Listener) handOut(e *Conn) {
	l.mu.Lock()
	full := l.settled >= l.cfg.Limits.Conns
	if !full {
		e.settled = true
		if l.settled++; l.settled == 1 {
			l.looks.Reset(lookEvery)
		}
	}
	l.mu.Unlock()
	if full {
		l.warnFull()
		l.turnAway(e, refuseFull)
		return
	}
	select {
	case <-l.closed:
		e.Close()
	default:
		go l.each(e) // waited for by l.open
	}
}

// turnAway closes e. Clients are told why, if there are not too many of them: under TLS, that
// takes a handshake.
func (l *Listener) turnAway(e *Conn, no http1.Refusal) {
	select {
	case l.polite <- struct{}{}:
	default:
		e.Close()
		return
	}
	go func() { // waited for by l.open
		defer func() { <-l.polite }()
		defer e.Close()
		if l.cfg.TLS != nil {
			t := secure(e.Conn, l.cfg.TLS)
			e.raw.SetDeadline(time.Now().Add(politeTime))
			if t.Handshake() != nil {
				return
			}
			e.Conn = t.Conn
		}
		e.linger.Store(true)
		e.Write(l.cfg.Refuse(no))
	}()
}

// Abort cuts what is open off and returns how many those were. Who uses such a
// connection finds out, and closes it.
func (l *Listener) Abort() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := range l.conns {
		e.linger.Store(false)
		e.raw.Close() // below TLS: says no goodbye, for which it might wait
	}
	return len(l.conns)
}

// Serving returns how many connections are served.
func (l *Listener) Serving() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled
}

func (l *Listener) forget(e *Conn) {
	l.mu.Lock()
	delete(l.conns, e)
	if e.settled {
		l.settled--
	}
	if e.counted.IsValid() {
		l.addresses.remove(e.counted)
	}
	l.mu.Unlock()
	l.open.Done()
}

// addressCounts counts connections by the address that a visitor has. An IPv6
// visitor has a whole /64, so all of it is one address.
type addressCounts map[netip.Prefix]int

// add counts one more for p, and reports whether that was within limit; if not,
// nothing is counted. Addresses that cannot be told are not limited.
func (c addressCounts) add(p netip.Prefix, limit int) bool {
	if !p.IsValid() {
		return true
	}
	if c[p] >= limit {
		return false
	}
	c[p]++
	return true
}

func (c addressCounts) remove(p netip.Prefix) {
	if c[p]--; c[p] <= 0 {
		delete(c, p)
	}
}
