package httpfront

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// edgeConn is a client's connection. The server sets one deadline for a whole
// message; for bodies, which may take hours, that is turned into a limit on
// every pause:
//
//   - each write has its own deadline, whatever was set;
//   - reads have the deadline that was set, until roll.
//
// A client that sends a byte now and then never pauses for long. rollUntil is
// for that: it is moved on as bytes of the body come, and by nothing else.
type edgeConn struct {
	net.Conn
	owner  *edgeListener
	pause  atomic.Int64 // ns between two reads; 0: as set, cutOff: no more
	until  atomic.Int64 // ns since 1970, when pauses end whatever has come; 0: never
	linger atomic.Bool  // whether the client may still be sending when we close
	once   sync.Once
	err    error // of Close

	mu      sync.Mutex // guards the following
	closed  bool
	cleanup func() // to be called by Close; nil for nothing
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

// secureConn is an edgeConn around TLS, with what the server knows TLS by.
type secureConn struct {
	*edgeConn
	tls    *tls.Conn
	shaken atomic.Bool // whether Write has seen that the handshake was over
}

var errNoHandshake = errors.New("the TLS handshake has not taken place")

// Write sends p, unless the handshake has still to come: it would wait for the
// client. The server writes so early only to turn away whom it has no room for,
// and does that where it accepts, so that one silent client would hold up all.
func (c *secureConn) Write(p []byte) (int, error) {
	if !c.shaken.Load() {
		if !c.tls.ConnectionState().HandshakeComplete {
			return 0, errNoHandshake
		}
		c.shaken.Store(true)
	}
	return c.edgeConn.Write(p)
}

// Handshake runs the TLS handshake if it has not run yet.
func (c *secureConn) Handshake() error { return c.tls.Handshake() }

// ConnectionState describes the TLS connection.
func (c *secureConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// Limits of what a client that is refused may still send before it is cut off.
const (
	lingerTime  = time.Second
	lingerBytes = 1 << 20
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

// roll makes every read take at most pause, until the next SetReadDeadline.
func (e *edgeConn) roll(pause time.Duration) {
	e.until.Store(0)
	e.pause.Store(int64(pause))
}

// rollUntil bounds all pauses to come by one moment; the zero time bounds them no
// more.
func (e *edgeConn) rollUntil(t time.Time) {
	if t.IsZero() {
		e.until.Store(0)
	} else {
		e.until.Store(t.UnixNano())
	}
}

// stop ends a read that is under way, and all later ones.
func (e *edgeConn) stop() {
	e.pause.Store(cutOff)
	e.Conn.SetReadDeadline(time.Unix(1, 0))
}

// SetReadDeadline sets a deadline for all reads from now on.
func (e *edgeConn) SetReadDeadline(t time.Time) error {
	e.pause.Store(0)
	return e.Conn.SetReadDeadline(t)
}

// SetWriteDeadline does nothing: every write sets its own.
func (e *edgeConn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the deadline for reads.
func (e *edgeConn) SetDeadline(t time.Time) error { return e.SetReadDeadline(t) }

// Read reads what has come.
func (e *edgeConn) Read(p []byte) (int, error) {
	if pause := e.pause.Load(); pause != 0 {
		if pause > 0 {
			deadline := time.Now().Add(time.Duration(pause))
			if until := e.until.Load(); until != 0 && until < deadline.UnixNano() {
				deadline = time.Unix(0, until)
			}
			if err := e.Conn.SetReadDeadline(deadline); err != nil {
				return 0, err
			}
		}
		// Looking again after setting the deadline, so that a stop in between
		// is not undone.
		if e.pause.Load() == cutOff {
			return 0, os.ErrDeadlineExceeded
		}
	}
	return e.Conn.Read(p)
}

// Write sends p.
func (e *edgeConn) Write(p []byte) (int, error) {
	if err := e.Conn.SetWriteDeadline(time.Now().Add(e.owner.write)); err != nil {
		return 0, err
	}
	return e.Conn.Write(p)
}

// CloseWrite says that nothing more will be sent.
func (e *edgeConn) CloseWrite() error {
	if c, ok := e.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// Close closes the connection, once.
func (e *edgeConn) Close() error {
	e.once.Do(func() {
		if e.linger.Load() {
			e.drain()
		}
		e.err = e.Conn.Close()
		e.finish()
		e.owner.forget(e)
	})
	return e.err
}

// drain takes in what the client is still sending. If we closed with bytes
// unread, the kernel would answer with a reset, and the client might lose our
// answer, which says why.
func (e *edgeConn) drain() {
	if e.CloseWrite() != nil || e.Conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	var buf [4096]byte
	for left := lingerBytes; left > 0; {
		n, err := e.Conn.Read(buf[:])
		if left -= n; err != nil {
			return
		}
	}
}
