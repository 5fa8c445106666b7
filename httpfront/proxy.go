package httpfront

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/httpfront/caching"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/relay"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// admitted is what the handler hands to the proxy.
type admitted struct {
	req      *request
	site     *site
	room     Room // nil if the request has none; then the next two are zero
	settings *room.Settings
	judged   time.Time // when the room has decided
	pass     node.Pass // as the visitor has it from now on
	cookie   []byte    // value of a Set-Cookie field; nil for none
	bare     bool      // a preflight, which has passed a room: it gets no body, which may be the page that the room is for

	tried upstream.Tried
}

// proxy lets an origin answer.
func (f *Front) proxy(a *admitted) {
	if a.req.edge != nil {
		a.tried.For = a.req.edge
	}
	for again := 0; ; again++ {
		far, err := f.attempt(a)
		if err == nil {
			f.pass(a.req.answer(), a)
			return
		}
		if again >= f.cfg.Retries || !a.req.mayRepeat(far, a.site.group.Others(a.tried)) {
			f.originFailed(a.req.answer(), a, err)
			return
		}
	}
}

// attempt has one origin answer, up to the head of its response, which is then in the origin of the answer. If it
// does not, the error comes with how far the request got, and that origin is closed.
func (f *Front) attempt(a *admitted) (delivery, error) {
	conn, err := f.connect(a)
	if conn == nil && a.req.edge.hasLeft() {
		return delivered, errLeft
	}
	if conn == nil {
		return deliveryOf(nil, err), err
	}
	w := a.req.answer()
	x := &w.origin
	x.begin(a, conn)
	if err == nil {
		err = f.exchange(w, a)
	}
	if err == nil {
		x.call.Answered(x.head.Code)
		conn.Answered(x.head.Code, a.req.HostField)
		return delivered, nil
	}
	if a.req.edge.hasLeft() {
		if a.req.asks() {
			conn.Left()
		}
		x.close(false)
		return delivered, errLeft
	}
	far := deliveryOf(conn, err)
	if isUnusable(err) {
		conn.Answered(0, nil)
	} else if _, ok := errors.AsType[*relay.ClientError](err); !ok && far != unheard {
		conn.Failed(err)
	}
	err = fmt.Errorf("origin %s: %w", conn.Origin(), err)
	x.close(false)
	return far, err
}

// errLeft says that the client has closed the connection while the origin worked, or before it was asked, which is no fault of the origin.
var errLeft = errors.New("the client has left")

// clientLeft is for the access log, in which it has the code that nginx gives it: hardly anybody gets the answer.
var clientLeft = http1.Refusal{Code: 499, Reason: "the client has closed its side of the connection before the site answered"}

// connect returns a connection for a request. If the request asks, it has been sent there
// and its answer has begun, unless there is an error. There is no connection if there was none
// to be had, which the error then says.
func (f *Front) connect(a *admitted) (*upstream.Conn, error) {
	if conn, err := f.resume(a); conn != nil || err != nil {
		return conn, err
	}
	switch g := a.site.group; {
	case a.req.Upgrade:
		return g.AcquireTunnel(&a.tried)
	case !a.req.asks():
		return g.Acquire(&a.tried, a.req.use())
	}
	for before := a.tried; ; a.tried = before {
		conn, err := a.site.group.AcquireToAsk(&a.tried, a.req.use())
		if err != nil {
			return nil, err
		}
		if err = f.ask(conn, a.req); err == nil {
			return conn, nil
		} else if err != upstream.ErrStale {
			return conn, fmt.Errorf("wait for the response: %w", err)
		}
		conn.Discard()
	}
}

// ask sends a request that has no body, and waits until its answer begins.
func (f *Front) ask(conn *upstream.Conn, r *request) error {
	owned := true
	r.edge.asks(conn)
	defer func() {
		if owned { // a panic
			conn.Discard()
		}
	}()
	buf := buffers.Get().(*[bufferSize]byte)
	err := conn.Ask(r.appendHead(buf[:0], conn.Origin().Host(), f.self), f.cfg.Timeouts.Origin, freeBuffer)
	owned = false
	return err
}

// pass makes the origin's response, whose head is in w.origin, the answer.
func (f *Front) pass(w *answer, a *admitted) {
	x := &w.origin
	h := &x.head
	x.reusable = !h.Close
	if a.req.LogsIn || x.conn.Kept() || h.Challenges() {
		x.own(a.req)
	}
	revoked := f.obey(a, h)
	if revoked {
		x.active.stop() // before the upload ends, which would have the pass judged
	}
	f.countAnswered(a.req, h)
	a.bare = a.req.Preflight && f.cfg.Rooms.Route(a.req.Host, a.req.Path.Route) != nil
	w.take(h, a)
	a.req.tellLimits(&w.head)
	x.conn.Reader().Discard(h.Size)
	if h.Code == http.StatusSwitchingProtocols {
		w.tunnels = true
	} else {
		f.respond(w, a.req)
	}
	if (w.tunnels || w.streams) && !a.req.HasBody() && !revoked {
		x.active = f.watch(a)
	}
}

