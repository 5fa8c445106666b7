// Package fast is package middleware for programs that are written with fasthttp.
package fast

import (
	"context"
	"net/http"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/middleware"
)

// Handler returns a handler that has g ask about each request, and next serve those of
// visitors who are let in. A pass for the visitor goes into the answer of next, which no
// shared cache may keep then: its Cache-Control becomes private, no-store. Answers that
// next writes itself, to a connection that it has hijacked, are left as they are.
func Handler(g *middleware.Gate, next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		// The context of a request of fasthttp ends with the server only, as this one
		// would not: a node has so long to answer as g gives it.
		v := g.Ask(context.Background(), question(g, ctx))
		if !v.Admitted {
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
		next(ctx)
		if v.Cookie != "" {
			ctx.Response.Header.Add("Set-Cookie", v.Cookie)
			ctx.Response.Header.Set("Cache-Control", "private, no-store")
		}
	}
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
