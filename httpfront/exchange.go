package httpfront

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/observe/tracing"
	"github.com/ropeline/ropeline/httpfront/relay"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

const (
	// bufferSize is the size of the buffers for heads, which it limits, and of
	// the pieces in which bodies are passed on.
	bufferSize = 16 << 10

	interimMax = 16 // responses like 103 before the real one

	// earlyWait is how long an upload may need to notice that it has ended after
	// the response to it has come.
	earlyWait = 10 * time.Millisecond
)

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// freeBuffer gives back a buffer that b begins, unless b has outgrown it.
func freeBuffer(b []byte) {
	if cap(b) == bufferSize {
		buffers.Put((*[bufferSize]byte)(b[:bufferSize]))
	}
}

// exchange is one request at the origin and the response to it. It is part of the answer, and
// good from begin until close.
type exchange struct {
	conn     *upstream.Conn
	client   *client // for whom; nil: nobody who can leave
	head     http1.Response
	up       *relay.Upload // nil if the request has no body
	reusable bool          // whether the origin will take another request
	owner    *client       // whose requests alone it will take; nil: anybody's
	active   *activity     // of the visitor; nil: the request is over too soon for it
	call     *tracing.Call // in the request's trace; nil: there is none
	body     originBody
}

// begin has x be a request on conn.
func (x *exchange) begin(a *admitted, conn *upstream.Conn) {
	x.client = a.req.edge
	x.client.asks(conn)
	x.conn, x.up, x.reusable, x.owner, x.active = conn, nil, false, nil, nil
	x.head.Reset()
	x.call = a.req.record.call(a.req, conn.Origin().Host())
}

// errInterim means that the origin sends interim responses without end.
var errInterim = errors.New("too many interim responses")

// unusable is an answer of the origin that cannot be passed on. The origin is there, and
// who asks may have brought it about (by what a redirect repeats, say), so it is not
// taken for an origin that fails: visitors could have all of them left alone.
type unusable struct{ error }

func (e unusable) Unwrap() error { return e.error }

// readHead reads the head of the response, and has interim pass on 103 before it. The error is
// an unusable one if the origin has answered in HTTP.
func (x *exchange) readHead(interim func(*http1.Response) error) error {
	br := x.conn.Reader()
	for i := range interimMax {
		if err := x.head.Read(br); err != nil {
			if x.conn.Broken() || i == 0 && !http1.SpeaksHTTP(br) {
				return err
			}
			return unusable{err}
		}
		code := x.head.Code
		if code >= 200 || code == http.StatusSwitchingProtocols {
			return nil
		}
		if code == http.StatusEarlyHints {
			if err := interim(&x.head); err != nil {
				return relay.ReadError(err) // the client has gone
			}
		}
		br.Discard(x.head.Size)
	}
	return unusable{errInterim}
}

// respond makes the origin's response, whose head w has taken, the answer. What of it is there
// as a whole is read now, and the rest is streamed when w is sent.
func (f *Front) respond(w *answer, r *request) {
	x := &w.origin
	if x.up != nil {
		x.up.HeadRead()
		if !x.up.Ended(earlyWait) {
			// The origin answered before it had the whole request. What the client
			// still sends goes on to it until the answer is out; then this
			// connection cannot be used for anything else.
			w.last, x.reusable = true, false
		}
	}
	if x.head.Length == 0 {
		x.close(true)
		return
	}
	if hasNoBody(w.code) || r.Method == http.MethodHead || !w.framed {
		// A body that may not be there some send all the same, if it is told of, and to HEAD also if not (both gunicorn, for
		// Django). What comes of it when this connection is used again would be the answer to the next request.
		if x.owner == nil && (r.Method == http.MethodHead || x.head.Length != http1.LengthOpen) {
			x.reusable = false
			x.conn.ResetOnClose()
		}
		x.close(true)
		return
	}
	x.body.begin(x)
	br := x.conn.Reader()
	if n := x.head.Length; n >= 0 && n <= int64(br.Buffered()) {
		b, _ := br.Peek(int(n))
		w.buf = append(w.buf, b...)
		br.Discard(len(b))
		x.close(true)
		return
	}
	x.reusable = x.reusable && x.head.Length != http1.LengthOpen // which ends with the connection
	x.conn.Limit(f.cfg.Timeouts.Stream)
	w.streams = true
}

// close ends the exchange, once. complete reports whether the response was read to
// its end.
func (x *exchange) close(complete bool) {
	if x.conn == nil {
		return // it is closed
	}
	x.active.finish()
	x.client.asks(nil) // before the connection is somebody else's
	reusable := x.reusable && complete
	if x.up != nil && !x.up.Ended(0) {
		x.up.Abort()
		reusable = false
	}
	if reusable {
		x.release()
	} else {
		x.conn.Discard()
	}
	x.call.End(!complete)
	x.conn, x.client, x.up, x.call, x.active = nil, nil, nil, nil, nil
}

// originBody is the body of a response.
type originBody struct {
	http1.Body
	x *exchange
}

func (b *originBody) begin(x *exchange) {
	b.x = x
	b.Body.Begin(x.conn.Reader(), x.head.Length, true)
}

// Read reads some of the body.
func (b *originBody) Read(p []byte) (n int, err error) {
	if n, err = b.Body.Read(p); n > 0 {
		b.x.active.Moved()
	}
	return n, err
}

// fill reads into p what is there of the body, or waits until something is.
func (b *originBody) fill(p []byte) (n int, err error) {
	for n < len(p) && err == nil && (n == 0 || b.Ready()) {
		var k int
		k, err = b.Read(p[n:])
		n += k
	}
	return n, err
}

// tailRoom is how many bytes are free behind a chunk, for its end and that of the body.
const tailRoom = 16

// stream sends w with a body that comes from the origin, each piece as it comes: who watches an
// event stream must not wait for a buffer to fill.
func (w *answer) stream(e *client, chunked bool) (sent int64, err error) {
	b, x := &w.origin.body, &w.origin
	open := true
	defer func() {
		if open {
			x.close(false)
		}
	}()
	if !b.Ready() { // a head must not wait for a body that is still to come
		if _, err := e.Write(w.out); err != nil {
			return 0, err
		}
		w.out = w.out[:0]
	}
	buf := slices.Grow(w.buf[:headRoom], http1.ChunkHeadMax+bufferSize+tailRoom)
	buf = buf[:cap(buf)]
	for {
		const begin = headRoom + http1.ChunkHeadMax
		n, err := b.fill(buf[begin : len(buf)-tailRoom])
		if err != nil && err != io.EOF && n == 0 {
			if len(w.out) > 0 { // who gets no word asks again
				e.Write(w.out) //nolint:errcheck // the connection is closed in any case
			}
			return sent, err
		}
		from, to := begin, begin+n
		if chunked && n > 0 {
			from, to = http1.FrameChunk(buf, begin, n)
		}
		var trailer []byte
		if err == io.EOF {
			if chunked {
				to += copy(buf[to:], "0\r\n")
				trailer = appendTrailers(nil, b.Trailer(), nil)
			}
			open = false
			x.close(true) // before the client can ask again
		}
		w.buf = buf
		out := w.join(from, to)
		if trailer != nil {
			out = append(out, trailer...)
		}
		if _, err := e.Write(out); err != nil {
			return sent, err
		}
		w.out = w.out[:0]
		switch sent += int64(n); {
		case err == io.EOF:
			return sent, nil
		case err != nil:
			return sent, err
		}
	}
}
