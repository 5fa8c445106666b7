package relay

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/httpfront/upstream"
)

// Watch is told of bytes that flow, by several goroutines at once.
type Watch interface {
	// Moved notes that bytes have flowed.
	Moved()
	// Wake returns quiet, or when the goroutine that moves them shall look again, if that is sooner.
	Wake(quiet time.Time) time.Time
}

// pieceMax is the longest piece in which bytes are moved.
const pieceMax = 16 << 10

var pieces = sync.Pool{New: func() any { return new([pieceMax]byte) }}

// lastWords is how long one direction may go on after the other has ended, for
// the last words of a closing handshake.
const lastWords = 5 * time.Second

// Join copies between the visitor's connection, of which early was read already, and the origin's
// until either ends, or nothing has moved for idle in both directions. It closes neither.
// A panic ends the one tunnel, and panicked is told. What it copies keeps active. It may be ended by ending.
func Join(client net.Conn, early []byte, origin *upstream.Conn, idle time.Duration, active Watch, ending *Ending, panicked func(any)) {
	// What came right behind the origin's head is in the buffer. From there on the
	// connection is read directly, because deadlines are set on it here.
	begun := origin.DropReader()
	t := traffic{active: active, panicked: panicked}
	t.last.Store(time.Now().UnixNano())
	ending.begin(client, func() { t.finish(client, origin.Conn) })
	var wg sync.WaitGroup
	wg.Go(func() {
		t.pump(ending, io.MultiReader(bytes.NewReader(begun), origin.Conn), origin.Conn, idle)
		closeWrite(client)
		t.finish(client, origin.Conn)
	})
	t.pump(origin, io.MultiReader(bytes.NewReader(early), client), client, idle)
	closeWrite(origin.Conn)
	t.finish(client, origin.Conn)
	wg.Wait()
}

// traffic is what the two directions of a tunnel know of each other.
type traffic struct {
	last     atomic.Int64 // ns since 1970 of the last byte in either direction
	ended    atomic.Bool
	active   Watch
	panicked func(any)
}

// touch notes that bytes have come.
func (t *traffic) touch() {
	t.last.Store(time.Now().UnixNano())
	t.active.Moved()
}

// finish bounds what is left once one direction has ended.
func (t *traffic) finish(conns ...net.Conn) {
	t.ended.Store(true)
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(lastWords))
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
		until := t.active.Wake(quiet)
		if !t.ended.Load() {
			conn.SetReadDeadline(until)
			if t.ended.Load() {
				conn.SetReadDeadline(time.Now().Add(lastWords))
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
	large *[pieceMax]byte // nil: the small one is used
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
		b.large = pieces.Get().(*[pieceMax]byte)
	}
}

func (b *tunnelBuffer) shrink() {
	if b.large != nil {
		pieces.Put(b.large)
		b.large = nil
	}
}

func closeWrite(c net.Conn) {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		w.CloseWrite()
	}
}
