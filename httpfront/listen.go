package httpfront

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// edgeListener hands out edgeConns and knows which are open, so that a shutdown
// can end those that do not end by themselves.
type edgeListener struct {
	net.Listener
	tls    *tls.Config   // nil for plain connections
	write  time.Duration // longest time for one write
	log    *slog.Logger
	closed chan struct{} // by Close
	once   sync.Once     // of Close

	open sync.WaitGroup // one for each connection that its user has not closed

	mu    sync.Mutex // guards the following
	conns map[*edgeConn]struct{}
}

func newEdgeListener(ln net.Listener, tls *tls.Config, write time.Duration, log *slog.Logger) *edgeListener {
	return &edgeListener{
		Listener: ln, tls: tls, write: write, log: log,
		closed: make(chan struct{}), conns: map[*edgeConn]struct{}{},
	}
}

// Close stops listening.
func (l *edgeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Pauses before another try to accept. Descriptors come free when a request or
// an idle connection ends, so long pauses would only lengthen the outage.
const (
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = 200 * time.Millisecond
)

// acceptPatiently waits for the next connection. The server takes every failure
// for the end of the listener, but a crowd that uses up the descriptors or the
// kernel's buffers must not cost the visitors who are being served.
func (l *edgeListener) acceptPatiently() (net.Conn, error) {
	for pause := acceptPauseMin; ; pause = min(2*pause, acceptPauseMax) {
		c, err := l.Listener.Accept()
		if err == nil || !isShortage(err) {
			return c, err
		}
		if pause == acceptPauseMin {
			l.log.Warn("no connection can be accepted now; if this happens again, raise the limit of open files", "error", err)
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

// Accept returns the next connection, as an edgeConn or a secureConn.
func (l *edgeListener) Accept() (net.Conn, error) {
	c, err := l.acceptPatiently()
	if err != nil {
		return nil, err
	}
	e := &edgeConn{Conn: c, owner: l}
	var out net.Conn = e
	if l.tls != nil {
		t := tls.Server(c, l.tls)
		e.Conn = t
		out = &secureConn{edgeConn: e, tls: t}
	}
	l.open.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[e] = struct{}{}
	return out, nil
}

// abort cuts what is open off and returns how many those were. Who uses such a
// connection finds out, and closes it.
func (l *edgeListener) abort() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := range l.conns {
		e.linger.Store(false)
		if t, ok := e.Conn.(*tls.Conn); ok {
			t.NetConn().Close() // says no goodbye, for which it might wait
		} else {
			e.Conn.Close()
		}
	}
	return len(l.conns)
}

func (l *edgeListener) forget(e *edgeConn) {
	l.mu.Lock()
	delete(l.conns, e)
	l.mu.Unlock()
	l.open.Done()
}