// exchange sends the request, unless that was asked, and reads the head of the response.
func (f *Front) exchange(w *answer, a *admitted) error {
	r, x := a.req, &w.origin
	if !r.asks() {
		buf := buffers.Get().(*[bufferSize]byte)
		_, err := x.conn.Write(r.appendHead(buf[:0], x.conn.Origin().Host(), f.self))
		buffers.Put(buf)
		if err != nil {
			return fmt.Errorf("send the head: %w", err)
		}
	}
	if err := f.upload(x, a); err != nil {
		return err
	}
	err := x.readHead(func(h *http1.Response) error { return w.interim(r.edge, r, h) })
	if err == nil && x.head.Code == http.StatusSwitchingProtocols && !r.Upgrade {
		err = unusable{errors.New("the origin switched protocols unasked")}
	}
	if err != nil && x.up != nil {
		if e := x.up.Cut(); e != nil && !isTimeout(err) {
			return e
		}
	}
	if err != nil {
		return fmt.Errorf("wait for the response: %w", err)
	}
	return nil
}

// upload begins to send the body of a request, if it has one.
func (f *Front) upload(x *exchange, a *admitted) error {
	r := a.req
	if !r.HasBody() {
		if !r.asks() {
			x.conn.Limit(f.cfg.Timeouts.Origin)
		}
		return nil
	}
	x.active = f.watch(a)
	if err := r.input.goOn(); err != nil {
		return relay.ReadError(err)
	}
	r.edge.Roll(f.cfg.Timeouts.Body)
	x.conn.Limit(0)
	x.up = &relay.Upload{
		Edge: r.edge.Conn, Conn: x.conn, From: &r.input.Body, Size: r.Length, Limit: a.site.body,
		Wait: f.cfg.Timeouts.Origin, Active: x.active, Panicked: f.logPanic,
		Trailer: func(dst []byte, of []http1.Field) []byte { return appendTrailers(dst, of, r.withheld) },
	}
	x.up.Start()
	return nil
}

// passesOn reports whether a field of an origin's answer is passed on to the client: it is not about the connection to
// the origin, nor between the origin and us.
func passesOn(h *http1.Response, name []byte) bool {
	switch http1.LowerByte(name[0]) {
	case 'c':
		if http1.EqualFold(name, "connection") || http1.EqualFold(name, "content-length") && h.Length < 0 {
			return false
		}
	case 'k', 'p', 'u':
		if http1.EqualFold(name, "keep-alive") || http1.EqualFold(name, "proxy-connection") || http1.EqualFold(name, "proxy-authenticate") ||
			http1.EqualFold(name, "proxy-authentication-info") || http1.EqualFold(name, "upgrade") {
			return false
		}
	case 't':
		if http1.EqualFold(name, "te") || http1.EqualFold(name, "transfer-encoding") || http1.EqualFold(name, "trailer") {
			return false
		}
	case 'r':
		if isNamed(name, stateField) {
			return false
		}
	}
	return !isCommand(name) && !h.Names(name)
}

// take has w be what an origin answers, but for the body, with the visitor's new pass if there
// is one.
func (w *answer) take(h *http1.Response, a *admitted) {
	w.reset()
	w.code, w.reason = h.Code, append(w.reason, h.Reason...)
	w.framed = !a.bare
	personal, sized := a.cookie != nil, a.bare || h.Code == http.StatusNoContent || h.Code < 200
	var kept []byte // of Cache-Control, where it is personal
	if personal {
		kept = append(make([]byte, 0, 64), caching.Private...) // which stays on the stack
	}
	for i := range h.Fields {
		f := &h.Fields[i]
		if personal && http1.EqualFold(f.Name, "cache-control") {
			kept = caching.AppendKept(kept, f.Value)
			continue
		}
		if personal && isOneOf(f.Name, caching.SharedFields[:]) || !passesOn(h, f.Name) {
			continue
		}
		switch {
		case http1.EqualFold(f.Name, "content-length"):
			if sized {
				continue // once
			}
			sized = true
			w.head.b = append(append(w.head.b, f.Name...), ": "...)
			w.head.b = append(strconv.AppendInt(w.head.b, h.Length, 10), "\r\n"...)
			continue
		case http1.EqualFold(f.Name, "date"):
			w.dated = true
		}
		w.head.b = http1.AppendField(w.head.b, f.Name, f.Value)
	}
	if h.Length == http1.LengthChunked {
		w.trailer = appendAnnounced(w.trailer[:0], h)
	}
	if personal {
		w.head.SetBytes("Cache-Control", kept)
		w.head.SetBytes("Set-Cookie", a.cookie)
	}
}

// originFailed answers for an origin that did not. The visitor keeps the pass:
// being let in to a site that is down shall not cost the place.
func (f *Front) originFailed(w *answer, a *admitted, err error) {
	if err == errLeft {
		f.refuse(w, clientLeft)
		w.last = true
		return
	}
	if e, ok := errors.AsType[*relay.ClientError](err); ok {
		a.req.record.becomes(Malformed)
		f.refuse(w, e.Refusal)
		return
	}
	a.req.record.becomes(Failed)
	var what failure
	switch {
	case errors.Is(err, upstream.ErrClosed):
		what = stopping
	case errors.Is(err, upstream.ErrBusy), errors.Is(err, upstream.ErrTunnels):
		what = failure{code: http.StatusServiceUnavailable, title: "The site is busy"}
	case isTimeout(err):
		what = failure{code: http.StatusGatewayTimeout, title: "The site takes too long"}
	case isUnusable(err):
		what = failure{code: http.StatusBadGateway, title: "The site's answer is not in order"}
	default:
		what = failure{code: http.StatusBadGateway, title: "The site does not answer"}
	}
	f.fail(w, a.req, a.room, what, err)
	if a.cookie != nil {
		w.head.SetBytes("Set-Cookie", a.cookie)
	}
}

func isUnusable(err error) bool {
	_, ok := errors.AsType[unusable](err)
	return ok
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout() || errors.Is(err, context.DeadlineExceeded)
}
