package httpfront

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

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

	tried upstream.Tried
	begun begun // of the next attempt
}

// begun is an attempt to have a request answered that has got as far as connect.
type begun struct {
	is   bool
	conn *upstream.Conn
	err  error
}

// proxy lets an origin answer.
func (f *Front) proxy(ctx *fasthttp.RequestCtx, a admitted) {
	for again := 0; ; again++ {
		x, far, err := f.attempt(ctx, &a)
		switch {
		case err != nil:
		case x == nil: // it has been relayed
			return
		default:
			f.pass(ctx, a, x)
			return
		}
		if again >= f.cfg.Retries || !a.req.mayRepeat(far, a.site.group.Others(a.tried)) {
			f.originFailed(ctx, a, err)
			return
		}
	}
}

// attempt has one origin answer, up to the head of its response, which is then
// in ctx.Response. If it does not, the error comes with how far the request got. There is no
// exchange if the answer has been relayed.
func (f *Front) attempt(ctx *fasthttp.RequestCtx, a *admitted) (*exchange, delivery, error) {
	conn, err := a.begun.conn, a.begun.err
	if !a.begun.is {
		conn, err = f.connect(a)
	}
	a.begun = begun{}
	if conn == nil {
		return nil, deliveryOf(nil, err), err
	}
	if err == nil && a.req.asks() {
		if edge := f.direct(ctx, a.req); edge != nil && f.relay(edge, conn, a) {
			return nil, delivered, nil
		}
	}
	x := &exchange{conn: conn, panicked: f.logPanic, call: a.req.record.call(a.req, conn.Origin().Host())}
	x.active.begin(f, a, a.judged)
	owned := true
	defer func() {
		// A panic must not leave an upload behind that reads from a connection
		// which the server uses again.
		if owned {
			x.close(false)
		}
	}()
	if err == nil {
		err = f.send(ctx, x, a)
	}
	if err == nil && ctx.Response.StatusCode() == http.StatusSwitchingProtocols && !a.req.upgrade {
		err = unusable{errors.New("the origin switched protocols unasked")}
	}
	owned = false
	if err == nil {
		x.call.Answered(ctx.Response.StatusCode())
		conn.Answered()
		return x, delivered, nil
	}
	far := deliveryOf(conn, err)
	if isUnusable(err) {
		conn.Answered()
	} else if _, ok := errors.AsType[*clientError](err); !ok && far != unheard {
		conn.Failed(err)
	}
	err = fmt.Errorf("origin %s: %w", conn.Origin(), err)
	x.close(false)
	return nil, far, err
}

