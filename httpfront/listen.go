package httpfront

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/httpfront/conn/socket"
	"github.com/ropeline/ropeline/httpfront/http1"
)

// edgeConfig says how an edgeListener takes connections. All of it is given.
type edgeConfig struct {
	tls     *tls.Config    // nil for plain connections
	proxied []netip.Prefix // peers whose connections begin with a PROXY header
	trusted []netip.Prefix // peers without a limit of their own
	limits  *Limits
	head    time.Duration // for what comes before the first request
	write   time.Duration // longest time for one write
	log     *slog.Logger
	records bool // whether requests are those of the site: counted, logged and traced
}

// edgeListener has edgeConns that are ready for a first request served, and knows
// which are open, so that a shutdown can end those that do not end by themselves.
//
// A connection takes a place of three kinds: one of its address as soon as that
// is known, one among those that are being prepared (see prelude.go), and once it
// is handed out one among all.
type edgeListener struct {
	net.Listener
	cfg    edgeConfig
	each   func(*edgeConn) // serves a connection, and closes it; runs in a goroutine of its own
	closed chan struct{}   // by Close
	once   sync.Once       // of Close

	warnings edgeWarnings
	polite   chan struct{} // one element for each connection that is told why it is refused

	open sync.WaitGroup // one for each connection that its user has not closed

	mu        sync.Mutex // guards the following
	conns     map[*edgeConn]struct{}
	preparing list.List // of *edgeConn, the oldest first
	settled   int       // conns that were handed out
	addresses addressCounts
}

// edgeWarnings keep what a flood does from filling the log.
type edgeWarnings struct{ full, crowded, preparing, header rate.Sometimes }

const (
	warnEvery = time.Minute

	// politeMax is how many refused clients are told why at a time. Each costs a
	// goroutine for up to twice politeTime.
	politeMax = 128
)

// newEdgeListener returns a listener whose connections each serves.
func newEdgeListener(ln net.Listener, cfg edgeConfig, each func(*edgeConn)) *edgeListener {
	l := &edgeListener{
		Listener: ln, cfg: cfg, each: each,
		closed:    make(chan struct{}),
		polite:    make(chan struct{}, politeMax),
		conns:     map[*edgeConn]struct{}{},
		addresses: addressCounts{},
	}
	w := &l.warnings
	for _, s := range []*rate.Sometimes{&w.full, &w.crowded, &w.preparing, &w.header} {
		s.Interval = warnEvery
	}
	return l
}

// serve serves until ctx ends or nothing more can be accepted, and then calls end, which lets
// requests end and cuts off what is left. It returns when nothing of either is left.
func (l *edgeListener) serve(ctx context.Context, end func()) error {
	accepting := make(chan error, 1)
	go func() { accepting <- l.accept() }()
	var err error
	select {
	case <-ctx.Done():
		l.Close()
		end()
		err = <-accepting
	case err = <-accepting:
		l.Close()
		end()
	}
	l.open.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// accept takes connections until the listener is closed or broken.
func (l *edgeListener) accept() error {
	for {
		c, err := l.acceptPatiently()
		if err != nil {
			return err
		}
		l.take(c)
	}
}

// quiesce ends connections that have no request, and waits until the requests of the others have
// been answered, or ctx ends. The front is draining, so that each is the last of its connection;
// what was upgraded is no request any more.
func (l *edgeListener) quiesce(ctx context.Context) error {
	l.mu.Lock()
	var conns []*edgeConn
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
func (l *edgeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	err := l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := l.preparing.Front(); i != nil; i = i.Next() {
		i.Value.(*edgeConn).raw.Close()
	}
	return err
}

// isClosed reports whether Close was called.
func (l *edgeListener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// Pauses before another try to accept. Descriptors come free when a request or
// an idle connection ends, so long pauses would only lengthen the outage.
const (
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = 200 * time.Millisecond
)

// acceptPatiently waits for the next connection. A crowd that uses up the descriptors or the
// kernel's buffers must not cost the visitors who are being served.
func (l *edgeListener) acceptPatiently() (net.Conn, error) {
	for pause := acceptPauseMin; ; pause = min(2*pause, acceptPauseMax) {
		c, err := l.Listener.Accept()
		if err == nil || !isShortage(err) {
			return c, err
		}
		if pause == acceptPauseMin {
			l.cfg.log.Warn("no connection can be accepted now; if this happens again, raise the limit of open files", "error", err)
		}
		select {
		case <-time.After(pause):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
}

// isShortage reports whether accepting failed for want of something that comes
// back, or because the client went away.
func isShortage(err error) bool {
	for _, e := range [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// take makes c ready and hands it out, or turns it away. It never waits for the
// client.
func (l *edgeListener) take(c net.Conn) {
	e := newEdgeConn(socket.New(c), l)
	l.open.Add(1)
	l.mu.Lock()
	l.conns[e] = struct{}{}
	l.mu.Unlock()

	peer := addrOf(c.RemoteAddr())
	if contains(l.cfg.proxied, peer) {
		l.prepare(e, peer, true)
		return
	}
	if no := l.admit(e, peer); no.Code != 0 {
		l.turnAway(e, no)
		return
	}
	if l.cfg.tls != nil {
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
func (l *edgeListener) admit(e *edgeConn, addr netip.Addr) http1.Refusal {
	l.mu.Lock()
	full := l.settled >= l.cfg.limits.Conns
	crowded := false
	if !full && !isUnlimited(addr, l.cfg.trusted) {
		e.counted = addressOf(addr)
		crowded = !l.addresses.add(e.counted, l.cfg.limits.ConnsPerAddress)
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
			l.cfg.log.Warn("an address has too many connections, and is refused more; if it is a proxy, name it in trusted-proxies",
				"network", networkOf(addr), "limit", l.cfg.limits.ConnsPerAddress)
		})
		return refuseCrowded
	}
	return http1.Refusal{}
}

func (l *edgeListener) warnFull() {
	l.warnings.full.Do(func() {
		l.cfg.log.Warn("the limit of client connections is reached, and more are refused", "limit", l.cfg.limits.Conns)
	})
}

// handOut has e served.
func (l *edgeListener) handOut(e *edgeConn) {
	l.mu.Lock()
	full := l.settled >= l.cfg.limits.Conns
	if !full {
		e.settled = true
		l.settled++
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
func (l *edgeListener) turnAway(e *edgeConn, no http1.Refusal) {
	select {
	case l.polite <- struct{}{}:
	default:
		e.Close()
		return
	}
	go func() { // waited for by l.open
		defer func() { <-l.polite }()
		defer e.Close()
		if l.cfg.tls != nil {
			t := tls.Server(e.Conn, l.cfg.tls)
			e.raw.SetDeadline(time.Now().Add(politeTime))
			if t.Handshake() != nil {
				return
			}
			e.Conn = t
		}
		e.linger.Store(true)
		e.Write(turnedAway(no, time.Now()))
	}()
}

// abort cuts what is open off and returns how many those were. Who uses such a
// connection finds out, and closes it.
func (l *edgeListener) abort() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := range l.conns {
		e.linger.Store(false)
		e.raw.Close() // below TLS: says no goodbye, for which it might wait
	}
	return len(l.conns)
}

func (l *edgeListener) forget(e *edgeConn) {
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
