package httpfront

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/tracing"
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

// exchange is one request at the origin and the response to it.
type exchange struct {
	conn     *upstream.Conn
	up       *upload       // nil if the request has no body
	reusable bool          // whether the origin will take another request
	owner    *edgeConn     // whose requests alone it will take; nil: anybody's
	panicked func(any)     // is told of panics outside of the handler
	active   activity      // of the visitor
	record   *record       // of the request, from when on its answer is ours to end; nil: there is none
	sent     int64         // bytes of the body that were read
	call     *tracing.Call // in the request's trace; nil: there is none
	upgraded bool
}

// errInterim means that the origin sends interim responses without end.
var errInterim = errors.New("too many interim responses")

// unusable is an answer of the origin that cannot be passed on. The origin is there, and
// who asks may have brought it about (by what a redirect repeats, say), so it is not
// taken for an origin that fails: visitors could have all of them left alone.
type unusable struct{ error }

func (e unusable) Unwrap() error { return e.error }

// readHead reads the head of the response into h. The error is an unusable one if the
// origin has answered in HTTP.
func (x *exchange) readHead(h *fasthttp.ResponseHeader) error {
	for i := range interimMax {
		if err := h.Read(x.conn.Reader()); err != nil {
			if x.conn.Broken() || i == 0 && !x.speaksHTTP() {
				return err
			}
			if _, ok := errors.AsType[*fasthttp.ErrSmallBuffer](err); ok {
				err = fmt.Errorf("the head of the answer is longer than %d KiB", bufferSize>>10)
			}
			return unusable{err}
		}
		if code := h.StatusCode(); code >= 200 || code == http.StatusSwitchingProtocols {
			return nil
		}
	}
	return unusable{errInterim}
}

// speaksHTTP reports whether what could not be parsed begins as an answer does.
func (x *exchange) speaksHTTP() bool {
	const begin = "HTTP/"
	br := x.conn.Reader()
	b, _ := br.Peek(min(br.Buffered(), len(begin)))
	return string(b) == begin
}

// cleanHead takes out of h what concerns the connection to the origin. It
// returns the length of the body, negative if it is not known: -1 if the body
// is chunked, -2 if it goes on until the origin closes.
func (x *exchange) cleanHead(h *fasthttp.ResponseHeader) int {
	length := h.ContentLength()
	x.reusable = !h.ConnectionClose()
	var named [][]byte
	for _, v := range h.PeekAll("Connection") {
		for e := range elements(v) {
			if equalFold(e, "close") {
				x.reusable = false
			}
			named = append(named, bytes.Clone(e))
		}
	}
	for _, name := range named {
		if !isFraming(name) && !isHop(name) {
			h.DelBytes(name)
		}
	}
	for _, name := range [...]string{
		"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate",
		"Proxy-Authentication-Info", "Te", "Upgrade", "Transfer-Encoding", stateField,
	} {
		h.Del(name)
	}
	h.ResetConnectionClose()
	h.SetProtocol([]byte("HTTP/1.1"))
	return length
}

// respond makes the origin's response, whose head is ready in ctx.Response and
// whose body has that length, the answer. From then on the answer owns x and
// closes it.
func (f *Front) respond(ctx *fasthttp.RequestCtx, x *exchange, length int) {
	h := &ctx.Response.Header
	if x.up != nil {
		x.up.headRead()
	}
	if x.up != nil && !x.up.ended(earlyWait) {
		// The origin answered before it had the whole request. What the client
		// still sends goes on to it until the answer is out; then this
		// connection cannot be used for anything else.
		h.SetConnectionClose()
		x.reusable = false
	}
	x.conn.Limit(f.cfg.Timeouts.Stream)

	code := h.StatusCode()
	switch {
	case code == http.StatusNoContent, code == http.StatusNotModified, ctx.IsHead(), length == 0:
		if code == http.StatusNoContent {
			h.Del("Content-Length")
		}
		h.SetTrailer("")
		x.close(true)
		return
	}
	body := &originBody{x: x, left: int64(length), h: h}
	switch {
	case length == -1:
		body.chunks = httputil.NewChunkedReader(x.conn.Reader())
	default:
		h.SetTrailer("")
	}
	if length < 0 && !ctx.Request.Header.IsHTTP11() {
		f.respondUntilClose(ctx, body)
		return
	}
	// A head must not wait for a body that is still to come.
	ctx.Response.ImmediateHeaderFlush = length < 0 || x.conn.Reader().Buffered() < length
	ctx.Response.SetBodyStream(body, max(length, -1))
}

