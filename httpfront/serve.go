package httpfront

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
)

// HTTP/1.1 with clients. A connection has one goroutine, which reads a head, has its request
// answered, sends the answer, and reads the next one. What is read of a head is read here, once:
// everything behind it goes by the request, and so does the origin.

// serve answers the requests of a connection one after another, and closes it in the end.
func (f *Front) serve(e *client, h handler) {
	defer func() {
		if p := recover(); p != nil { // outside of what makes answers
			f.logPanic(p)
		}
		e.freeReader() // closing may take long
		e.Close()
	}()
	for f.awaits(e) {
		goesOn, upgraded := f.serveNext(e, h)
		if upgraded != nil {
			upgraded.run(f)
		}
		if !goesOn {
			return
		}
	}
}

// awaits waits for a request, and reports whether there is one. An idle connection has no buffer.
func (f *Front) awaits(e *client) bool {
	if e.in != nil && e.in.Buffered() > 0 {
		return true
	}
	e.freeReader()
	pause := f.cfg.Timeouts.Idle
	if e.requests == 0 {
		pause = f.cfg.Timeouts.Head
	}
	if !e.Awaits(pause) {
		return false
	}
	e.takeReader()
	return true
}

// serveNext answers the request that has begun to come, and reports whether another may follow; or
// it returns what the connection has become.
func (f *Front) serveNext(e *client, h handler) (goesOn bool, upgraded *tunnel) {
	r := newRequest()
	defer r.release()
	r.edge = e
	if e.requests++; e.requests > 1 {
		r.before, r.Request.Memory = &e.memory, &e.memory.head
	}
	head, no, err := f.readHead(e)
	if err != nil {
		return false, nil // nobody asks any more
	}
	if r.reserved = f.reserved; e.records {
		r.record = f.newRecord(true)
	}
	var code int
	var sent int64
	defer func() { r.handOver(code).end(sent) }()
	f.makeAnswer(h, r, head, no)
	w := r.answer()
	code = w.code
	if w.tunnels {
		return false, w.beginTunnel(e, r)
	}
	w.last = w.last || f.isLast(e, r) || r.input.waits ||
		!w.streams && r.Length > discardMax && r.input.Unread() // else somebody may be reading it
	if sent, err = w.send(e, r); err == nil && !w.last {
		return r.input.discard(), nil
	}
	if w.linger || r.input.waits || r.input.Unread() {
		e.Lingers(true)
	}
	return false, nil
}

// isLast reports whether the connection is closed once r has been answered.
func (f *Front) isLast(e *client, r *request) bool {
	return r.Close || f.stopping.Load() || e.requests >= f.cfg.Limits.Requests
}

// makeAnswer makes the answer to the request with that head, of which no says why it is refused if
// that is known already. If something panics, only this request fails.
func (f *Front) makeAnswer(h handler, r *request, head []byte, no http1.Refusal) {
	defer func() {
		if p := recover(); p != nil {
			f.logPanic(p)
			// An upload must not be left behind that reads from a connection which is used again.
			r.answer().origin.close(false)
			r.record.becomes(Unavailable)
			f.refuse(r.answer(), panicked)
		}
	}()
	r.record.begin()
	h(r, r.understand(head, no))
}

var panicked = http1.Refusal{Code: http.StatusInternalServerError, Reason: "this request could not be served"}

// understand reads a head into r, or says why it is refused. The reader of the connection is given
// back for as long as the answer takes if there is nothing more in it.
func (r *request) understand(head []byte, no http1.Refusal) http1.Refusal {
	h, ok := http1.Split(head)
	if no.Code == 0 && !ok {
		no = http1.Bad("the first line is not a method, an address and a version, with one space between them")
	}
	if no.Code == 0 {
		no = r.Parse(h)
	}
	r.record.asked(h, r)
	in := r.edge.in
	in.Discard(len(head)) // which r owns a copy of
	if no.Code == 0 {
		r.input.begin(r)
	}
	if !r.HasBody() && in.Buffered() == 0 {
		r.edge.freeReader()
	}
	return no
}

var (
	headTooLong = http1.Refusal{Code: http.StatusRequestHeaderFieldsTooLarge, Reason: "the head of the request is too long"}
	headTooSlow = http1.Refusal{Code: http.StatusRequestTimeout, Reason: "the request came too slowly"}
)

