package adminserver

import (
	"bytes"
	"context"
	"net/http"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

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