// respondUntilClose answers a client that knows no chunks with a body that ends
// with the connection. The server would send chunks, so it is not asked.
func (f *Front) respondUntilClose(ctx *fasthttp.RequestCtx, body *originBody) {
	h := &ctx.Response.Header
	h.SetTrailer("")
	h.SetConnectionClose()
	head := h.AppendBytes(nil)
	f.unending.Add(1)
	edgeOf(ctx.Conn()).atEnd(func() {
		body.Close()
		f.unending.Done()
	})
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(c net.Conn) {
		// Not only at the end: an upload that is still under way reads from a
		// buffer that the server uses again as soon as this returns.
		defer body.Close()
		if _, err := c.Write(head); err == nil {
			// The client learns of a failure by the connection's end; there is
			// no other way to tell.
			body.WriteTo(c)
		}
	})
}

// close ends the exchange. complete reports whether the response was read to
// its end.
func (x *exchange) close(complete bool) {
	x.active.finish()
	reusable := x.reusable && complete
	if x.up != nil && !x.up.ended(0) {
		x.up.abort(x.conn)
		reusable = false
	}
	if reusable {
		x.release()
	} else {
		x.conn.Discard()
	}
	x.call.End(!complete && !x.upgraded)
	x.record.end(x.sent)
	x.record = nil
}

// originBody is the body of a response, as the server reads and closes it.
type originBody struct {
	x      *exchange
	h      *fasthttp.ResponseHeader // takes the trailers
	chunks io.Reader                // nil unless the body is chunked
	left   int64                    // bytes; -2 if the body ends with the connection
	eof    bool
	closed bool
}

// Read reads some of the body.
func (b *originBody) Read(p []byte) (int, error) {
	if b.eof {
		return 0, io.EOF
	}
	var n int
	var err error
	switch {
	case b.chunks != nil:
		n, err = b.chunks.Read(p)
		if err == io.EOF {
			if err = readTrailers(b.x.conn.Reader(), b.h); err == nil {
				err = io.EOF
			}
		}
	case b.left >= 0:
		n, err = b.x.conn.Reader().Read(p[:min(int64(len(p)), b.left)])
		if b.left -= int64(n); err == io.EOF && b.left > 0 {
			err = io.ErrUnexpectedEOF
		} else if err == nil && b.left == 0 {
			err = io.EOF
		}
	default:
		n, err = b.x.conn.Reader().Read(p)
	}
	if n > 0 {
		b.x.sent += int64(n)
		b.x.active.moved()
	}
	b.eof = err == io.EOF
	return n, err
}

// SupportsBodyWriteTo tells the server that WriteTo is as good as Read.
func (b *originBody) SupportsBodyWriteTo() bool { return true }

// WriteTo writes the body to w, each piece as it comes: who watches an event
// stream must not wait for a buffer to fill. It is called when the handler has
// returned, where a panic would leave the body open or even end the process.
func (b *originBody) WriteTo(w io.Writer) (total int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			b.x.panicked(p)
			err = fmt.Errorf("panic while passing a response on: %v", p)
		}
	}()
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	flusher, _ := w.(interface{ Flush() error })
	for {
		n, err := b.Read(buf[:])
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return total, err
			}
			total += int64(n)
			if flusher != nil && !b.eof && b.x.conn.Reader().Buffered() == 0 {
				if err := flusher.Flush(); err != nil {
					return total, err
				}
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// Close gives the connection to the origin back.
func (b *originBody) Close() error {
	if !b.closed {
		b.closed = true
		b.x.close(b.eof)
	}
	return nil
}
