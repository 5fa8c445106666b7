package httpfront

import (
	"bufio"
	"sync"
	"sync/atomic"

	"github.com/ropeline/ropeline/httpfront/edge"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

// client is a client's connection while its requests are answered. It belongs to the goroutine that
// does that.
type client struct {
	*edge.Conn
	records  bool          // whether requests are those of the site: counted, logged and traced
	requests int           // that have begun
	in       *bufio.Reader // what has come; nil while nothing has
	body     *http1.Body   // of the request, read from in; nil: it has none
	back     int           // bytes of the body that were put back for as long as the request waits

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
		e.goOn()
		return
	}
	e.rest()
	e.Asks(w)
}

// rest gives the reader of e back for as long as a request with a body waits: what has come of that is mostly little, and what waits
// are as many as there are connections.
func (e *client) rest() {
	if e.body == nil || e.in == nil {
		return
	}
	come, _ := e.in.Peek(e.in.Buffered())
	if e.back = len(come); e.PutBack(come) {
		e.freeReader()
	}
}

// goOn ends a rest.
func (e *client) goOn() {
	if e.body == nil || e.in != nil {
		return
	}
	e.takeReader()
	e.in.Peek(e.back) // which are there without waiting
	e.body.From(e.in)
}

// takeReader has e have a reader.
func (e *client) takeReader() {
	e.in = readers.Get().(*bufio.Reader)
	e.in.Reset(e)
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
