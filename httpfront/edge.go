package httpfront

import (
	"crypto/tls"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/httpfront/deadline"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// edgeConn is a client's connection. The server sets one deadline for a whole
// message; for bodies, which may take hours, that is turned into a limit on
// every pause:
//
//   - each write has its own deadline, whatever was set;
//   - reads have the deadline that was set, until roll.
type edgeConn struct {
	net.Conn          // with what is around raw; final when the connection is handed out
	raw      net.Conn // below TLS and the rest
	secure   bool     // a proxy says that the visitor speaks TLS with it; final like Conn
	owner    *edgeListener
	pause    atomic.Int64 // ns between two reads; 0: as set, cutOff: no more
	pace     pace         // since roll; belongs to who reads
	slow     atomic.Bool  // whether any pace will do, until roll
	linger   atomic.Bool  // whether the client may still be sending when we close
	reads    *deadline.Lazy
	writes   *deadline.Lazy // not of TLS, which cannot go on after a write that timed out
	once     sync.Once
	err      error // of Close

	peer   netip.Addr // of Conn; invalid until a request has asked; belongs to who handles it
	memory memory     // belongs to who handles a request

	answered bool  // the next write is no more than what the server believes to answer with
	answer   error // of the real answer

	kept atomic.Pointer[upstream.Conn] // to an origin that takes it for this client; see own

	fast fastConn

	// The places that the connection has; guarded by owner.mu.
	counted netip.Prefix // the address that it counts for; invalid for none
	settled bool         // whether it was handed out

	mu      sync.Mutex // guards the following
	closed  bool
	cleanup func() // to be called by Close; nil for nothing
}

// newEdgeConn returns the connection around c, which has no deadline.
func newEdgeConn(c net.Conn, owner *edgeListener) *edgeConn {
	e := &edgeConn{Conn: c, raw: c, owner: owner}
	e.reads = deadline.New(func(t time.Time) error { return e.Conn.SetReadDeadline(t) })
	e.writes = deadline.New(c.SetWriteDeadline)
	return e
}

// atEnd has f called once the connection is closed, whoever closes it. That is
// how a connection that leaves the server gives back what it holds: the server
// does not call what was to take it over if it could not write until then.
func (e *edgeConn) atEnd(f func()) {
	e.mu.Lock()
	closed := e.closed
	e.cleanup = f
	e.mu.Unlock()
	if closed {
		f()
	}
}

// finish calls what atEnd was given.
func (e *edgeConn) finish() {
	e.mu.Lock()
	f := e.cleanup
	e.closed = true
	e.mu.Unlock()
	if f != nil {
		f()
	}
}

const cutOff = -1

// secureConn is an edgeConn around TLS, with what the server knows TLS by. The
// handshake is over when the server gets it.
type secureConn struct {
	*edgeConn
	tls *tls.Conn
}

// Handshake does nothing: the handshake is over.
func (c *secureConn) Handshake() error { return nil }

// ConnectionState describes the TLS connection.
func (c *secureConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// How long a client may still send before it is cut off, whatever that is: all in all, between
// two pieces, and if it has no place here.
const (
	lingerTime  = 30 * time.Second
	lingerPause = 5 * time.Second
	politeTime  = time.Second
)

// edgeOf returns the edgeConn below c, or nil if there is none.
func edgeOf(c net.Conn) *edgeConn {
	switch c := c.(type) {
	case *edgeConn:
		return c
	case *secureConn:
		return c.edgeConn
	case interface{ UnsafeConn() net.Conn }: // hijacked
		return edgeOf(c.UnsafeConn())
	}
	return nil
}

// roll makes every read take at most pause, and all of them together bring at
// least Limits.BodyRate, until the next SetReadDeadline. Nobody may be reading.
func (e *edgeConn) roll(pause time.Duration) {
	e.pace = pace{}
	e.slow.Store(false)
	e.pause.Store(int64(pause))
}

// anyPace lifts the limit on how slowly a body may come, until the next roll. The
// limit on pauses stays.
func (e *edgeConn) anyPace() { e.slow.Store(true) }

// isSecure reports whether the peer speaks TLS with us, or with the proxy that it is.
func (e *edgeConn) isSecure() bool {
	_, speaks := e.Conn.(*tls.Conn)
	return e.secure || speaks
}

// stop ends a read that is under way, and all later ones.
func (e *edgeConn) stop() {
	e.pause.Store(cutOff)
	e.reads.Set(time.Unix(1, 0))
}

// SetReadDeadline sets a deadline for all reads from now on.
func (e *edgeConn) SetReadDeadline(t time.Time) error {
	e.pause.Store(0)
	e.fast.deadlineSet()
	return e.reads.Set(t)
}

// SetWriteDeadline does nothing: every write sets its own.
func (e *edgeConn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the deadline for reads.
func (e *edgeConn) SetDeadline(t time.Time) error { return e.SetReadDeadline(t) }

// Read reads what has come.
func (e *edgeConn) Read(p []byte) (int, error) {
	pause := time.Duration(e.pause.Load())
	if e.fast.maySee(p) {
		return e.readFast(p)
	}
	if pause == 0 {
		return e.read(p)
	}
	start := time.Now()
	if pause > 0 {
		if err := e.reads.Set(start.Add(pause)); err != nil {
			return 0, err
		}
	}
	// Looking again after setting the deadline, so that a stop in between is not
	// undone.
	if e.pause.Load() == cutOff {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := e.read(p)
	if err == nil && !e.slow.Load() && !e.pace.keeps(n, time.Since(start), e.owner.cfg.limits.BodyRate, paceSpan*pause) {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

// read reads what has come by the deadline that is set.
func (e *edgeConn) read(p []byte) (int, error) {
	for {
		n, err := e.Conn.Read(p)
		if !e.reads.Again(err) {
			return n, err
		}
	}
}

// Write sends p.
func (e *edgeConn) Write(p []byte) (int, error) {
	if e.answered {
		e.answered = false
		return len(p), e.answer
	}
	now := time.Now()
	e.fast.wrote = now
	until := now.Add(e.owner.cfg.write)
	if e.Conn != e.raw { // TLS, or a PROXY header
		if err := e.Conn.SetWriteDeadline(until); err != nil {
			return 0, err
		}
		return e.Conn.Write(p)
	}
	if err := e.writes.Set(until); err != nil {
		return 0, err
	}
	sent := 0
	for {
		n, err := e.Conn.Write(p[sent:])
		if sent += n; !e.writes.Again(err) {
			return sent, err
		}
	}
}

// Answer sends p as the answer to the request that is handled. If the server has that request,
// it is in place of the one that the server is about to send by a single write. To be called by
// who handles it.
func (e *edgeConn) Answer(p []byte) {
	_, e.answer = e.Write(p)
	e.answered = !e.fast.serving()
}

// CloseWrite says that nothing more will be sent.
func (e *edgeConn) CloseWrite() error {
	if c, ok := e.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// Close closes the connection, once; a request that the server does not know of is answered first.
func (e *edgeConn) Close() error {
	if e.fast.closes() {
		return nil
	}
	e.once.Do(func() {
		if e.linger.Load() {
			e.drain()
		}
		e.err = e.Conn.Close()
		e.finish()
		e.dropKept()
		e.owner.forget(e)
	})
	e.fast.giveUp(0) // also what was left after it had been closed
	return e.err
}

// drain takes in what the client is still sending. If we closed with bytes
// unread, the kernel would answer with a reset, and the client might lose our
// answer, which says why.
func (e *edgeConn) drain() {
	e.owner.mu.Lock()
	end := time.Now().Add(politeTime)
	if e.settled {
		end = end.Add(lingerTime - politeTime)
	}
	e.owner.mu.Unlock()
	if e.CloseWrite() != nil {
		return
	}
	var buf [4096]byte
	for {
		until := time.Now().Add(lingerPause)
		if until.After(end) {
			until = end
		}
		if e.Conn.SetReadDeadline(until) != nil {
			return
		}
		if _, err := e.Conn.Read(buf[:]); err != nil {
			return
		}
	}
}
