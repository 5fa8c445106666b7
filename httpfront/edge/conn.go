package edge

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/httpfront/conn/address"
	"github.com/ropeline/ropeline/httpfront/conn/deadline"
	"github.com/ropeline/ropeline/httpfront/conn/socket"
)

// Conn is a client's connection. Each write has a deadline of its own. Reads have the
// one that was set for all of a head; for bodies, which may take hours, Roll turns it into a
// limit on every pause.
type Conn struct {
	net.Conn          // with what is around raw; final when the connection is handed out
	raw      net.Conn // below TLS and the rest
	secure   bool     // a proxy says that the visitor speaks TLS with it; final like Conn
	owner    *Listener

	reading
	asking
	writes deadline.Lazy // not of TLS, which cannot go on after a write that timed out
	peer   netip.Addr    // of Conn; invalid until who serves it has asked
	ending

	// The places that the connection has; guarded by owner.mu.
	counted netip.Prefix // the address that it counts for; invalid for none
	settled bool         // whether it was handed out
}

// reading is how long reads may take.
type reading struct {
	reads deadline.Lazy
	pause atomic.Int64 // ns between two reads; 0: as set, cutOff: no more
	pace  pace         // since Roll; belongs to who reads
	slow  atomic.Bool  // whether any pace will do, until Roll

	// What await has read, to be read before all else.
	early *socket.Buffer // nil: nothing
	first [1]byte        // if apart
	apart bool
}

// ending is how a connection ends.
type ending struct {
	use    atomic.Int32  // what it is used for: idle, busy, retired
	over   chan struct{} // closed once no request is to be waited for: none comes any more
	ends   sync.Once     // closes over
	linger atomic.Bool   // whether the client may still be sending when we close
	once   sync.Once     // of Close
	err    error         // of Close
}

// newEdgeConn returns the connection around c, which has no deadline.
func newEdgeConn(c net.Conn, owner *Listener) *Conn {
	e := &Conn{Conn: c, raw: c, owner: owner, ending: ending{over: make(chan struct{})}}
	e.reads.Arm = func(t time.Time) error { return e.Conn.SetReadDeadline(t) }
	e.writes.Arm = c.SetWriteDeadline
	return e
}

const cutOff = -1

// How long a client may still send before it is cut off, whatever that is: all in all, between
// two pieces, and if it has no place here.
const (
	lingerTime  = 30 * time.Second
	lingerPause = 5 * time.Second
	politeTime  = time.Second
)

// What a connection is used for, as far as who ends it needs to know.
const (
	idle    int32 = iota // it waits for a request
	busy                 // a request is under way
	retired              // there are no more requests
)

// Awaits waits for a request for up to pause, and reports whether one begins to come. From then on
// it is under way.
func (e *Conn) Awaits(pause time.Duration) bool {
	if e.SetReadDeadline(time.Now().Add(pause)) != nil {
		return false
	}
	e.use.CompareAndSwap(busy, idle)
	return !e.owner.isClosed() && e.await() == nil && e.use.CompareAndSwap(idle, busy)
}

// receiver is a connection that takes no buffer before something has come.
type receiver interface {
	Receive() (*socket.Buffer, error)
}

// await waits until something has come.
func (e *Conn) await() (err error) {
	if c, ok := e.Conn.(receiver); ok {
		for {
			if e.early, err = c.Receive(); !e.reads.Again(err) {
				return err
			}
		}
	}
	_, err = io.ReadFull(e, e.first[:])
	e.apart = err == nil
	return err
}

// PutBack has p, which was read, be read once more, and reports whether there is room for it.
func (e *Conn) PutBack(p []byte) bool {
	if len(p) == 0 || e.early != nil || e.apart {
		return len(p) == 0
	}
	e.early = socket.Holding(p)
	return e.early != nil
}

// retire ends a connection that waits for a request. One that has a request ends after it, since
// the front is draining. What was upgraded has ended for all who wait for requests.
func (e *Conn) retire() {
	if e.use.CompareAndSwap(idle, retired) {
		e.reads.Set(time.Unix(1, 0))
	}
}

// Requestless says that no request on e is to be waited for from now on.
func (e *Conn) Requestless() { e.ends.Do(func() { close(e.over) }) }

