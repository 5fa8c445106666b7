package httpfront

import (
	"bufio"
	"sync"
	"sync/atomic"

	"github.com/ropeline/ropeline/httpfront/edge"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// client is a client's connection while its requests are answered. It belongs to the goroutine that
// does that.
type client struct {
	*edge.Conn
	records  bool          // whether requests are those of the site: counted, logged and traced
	requests int           // that have begun
	in       *bufio.Reader // what has come; nil while nothing has

	kept   atomic.Pointer[upstream.Conn] // to an origin that takes it for this client; see own
	closed atomic.Bool

	memory memory // of the request before
}

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}

// asks says that an origin works on a request of e, on a connection that ends when the client has left; nil: none does.
// A nil e is nobody who can leave.
func (e *client) asks(c *upstream.Conn) {
	switch {
	case e == nil:
	case c == nil:
		e.Asks(nil)
	default:
		e.Asks(c)
	}
}

// Waits implements upstream.Client.
func (e *client) Waits(w *upstream.Waiting) {
	if w == nil {
		e.Asks(nil)
		return
	}
	e.Asks(w)
}

// hasLeft reports whether a connection to an origin, or the wait for one, was ended for that.
func (e *client) hasLeft() bool { return e != nil && e.HasLeft() }

// freeReader gives the reader of e back. What it holds is lost.
func (e *client) freeReader() {
	if e.in != nil {
		e.in.Reset(nil)
		readers.Put(e.in)
		e.in = nil
	}
}

// keep has e keep a connection to an origin, in place of the one that it has.
func (e *client) keep(c *upstream.Conn) {
	if before := e.kept.Swap(c); before != nil {
		before.Drop()
	}
	if e.closed.Load() {
		e.dropKept()
	}
}

// dropKept closes the connection that e keeps, if there is one.
func (e *client) dropKept() {
	if c := e.kept.Swap(nil); c != nil {
		c.Drop()
	}
}

// Close closes the connection, and that to an origin which it keeps.
func (e *client) Close() error {
	e.closed.Store(true)
	e.dropKept()
	return e.Conn.Close()
}