// readHead waits for a whole head and returns it, with its last empty line; it is good until the
// next read. If it is refused, it is as much of it as has come.
func (f *Front) readHead(e *client) (head []byte, no http1.Refusal, err error) {
	end, timed := 0, e.requests == 1 // awaits has set the deadline of the first one, and that of the first read of others
	for reads := 0; ; reads++ {
		b, _ := e.in.Peek(e.in.Buffered())
		switch end, no = http1.HeadEnd(b, end); {
		case no.Code != 0:
			return b, no, nil
		case bytes.HasSuffix(b[:end], []byte("\r\n\r\n")):
			return b[:end], http1.Refusal{}, nil
		case end == 2: // an empty line before the first (RFC 9112, 2.2)
			e.in.Discard(2)
			end = 0
			continue
		case len(b) >= bufferSize:
			return b, headTooLong, nil
		}
		if !timed && (reads > 0 || len(b) > 0) {
			timed = true
			e.SetReadDeadline(time.Now().Add(f.cfg.Timeouts.Head))
		}
		if _, err := e.in.Peek(len(b) + 1); err != nil {
			if b, _ = e.in.Peek(e.in.Buffered()); isTimeout(err) && len(b) > 0 {
				return b, headTooSlow, nil
			}
			return nil, http1.Refusal{}, err
		}
	}
}

// send sends w as the answer to r, and returns how many bytes of body that were. The origin, if
// there is one, is given back.
func (w *answer) send(e *client, r *request) (sent int64, err error) {
	bare := r.Method == http.MethodHead || hasNoBody(w.code)
	chunked := w.streams && w.origin.head.Length < 0 && r.HTTP11
	w.last = w.last || w.streams && w.origin.head.Length < 0 && !chunked
	w.out = w.appendHead(w.out[:0], r, chunked)
	if w.streams {
		return w.stream(e, chunked)
	}
	body := w.body()
	if bare {
		body = nil
	}
	_, err = e.Write(w.join(headRoom, headRoom+len(body)))
	return int64(len(body)), err
}

// join returns the head and what of buf is between from and to behind it, in one piece.
func (w *answer) join(from, to int) []byte {
	if len(w.out) > from {
		return append(w.out, w.buf[from:to]...)
	}
	start := from - len(w.out)
	copy(w.buf[start:], w.out)
	return w.buf[start:to]
}

// appendHead appends the head of w as it is sent.
func (w *answer) appendHead(dst []byte, r *request, chunked bool) []byte {
	dst = appendStatus(dst, w.code, w.reason)
	if !w.dated {
		dst = append(dst, "Date: "...)
		dst = appendDate(dst, time.Now())
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, w.head.b...)
	switch {
	case w.tunnels:
		return append(dst, "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"...)
	case chunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
		if len(w.trailer) > 0 {
			dst = http1.AppendField(dst, []byte("Trailer"), w.trailer)
		}
	case !w.framed && !hasNoBody(w.code):
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(w.body())), 10)
		dst = append(dst, "\r\n"...)
	}
	switch {
	case w.last:
		dst = append(dst, "Connection: close\r\n"...)
	case !r.HTTP11:
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// interim sends an answer before the real one to a client that knows of such.
func (w *answer) interim(e *client, r *request, h *http1.Response) error {
	if !r.HTTP11 {
		return nil
	}
	b := appendStatus(w.out[:0], h.Code, h.Reason)
	for i := range h.Fields {
		if f := &h.Fields[i]; passesOn(h, f.Name) && !http1.EqualFold(f.Name, "content-length") {
			b = http1.AppendField(b, f.Name, f.Value)
		}
	}
	w.out = append(b, "\r\n"...)
	_, err := e.Write(w.out)
	return err
}

// requestBody is the body of a request. It is part of the request; the zero value has none.
type requestBody struct {
	http1.Body
	edge  *client // nil: there is none
	waits bool    // the client waits to be told to go on
}

// begin makes b the body of r, whose head was read.
func (b *requestBody) begin(r *request) {
	if r.edge.body = nil; r.HasBody() {
		b.waits, b.edge, r.edge.body = r.Expectation, r.edge, &b.Body
		b.Body.Begin(r.edge.in, r.Length, false)
	}
}

// goOn tells a client that waits to send its body (RFC 9110, 10.1.1).
func (b *requestBody) goOn() error {
	if !b.waits {
		return nil
	}
	b.waits = false
	_, err := b.edge.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	return err
}

// How much of a body nobody wants is read, to keep the connection.
const (
	discardMax  = 64 << 10
	discardTime = time.Second
)

// discard reads the rest of a body, so that the next request starts where it should, and reports
// whether that was possible: what is too long or too slow costs the connection.
func (b *requestBody) discard() bool {
	if b.edge == nil {
		return true
	}
	b.edge.Lingers(true)
	b.edge.SetReadDeadline(time.Now().Add(discardTime))
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for left := discardMax; left > 0 && b.Unread(); {
		n, err := b.Read(buf[:])
		if left -= n; err != nil {
			break
		}
	}
	b.edge.Lingers(b.Unread())
	return !b.Unread()
}
