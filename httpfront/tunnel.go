package httpfront

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/httpfront/observe/tracing"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// tunnel is a connection that was upgraded, and its origin's. It keeps nothing else of the request,
// since most tunnels say nothing most of the time, and last.
type tunnel struct {
	client *tunnelClient
	origin *upstream.Conn
	active *activity
	record *record
	call   *tracing.Call
}

// beginTunnel answers r with the origin's 101, and returns the tunnel; nil if the client has gone.
func (w *answer) beginTunnel(e *client, r *request) *tunnel {
	x := &w.origin
	w.out = w.appendHead(w.out[:0], r, false)
	if _, err := e.Write(w.out); err != nil {
		x.close(false)
		return nil
	}
	var early []byte
	if e.in != nil {
		early, _ = e.in.Peek(e.in.Buffered())
	}
	t := &tunnel{&tunnelClient{e, bytes.Clone(early)}, x.conn, x.active, r.handOver(w.code), x.call}
	x.conn = nil
	if t.active != nil {
		t.active.over = func() { e.Close() } // which ends both directions
	}
	return t
}

// run passes bytes on both ways, until that ends. The client's connection is not closed then.
func (t *tunnel) run(f *Front) {
	t.client.Requestless()
	t.client.freeReader()
	join(t.client, t.origin, f.cfg.Timeouts.Tunnel, t.active, f.logPanic)
	t.active.finish()
	t.origin.Discard()
	t.call.End(false)
	t.record.end(0)
}

// tunnelClient is a client's connection that has brought something already.
type tunnelClient struct {
	*client
	early []byte
}

// Read reads what has come.
func (c *tunnelClient) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	return c.client.Read(p)
}

// tunnelEnd is how long one direction may go on after the other has ended, for
// the last words of a closing handshake.
const tunnelEnd = 5 * time.Second

// join copies between the visitor's connection and the origin's until either
// ends, or nothing has moved for idle in both directions. It closes neither.
// A panic ends the one tunnel, and panicked is told. What it copies keeps active.
func join(client net.Conn, origin *upstream.Conn, idle time.Duration, active *activity, panicked func(any)) {
	// What came right behind the head is in the buffer. From there on the
	// connection is read directly, because deadlines are set on it here.
	early := origin.DropReader()
	t := traffic{active: active, panicked: panicked}
	t.last.Store(time.Now().UnixNano())
	var wg sync.WaitGroup
	wg.Go(func() {
		t.pump(client, io.MultiReader(bytes.NewReader(early), origin.Conn), origin.Conn, idle)
		closeWrite(client)
		t.finish(client, origin.Conn)
	})
	t.pump(origin, client, client, idle)
	closeWrite(origin.Conn)
	t.finish(client, origin.Conn)
	wg.Wait()
}

// traffic is what the two directions of a tunnel know of each other.
type traffic struct {
	last     atomic.Int64 // ns since 1970 of the last byte in either direction
	ended    atomic.Bool
	active   *activity // of the visitor
	panicked func(any)
}

// touch notes that bytes have come.
func (t *traffic) touch() {
	t.last.Store(time.Now().UnixNano())
	t.active.moved()
}

// finish bounds what is left once one direction has ended.
func (t *traffic) finish(conns ...net.Conn) {
	t.ended.Store(true)
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(tunnelEnd))
	}
}

// pump copies from src, which reads from conn, to dst.
func (t *traffic) pump(dst io.Writer, src io.Reader, conn net.Conn, idle time.Duration) {
	defer func() {
		if p := recover(); p != nil {
			t.panicked(p)
		}
	}()
	var buf tunnelBuffer
	defer buf.shrink()
	for {
		quiet := time.Unix(0, t.last.Load()).Add(idle)
		until := t.active.wake(quiet)
		if !t.ended.Load() {
			conn.SetReadDeadline(until)
			if t.ended.Load() {
				conn.SetReadDeadline(time.Now().Add(tunnelEnd))
			}
		}
		b := buf.bytes()
		n, err := src.Read(b)
		if n > 0 {
			t.touch()
			if _, err := dst.Write(b[:n]); err != nil {
				return
			}
		}
		buf.fit(n)
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && !t.ended.Load() && (until.Before(quiet) || t.last.Load() > quiet.Add(-idle).UnixNano()):
			// Quiet in this direction only, or not for long yet.
		default:
			return
		}
	}
}

// tunnelBuffer is small while little is said. Most tunnels say nothing most of
// the time, and thousands of them would each hold a large buffer twice.
type tunnelBuffer struct {
	small [512]byte
	large *[bufferSize]byte // nil: the small one is used
}

func (b *tunnelBuffer) bytes() []byte {
	if b.large != nil {
		return b.large[:]
	}
	return b.small[:]
}

// fit chooses the buffer for the next read by how much the last one brought.
func (b *tunnelBuffer) fit(n int) {
	switch {
	case n < len(b.small):
		b.shrink()
	case b.large == nil:
		b.large = buffers.Get().(*[bufferSize]byte)
	}
}

func (b *tunnelBuffer) shrink() {
	if b.large != nil {
		buffers.Put(b.large)
		b.large = nil
	}
}

func closeWrite(c net.Conn) {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		w.CloseWrite()
	}
}
