package httpfront

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Nearly all requests are short ones without a body, on a connection that has brought others,
// from somebody who is inside or who waits. To such a request the server adds nothing but its
// own reading of the head, which the guard does not rely on. So it does not get to see it: when it waits for
// the next request of a connection, that request is answered here, inside of the read that the
// server waits in, and the one after it, until one comes that is not so simple. That one is what the read
// returns. If it turns out to be so only when the room has decided, or the origin has begun to
// answer, what was done is left with the connection, and the handler goes on from there.

// fastConn is what a connection keeps for the fast path. But for what is atomic, it belongs to the
// goroutine in which the server serves the connection.
type fastConn struct {
	front    *Front // whose fast path it is; nil: none, so far
	requests int    // that were begun
	turn     turn
	wrote    time.Time // when the last write began
	use      atomic.Int32
	left     atomic.Pointer[unfinished] // nil: nothing
}

// turn is how far the server has come since a request was answered. The zero value: the next
// read is not one that waits for a request.
type turn uint8

const (
	answered turn = 1 + iota // it is about to set the deadline for the next request
	waits                    // that is set: if its buffer is empty, the next read waits for the request
)

// What a connection is used for, as far as Close needs to know.
const (
	notServing  int32 = iota // nothing of the fast path
	isServing                // the fast path has a request
	closesAfter              // it has, and the connection is to be closed after it
)

// unfinished is a request that was begun.
type unfinished struct {
	admitted         // if it is to be passed on
	waits    bool    // it is not
	waiting  waiting // if it waits
	failure  failure // if err is not nil: why it cannot be served
	err      error
}

// follows says that a request was answered, and that another one may follow it.
func (c *fastConn) follows(f *Front) {
	if f.fast {
		c.front, c.turn = f, answered
	}
}

// deadlineSet notes that the server has set a deadline: for its next request, if it is the first one
// since that was answered; once it has some of the request, for its head.
func (c *fastConn) deadlineSet() {
	if c.turn == answered {
		c.turn = waits
	} else if c.turn != 0 {
		c.turn = 0
	}
}

// maySee reports whether a read into p is one that waits for a request, with nothing of it read before: then
// the server offers its whole buffer.
func (c *fastConn) maySee(p []byte) bool { return c.turn == waits && len(p) == bufferSize }

// serving reports whether the fast path has a request, to the goroutine that it runs in.
func (c *fastConn) serving() bool { return c.use.Load() != notServing }

// closes reports whether the connection is closed by the fast path, after its request. Close asks, from any
// goroutine: a server that shuts down takes a connection for idle that has no request which it knows of.
func (c *fastConn) closes() bool {
	return c.use.CompareAndSwap(isServing, closesAfter) || c.use.Load() == closesAfter
}

// readFast reads what the server is to have. Requests of the fast path are answered before that.
func (e *edgeConn) readFast(p []byte) (int, error) {
	c := &e.fast
	c.turn = 0
	for {
		n, err := e.read(p)
		if err != nil {
			return n, err
		}
		head, ok := wholeHead(p[:n])
		if !ok || c.requests+1 >= c.front.cfg.Limits.Requests || c.front.draining.Load() {
			return n, nil
		}
		c.use.Store(isServing)
		done := c.front.serveFast(e, head)
		switch closes := !c.use.CompareAndSwap(isServing, notServing); {
		case closes && done:
			c.use.Store(notServing)
			return 0, io.EOF
		case closes:
			c.use.Store(notServing) // the server closes it after this request
			return n, nil
		case !done:
			return n, nil
		case e.answer != nil:
			return 0, e.answer
		case c.front.draining.Load(): // as the client was told
			return 0, io.EOF
		}
		idle := c.wrote
		if e.owner.cfg.write > c.front.cfg.Timeouts.Idle { // the write may have taken longer than that
			idle = time.Now()
		}
		if err := e.reads.Set(idle.Add(c.front.cfg.Timeouts.Idle)); err != nil {
			return 0, err
		}
	}
}

var (
	fastMethod   = []byte("GET ")
	fastProtocol = []byte(" HTTP/1.1")
	fastEnd      = []byte("\r\n\r\n")
)