// PeerAddr returns who is connected to us, or to the proxy that says so in a PROXY header.
func (e *Conn) PeerAddr() netip.Addr {
	if !e.peer.IsValid() {
		if e.peer = address.Of(e.RemoteAddr()); !e.peer.IsValid() {
			e.peer = netip.IPv4Unspecified()
		}
	}
	return e.peer
}

// Roll makes every read take at most pause, and all of them together bring at
// least Limits.BodyRate, until the next SetReadDeadline. Nobody may be reading.
func (e *Conn) Roll(pause time.Duration) {
	e.pace = pace{}
	e.slow.Store(false)
	e.pause.Store(int64(pause))
}

// Lingers says whether the client may still be sending when the connection is closed.
func (e *Conn) Lingers(may bool) { e.linger.Store(may) }

// AnyPace lifts the limit on how slowly a body may come, until the next Roll. The
// limit on pauses stays.
func (e *Conn) AnyPace() { e.slow.Store(true) }

// IsSecure reports whether the peer speaks TLS with us, or with the proxy that it is.
func (e *Conn) IsSecure() bool {
	_, speaks := e.Conn.(*tls.Conn)
	return e.secure || speaks
}

// Stop ends a read that is under way, and all later ones.
func (e *Conn) Stop() {
	e.pause.Store(cutOff)
	e.reads.Set(time.Unix(1, 0))
}

// SetReadDeadline sets a deadline for all reads from now on.
func (e *Conn) SetReadDeadline(t time.Time) error {
	e.pause.Store(0)
	return e.reads.Set(t)
}

// Read reads what has come.
func (e *Conn) Read(p []byte) (int, error) {
	pause := time.Duration(e.pause.Load())
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
	if err == nil && !e.slow.Load() && !e.pace.keeps(n, time.Since(start), e.owner.cfg.Limits.BodyRate, paceSpan*pause) {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

// read reads what has come by the deadline that is set.
func (e *Conn) read(p []byte) (int, error) {
	if e.early != nil {
		n, more := e.early.Take(p)
		if !more {
			socket.Free(e.early)
			e.early = nil
		}
		return n, nil
	}
	if e.apart && len(p) > 0 {
		e.apart, p[0] = false, e.first[0]
		return 1, nil
	}
	for {
		n, err := e.Conn.Read(p)
		if !e.reads.Again(err) {
			return n, err
		}
	}
}

// Write sends p.
func (e *Conn) Write(p []byte) (int, error) {
	until := time.Now().Add(e.owner.cfg.Write)
	if e.Conn != e.raw { // TLS, or a PROXY header
		if err := e.Conn.SetWriteDeadline(until); err != nil {
			return 0, err
		}
		return e.Conn.Write(p)
	}
	return e.writes.Write(e.Conn, p, until)
}

// CloseWrite says that nothing more will be sent.
func (e *Conn) CloseWrite() error {
	if c, ok := e.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// Close closes the connection, once.
func (e *Conn) Close() error {
	e.once.Do(func() {
		e.Requestless() // what lingers has been answered
		if e.linger.Load() {
			e.drain()
		}
		e.err = e.Conn.Close()
		e.owner.forget(e)
	})
	return e.err
}

// drain takes in what the client is still sending. If we closed with bytes
// unread, the kernel would answer with a reset, and the client might lose our
// answer, which says why.
func (e *Conn) drain() {
	e.owner.mu.Lock()
	end := time.Now().Add(politeTime)
	if e.settled {
		end = end.Add(lingerTime - politeTime)
	}
	e.owner.mu.Unlock()
	if e.CloseWrite() != nil {
		return
	}
	c, ok := e.Conn.(receiver)
	var buf []byte
	if !ok {
		buf = make([]byte, 4<<10)
	}
	for {
		until := time.Now().Add(lingerPause)
		if until.After(end) {
			until = end
		}
		if e.Conn.SetReadDeadline(until) != nil {
			return
		}
		var err error
		if ok { // many connections may linger, and nothing comes on most of them
			var b *socket.Buffer
			b, err = c.Receive()
			socket.Free(b)
		} else {
			_, err = e.Conn.Read(buf)
		}
		if err != nil {
			return
		}
	}
}
