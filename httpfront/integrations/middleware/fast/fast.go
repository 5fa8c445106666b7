// Package fast is package middleware for programs that are written with fasthttp.
package fast

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/caching"
	"github.com/ropeline/ropeline/httpfront/forwarding"
	"github.com/ropeline/ropeline/httpfront/integrations/middleware"
	"github.com/ropeline/ropeline/httpfront/integrations/middleware/internal/site"
)

// Handler returns a handler that has g ask about each request, and next serve those of
// visitors who are let in. A pass for the visitor goes into the answer of next, which no
// shared cache may keep then: its Cache-Control becomes private, with what it says to browsers. Answers that
// next writes itself, to a connection that it has hijacked, are left as they are. Commands
// in answers and passes in requests are as with middleware.Gate.Handler.
func Handler(g *middleware.Gate, next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if !isVersion(string(ctx.Request.Header.Protocol())) {
			ctx.Error("this version of HTTP is not supported\n", fasthttp.StatusHTTPVersionNotSupported)
			ctx.Response.Header.Set("Ropeline-State", "refused")
			ctx.SetConnectionClose()
			return
		}
		// The context of a request of fasthttp ends with the server only, as this one
		// would not: a node has so long to answer as g gives it.
		q := question(g, ctx)
		v := g.Ask(context.Background(), q)
		if !v.Admitted {
			if q.Body && ctx.RequestBodyStream() != nil {
				// Who still sends it when the connection ends does not get the answer. The server of net/http reads as much, but after it.
				_ = ctx.Conn().SetReadDeadline(time.Now().Add(time.Second))
				_, _ = io.CopyN(io.Discard, ctx.RequestBodyStream(), 256<<10)
				ctx.SetConnectionClose() // fasthttp would take what is left of it for requests
			}
			for name, values := range v.Header {
				for _, value := range values {
					ctx.Response.Header.Add(name, value)
				}
			}
			ctx.SetStatusCode(v.Code)
			ctx.SetBody(v.Body)
			return
		}
		ctx.Request.Header.Del(g.ProofField())
		if v.Proof != "" {
			ctx.Request.Header.Set(g.ProofField(), v.Proof)
		}
		leaveForeignCookies(&ctx.Request.Header)
		leaveUpgrades(&ctx.Request.Header)
		next(ctx)
		cookie := v.Cookie
		if takeCommands(&ctx.Response.Header) {
			cookie = g.Obey(context.Background(), q, v)
		}
		if cookie != "" {
			ctx.Response.Header.Add("Set-Cookie", cookie)
			kept := []byte(caching.Private)
			for _, list := range ctx.Response.Header.PeekAll("Cache-Control") {
				kept = caching.AppendKept(kept, list)
			}
			ctx.Response.Header.SetBytesV("Cache-Control", kept)
			for _, name := range caching.SharedFields {
				ctx.Response.Header.Del(name)
			}
		}
	}
}

// isVersion reports whether requests of that version are served. fasthttp takes any number. A program that passes a
// request on with HTTP/0.9 would have it read without its fields, and by another host.
func isVersion(v string) bool { return v == "HTTP/1.1" || v == "HTTP/1.0" || v == "HTTP/2" }

// leaveForeignCookies takes passes out of a request's cookies.
func leaveForeignCookies(h *fasthttp.RequestHeader) {
	all := string(h.Peek("Cookie"))
	kept := site.ForeignCookies(all)
	if kept == all {
		return
	}
	h.DelAllCookies()
	if kept != "" {
		h.Set("Cookie", kept)
	}
}

// leaveUpgrades is site.LeaveUpgrades.
func leaveUpgrades(h *fasthttp.RequestHeader) {
	if kinds := h.PeekAll("Upgrade"); len(kinds) != 1 || !bytes.EqualFold(kinds[0], []byte("websocket")) {
		h.Del("Upgrade")
	}
	h.Del("Http2-Settings")
}

// RemoveForwarding is middleware.RemoveForwarding.
func RemoveForwarding(h *fasthttp.RequestHeader) {
	var names [][]byte
	for name := range h.All() {
		if forwarding.Is(name) && !bytes.HasPrefix(bytes.ToLower(name), []byte("ropeline-")) {
			names = append(names, bytes.Clone(name))
		}
	}
	for _, name := range names {
		h.DelBytes(name)
	}
}

// takeCommands takes commands out of an answer's fields, and their names out of the trailers
// that are announced. It reports whether one ends the visitor's session.
func takeCommands(h *fasthttp.ResponseHeader) (revoke bool) {
	for _, name := range site.Commands {
		for _, v := range h.PeekAll(name) {
			revoke = revoke || site.Revokes(string(v))
		}
		h.Del(name)
	}
	isCommand := func(name []byte) bool { return site.IsCommand(string(name)) }
	if keys := h.PeekTrailerKeys(); slices.ContainsFunc(keys, isCommand) {
		keys = slices.DeleteFunc(slices.Clone(keys), isCommand)
		h.SetTrailerBytes(bytes.Join(keys, []byte(", "))) // of names that were good before
	}
	return revoke
}

// question says what a node has to know of a request. Nothing of it is fasthttp's memory.
func question(g *middleware.Gate, ctx *fasthttp.RequestCtx) middleware.Question {
	h := http.Header{}
	for name, value := range ctx.Request.Header.All() {
		h.Add(string(name), string(value))
	}
	q := middleware.Question{
		Method: string(ctx.Method()), Target: string(ctx.URI().RequestURI()), Host: string(ctx.Host()),
		Scheme: "http", For: ctx.RemoteIP().String(), Header: h,
		Body: ctx.Request.Header.ContentLength() > 0 || ctx.Request.Header.ContentLength() == -1, // -1: in chunks
	}
	if raw := ctx.Request.Header.RequestURI(); len(raw) > 0 && raw[0] == '/' {
		q.Target = string(raw)
	}
	if ctx.IsTLS() {
		q.Scheme = "https"
	}
	g.Believe(&q)
	return q
}
