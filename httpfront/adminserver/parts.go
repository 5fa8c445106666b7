package adminserver

import (
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

// Paths is a Part that has a net/http handler answer at fixed paths.
type Paths struct {
	needs  map[string]Scope
	answer fasthttp.RequestHandler
}

// NewPaths returns a Part in which h answers at the paths that needs has, each for those
// who may do what it says.
func NewPaths(h http.Handler, needs map[string]Scope) *Paths {
	return &Paths{needs, fasthttpadaptor.NewFastHTTPHandler(h)}
}

// Needs implements Part.
func (p *Paths) Needs(_, path string) (Scope, bool) {
	s, ok := p.needs[path]
	return s, ok
}

// Serve implements Part.
func (p *Paths) Serve(ctx *fasthttp.RequestCtx) { p.answer(ctx) }

// Dashboard is the page on which operators watch, and its streams. Anybody gets the page's
// files, which tell nothing; it asks for a token itself.
type Dashboard struct {
	// Handler reports whether it has answered.
	Handler interface {
		Serve(ctx *fasthttp.RequestCtx) bool
	}
}

// Needs implements Part.
func (d Dashboard) Needs(method, path string) (Scope, bool) {
	rest, ok := strings.CutPrefix(path, "/api/v1/")
	parts := strings.Split(rest, "/")
	switch {
	case path == "/" || path == "/dashboard" || strings.HasPrefix(path, "/dashboard/"):
		return Nothing, true
	case !ok || method != "GET" && method != "HEAD":
		return Read, false
	case len(parts) == 1 && parts[0] == "watch":
		return Read, true
	}
	return Read, len(parts) == 3 && parts[0] == "rooms" && (parts[2] == "watch" || parts[2] == "history")
}

// Serve implements Part.
func (d Dashboard) Serve(ctx *fasthttp.RequestCtx) {
	if string(ctx.Path()) == "/" {
		ctx.Redirect("/dashboard/", fasthttp.StatusFound)
		return
	}
	if !d.Handler.Serve(ctx) {
		refuse(ctx, fasthttp.StatusNotFound, "there is nothing here")
	}
}
