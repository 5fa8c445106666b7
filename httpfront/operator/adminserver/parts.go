package adminserver

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
)

// Paths is a Part that has a net/http handler answer at fixed paths.
type Paths struct {
	needs   map[string]Scope
	handler http.Handler
}

// NewPaths returns a Part in which h answers at the paths that needs has, each for those
// who may do what it says. One with a slash at its end stands for all that is below it.
func NewPaths(h http.Handler, needs map[string]Scope) *Paths {
	return &Paths{needs, h}
}

// Needs implements Part.
func (p *Paths) Needs(_, path string) (Scope, bool) {
	for at, s := range p.needs {
		if path == at || strings.HasSuffix(at, "/") && strings.HasPrefix(path, at) {
			return s, true
		}
	}
	return Nothing, false
}

// Serve implements Part.
func (p *Paths) Serve(ctx *fasthttp.RequestCtx) { serveHTTP(ctx, p.handler) }

// API is a Part that answers programs.
type API struct{ *admin.API }

// apiTime is how long a request to an API may take.
const apiTime = 20 * time.Second

// Needs implements Part.
func (a API) Needs(method, path string) (Scope, bool) {
	if !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/client/") {
		return Nothing, false
	}
	if route, ok := a.Route(method, path); ok {
		return max(route.Scope, Read), true
	}
	return Read, true // to hear that there is no such thing
}

// Serve implements Part.
func (a API) Serve(ctx *fasthttp.RequestCtx) {
	query, err := url.ParseQuery(string(ctx.QueryArgs().QueryString()))
	if err != nil {
		refuse(ctx, fasthttp.StatusBadRequest, "the query is not in order: "+err.Error())
		return
	}
	timed, cancel := context.WithTimeout(context.Background(), apiTime)
	defer cancel()
	scheme := "http://"
	if ctx.IsTLS() {
		scheme = "https://"
	}
	resp := a.Do(timed, admin.Request{
		Method: string(ctx.Method()), Path: string(ctx.URI().PathOriginal()), Query: query,
		ContentType: string(ctx.Request.Header.ContentType()), Body: ctx.PostBody(), Origin: scheme + string(ctx.Host()),
	})
	ctx.SetStatusCode(resp.Status)
	ctx.SetContentType(resp.ContentType)
	for name, value := range resp.Header {
		ctx.Response.Header.Set(name, value)
	}
	ctx.SetBody(resp.Body)
}

// serveHTTP has a net/http handler answer, and returns when it has. The handler of
// fasthttpadaptor runs it in a goroutine that goes on for a moment with what the next request
// uses, so that it could stream, which nobody here does.
func serveHTTP(ctx *fasthttp.RequestCtx, h http.Handler) {
	var r http.Request
	if err := fasthttpadaptor.ConvertRequest(ctx, &r, true); err != nil {
		refuse(ctx, fasthttp.StatusBadRequest, "the address is not in order")
		return
	}
	w := &answer{header: http.Header{}}
	h.ServeHTTP(w, r.WithContext(context.Background())) // ctx is another request's soon
	ctx.SetStatusCode(max(w.status, http.StatusOK))
	for name, values := range w.header {
		ctx.Response.Header.Del(name) // what the server says of every answer, the handler may say as well
		for _, v := range values {
			if name == fasthttp.HeaderContentType {
				ctx.SetContentType(v)
			} else {
				ctx.Response.Header.Add(name, v)
			}
		}
	}
	ctx.SetBody(w.body.Bytes())
}

// answer keeps what a handler answers.
type answer struct {
	header http.Header
	status int // 0: none was said
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *answer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. The first one counts.
func (w *answer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *answer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}