// connect returns a connection for a request. If the request asks, it has been sent there
// and its answer has begun, unless there is an error. There is no connection if there was none
// to be had, which the error then says.
func (f *Front) connect(a *admitted) (*upstream.Conn, error) {
	if conn, err := f.resume(a); conn != nil || err != nil {
		return conn, err
	}
	switch g := a.site.group; {
	case a.req.upgrade:
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
	defer func() {
		if owned { // a panic
			conn.Discard()
		}
	}()
	buf := buffers.Get().(*[bufferSize]byte)
	err := conn.Ask(r.appendHead(buf[:0], conn.Origin().Host(), f.self), f.cfg.Timeouts.Origin)
	buffers.Put(buf)
	owned = false
	return err
}

// pass makes the origin's response, whose head is in ctx.Response, the answer.
func (f *Front) pass(ctx *fasthttp.RequestCtx, a admitted, x *exchange) {
	owned := true
	defer func() {
		if owned { // a panic, as above
			x.close(false)
		}
	}()
	length := x.cleanHead(&ctx.Response.Header)
	if a.req.logsIn || x.conn.Kept() || challenges(&ctx.Response.Header) {
		x.own(a.req)
	}
	if a.obey(&ctx.Response.Header, f.cfg.Clock()) {
		x.active.stop()
	}
	f.countAnswered(a.req, &ctx.Response.Header, f.cfg.Clock())
	a.req.tellLimits(&ctx.Response.Header)
	a.decorate(&ctx.Response.Header) // after cleaning, or the origin could take our fields out again
	x.handOver(ctx, a.req)
	owned = false
	if ctx.Response.StatusCode() == http.StatusSwitchingProtocols {
		f.tunnel(ctx, x)
	} else {
		f.respond(ctx, x, length)
	}
}

// send sends the request, unless it was asked, and reads the head of the response into
// ctx.Response.
func (f *Front) send(ctx *fasthttp.RequestCtx, x *exchange, a *admitted) error {
	r := a.req
	if !r.asks() {
		buf := buffers.Get().(*[bufferSize]byte)
		_, err := x.conn.Write(r.appendHead(buf[:0], x.conn.Origin().Host(), f.self))
		buffers.Put(buf)
		if err != nil {
			return fmt.Errorf("send the head: %w", err)
		}
	}
	if body := f.reader.body(ctx, r); body != nil {
		edge := edgeOf(ctx.Conn())
		if edge != nil {
			edge.roll(f.cfg.Timeouts.Body)
		}
		x.conn.Limit(0)
		x.up = &upload{
			edge: edge, conn: x.conn, from: body, size: r.length, limit: a.site.body,
			wait: f.cfg.Timeouts.Origin, grace: f.cfg.Timeouts.Send,
			withheld: r.withheld, done: make(chan struct{}), active: &x.active, panicked: f.logPanic,
		}
		go x.up.run() // waited for by x.close
	} else {
		x.conn.Limit(f.cfg.Timeouts.Origin)
	}
	err := x.readHead(&ctx.Response.Header)
	if err != nil && x.up != nil {
		// Either side may have been the first to fail; the upload knows.
		x.up.conn.Abort()
		if x.up.edge != nil && !x.up.ended(0) {
			x.up.edge.stop()
		}
		<-x.up.done
		if e, ok := errors.AsType[*clientError](x.up.err); ok && !isTimeout(err) {
			return e
		}
	}
	if err != nil {
		return fmt.Errorf("wait for the response: %w", err)
	}
	return nil
}

// A cache that stored an answer with a pass would hand it to others.
const (
	cachePrivate = "private, no-cache"
	cacheNowhere = "private, no-store"
)

// cachingFields are those by which origins talk to caches.
var cachingFields = [...]string{"Cache-Control", "Expires", "Surrogate-Control", "Cdn-Cache-Control", "X-Accel-Expires"}

// isCaching reports whether a field is one of them.
func isCaching(name []byte) bool {
	for _, f := range cachingFields {
		if len(name) == len(f) && bytes.EqualFold(name, []byte(f)) {
			return true
		}
	}
	return false
}

// decorate adds the visitor's new pass to the origin's response.
func (a admitted) decorate(h *fasthttp.ResponseHeader) {
	if a.cookie == nil {
		return
	}
	cc := cachePrivate
	for _, v := range h.PeekAll("Cache-Control") {
		if hasToken(v, "no-store") {
			cc = cacheNowhere
		}
	}
	for _, name := range cachingFields {
		h.Del(name) // every line of that name; Set would change the first
	}
	h.Set("Cache-Control", cc)
	h.AddBytesV("Set-Cookie", a.cookie)
}

// originFailed answers for an origin that did not. The visitor keeps the pass:
// being let in to a site that is down shall not cost the place.
func (f *Front) originFailed(ctx *fasthttp.RequestCtx, a admitted, err error) {
	if e, ok := errors.AsType[*clientError](err); ok {
		a.req.record.becomes(Malformed)
		f.refuse(ctx, e.refusal)
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
	f.fail(ctx, a.req, what, err)
	f.discardBody(ctx, a.req)
	if a.cookie != nil {
		ctx.Response.Header.AddBytesV("Set-Cookie", a.cookie)
	}
}

func isUnusable(err error) bool {
	_, ok := errors.AsType[unusable](err)
	return ok
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout() || errors.Is(err, fasthttp.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}