// wholeHead splits b into the parts of a head if it is a whole one, and nothing else, of a request
// for the fast path, by its first line.
func wholeHead(b []byte) (h rawHead, ok bool) {
	if !bytes.HasPrefix(b, fastMethod) || !bytes.HasSuffix(b, fastEnd) {
		return h, false
	}
	end := bytes.IndexByte(b, '\n')
	line, ok := bytes.CutSuffix(b[:end-1], fastProtocol)
	if !ok || b[end-1] != '\r' || len(line) <= len(fastMethod) {
		return h, false
	}
	return rawHead{b[:len(fastMethod)-1], line[len(fastMethod):], fastProtocol[1:], b[end+1:]}, true
}

// isPlain reports whether r, which was parsed, is for the fast path, by its head. The server refuses
// empty hosts and some trailers, and it is not to find that out when the origin has been asked.
func (r *request) isPlain() bool {
	return r.http11 && r.length == lengthNone && len(r.hostField) > 0 && !r.upgrade && !r.close && !r.expectation && !r.trailer
}

// serveFast answers a request. If it reports false, it has not: then nothing was done of it, or
// what was done is in e.fast.left.
func (f *Front) serveFast(e *edgeConn, h rawHead) (done bool) {
	a := admitted{req: newRequest()}
	r, before := a.req, e.fast.wrote
	owned := true
	defer func() {
		if p := recover(); p != nil {
			f.panickedFast(e, r, p, e.fast.wrote.Equal(before))
			owned, done = true, true
		}
		if owned {
			r.release()
		}
	}()
	e.answer, r.memory, r.edge = nil, &e.memory, e
	if no := r.parse(h); no.code != 0 || !r.isPlain() {
		return false
	}
	if no := f.place(&a, e.peer, e.isSecure()); no.code != 0 {
		return false
	}
	room := f.roomOf(r)
	if f.cfg.Proof != nil && r.path.Decoded == JWKSPath {
		return false
	}
	f.adopt(r)
	e.fast.requests++
	r.record.begin()
	r.record.asked(h, r.first("referer"), r.first("user-agent"))
	var left unfinished
	if left.failure, left.err = f.unavailable(r); left.err == nil {
		if room == nil {
			left.waits = !f.admitsRoomless(r, &left.waiting)
		} else {
			left.waits = !f.judge(room, &a, &left.waiting)
		}
		if left.waits {
			done = f.waitFast(e, left.waiting)
		} else {
			a.begun.conn, a.begun.err = f.connect(&a)
			a.begun.is = true
			done = a.begun.err == nil && f.relay(e, a.begun.conn, &a)
		}
	}
	if !done {
		owned = false
		left.admitted = a
		e.fast.leave(left)
	}
	return done
}

// leave keeps a request for the handler: a copy, so that others need no memory for what they do not leave.
func (c *fastConn) leave(u unfinished) { c.left.Store(&u) }

// waitFast tells somebody to wait, and reports whether it has.
func (f *Front) waitFast(e *edgeConn, w waiting) bool {
	if w.crowded || w.limited != nil {
		return false
	}
	a := queueAnswers.Get().(*queueAnswer)
	defer a.release()
	a.waiting = w
	f.answerQueuedOn(e, a)
	return true
}

// panickedFast has the connection closed on which a request has panicked, and answers for it if nothing
// was answered.
func (f *Front) panickedFast(e *edgeConn, r *request, p any, silent bool) {
	f.logPanic(p)
	r.record.becomes(Unavailable)
	if silent {
		e.linger.Store(true)
		f.answerDirect(e, r, panicked.answer(time.Now()), panicked.code, 0)
	} else {
		r.record.end(0)
		r.record = nil
	}
	e.answer = net.ErrClosed
}

var panicked = refusal{code: http.StatusInternalServerError, reason: "this request could not be served"}

// first returns the value of the first field of that lower-case name.
func (r *request) first(name string) []byte {
	for v := range r.all(name) {
		return v
	}
	return nil
}

// giveUp ends a request that was left to the server, which will not have it and has answered with a code; 0: it has
// not. It reports whether there was one.
func (c *fastConn) giveUp(code int) bool {
	left := c.left.Swap(nil)
	if left == nil {
		return false
	}
	r := left.req
	if conn := left.begun.conn; conn != nil {
		conn.Discard()
	}
	if r.record != nil {
		r.record.becomes(Malformed)
		r.record.answered(code)
		r.record.from(r)
		r.record.end(0)
	}
	r.release()
	return true
}
