package httpfront

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// admitted is what the handler hands to the proxy.
type admitted struct {
	req      *request
	room     Room // nil if the request has none; then the next two are zero
	settings *room.Settings
	pass     node.Pass // as the visitor has it from now on
	cookie   []byte    // value of a Set-Cookie field; nil for none
}

// proxy lets the origin answer.
func (f *Front) proxy(ctx *fasthttp.RequestCtx, a admitted) {
	acquire := f.up.acquire
	if a.req.upgrade {
		acquire = f.up.acquireTunnel
	}
	conn, err := acquire()
	if err != nil {
		f.originFailed(ctx, a, err)
		return
	}
	x := &exchange{conn: conn, finish: f.finisher(conn, a.req.upgrade), panicked: f.logPanic}
	owned := true
	defer func() {
		// A panic must not leave an upload behind that reads from a connection
		// which the server uses again.
		if owned {
			x.close(false)
		}
	}()
	if err := f.send(ctx, x, a.req); err != nil {
		owned = false
		x.close(false)
		f.originFailed(ctx, a, err)
		return
	}
	owned = false
	switched := ctx.Response.StatusCode() == http.StatusSwitchingProtocols
	if switched && !a.req.upgrade {
		x.close(false)
		f.originFailed(ctx, a, errors.New("the origin switched protocols unasked"))
		return
	}
	length := x.cleanHead(&ctx.Response.Header)
	a.obey(&ctx.Response.Header)
	a.decorate(&ctx.Response.Header) // after cleaning, or the origin could take our fields out again
	if switched {
		f.tunnel(ctx, x)
	} else {
		f.respond(ctx, x, length)
	}
}

func (f *Front) finisher(c *originConn, tunnel bool) func(bool) {
	return func(reusable bool) {
		switch {
		case tunnel:
			f.up.releaseTunnel(c)
		case reusable:
			f.up.release(c)
		default:
			f.up.discard(c)
		}
	}
}

// send sends the request and reads the head of the response into ctx.Response.
func (f *Front) send(ctx *fasthttp.RequestCtx, x *exchange, r *request) error {
	buf := buffers.Get().(*[bufferSize]byte)
	_, err := x.conn.Write(r.appendHead(buf[:0], f.origin))
	buffers.Put(buf)
	if err != nil {
		return err
	}
	if body := ctx.RequestBodyStream(); body != nil && r.length != lengthNone && r.length != 0 {
		edge := edgeOf(ctx.Conn())
		if edge != nil {
			edge.roll(f.cfg.Timeouts.Body)
		}
		x.conn.limit(0)
		x.up = &upload{
			edge: edge, conn: x.conn, from: body, size: r.length,
			limit: f.cfg.Limits.Body, wait: f.cfg.Timeouts.Origin, grace: f.cfg.Timeouts.Write,
			done: make(chan struct{}), panicked: f.logPanic,
		}
		go x.up.run() // waited for by x.close
	} else {
		x.conn.limit(f.cfg.Timeouts.Origin)
	}
	err = x.readHead(&ctx.Response.Header)
	if err != nil && x.up != nil {
		// Either side may have been the first to fail; the upload knows.
		x.up.conn.Conn.Close()
		if x.up.edge != nil && !x.up.ended(0) {
			x.up.edge.stop()
		}
		<-x.up.done
		if e, ok := errors.AsType[*clientError](x.up.err); ok && !isTimeout(err) {
			return e
		}
	}
	return err
}

// decorate adds the visitor's new pass to the origin's response.
func (a admitted) decorate(h *fasthttp.ResponseHeader) {
	if a.cookie == nil {
		return
	}
	// A cache that stored this answer would hand the pass to others.
	cc := "private, no-cache"
	for _, v := range h.PeekAll("Cache-Control") {
		if hasToken(v, "no-store") {
			cc = "private, no-store"
		}
	}
	for _, name := range [...]string{
		"Cache-Control", "Expires", "Surrogate-Control", "Cdn-Cache-Control", "X-Accel-Expires",
	} {
		h.Del(name) // every line of that name; Set would change the first
	}
	h.Set("Cache-Control", cc)
	h.AddBytesV("Set-Cookie", a.cookie)
}

// originFailed answers for an origin that did not. The visitor keeps the pass:
// being let in to a site that is down shall not cost the place.
func (f *Front) originFailed(ctx *fasthttp.RequestCtx, a admitted, err error) {
	if e, ok := errors.AsType[*clientError](err); ok {
		f.refuse(ctx, e.refusal)
		return
	}
	var what failure
	switch {
	case errors.Is(err, errBusy), errors.Is(err, errTunnels):
		what = failure{http.StatusServiceUnavailable, "The site is busy", "Too many requests are waiting for it. Please try again in a moment."}
	case isTimeout(err):
		what = failure{http.StatusGatewayTimeout, "The site takes too long", "It did not answer in time. Please try again in a moment."}
	default:
		what = failure{http.StatusBadGateway, "The site does not answer", "It cannot be reached right now. Please try again in a moment."}
	}
	f.cfg.Logger.LogAttrs(context.Background(), levelOf(what), "origin did not answer",
		attrError(err), attrStatus(what.code))
	unread := ctx.RequestBodyStream() != nil && a.req.length != 0
	f.fail(ctx, a.req, what)
	if unread {
		f.discardBody(ctx, a.req)
	}
	if a.cookie != nil {
		ctx.Response.Header.AddBytesV("Set-Cookie", a.cookie)
	}
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout() || errors.Is(err, fasthttp.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}
