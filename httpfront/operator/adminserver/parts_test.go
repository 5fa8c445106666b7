package adminserver

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestHandlersOfNetHTTP: what such a handler answers is the answer, and what it keeps of its
// request is its own, also when the next one has come.
func TestHandlersOfNetHTTP(t *testing.T) {
	var kept []context.Context
	var wg sync.WaitGroup
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kept = append(kept, r.Context())
		c, cancel := context.WithCancel(r.Context())
		wg.Go(func() { <-c.Done() })
		defer cancel()
		body, _ := io.ReadAll(r.Body)
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
		w.Header().Set("Content-Type", "text/x-own")
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK)
		io.WriteString(w, r.Method+" "+r.URL.Path+" "+r.URL.RawQuery+" "+string(body))
	})
	var ctx fasthttp.RequestCtx
	for range 3 {
		ctx.Request.Reset()
		ctx.Response.Reset()
		ctx.Request.SetRequestURI("http://node/a?b=c")
		ctx.Request.Header.SetMethod("POST")
		ctx.Request.SetBodyString("body")
		ctx.Response.Header.Set("X-Two", "said before")
		serveHTTP(&ctx, h)
		if got := string(ctx.Response.Body()); got != "POST /a b=c body" || ctx.Response.StatusCode() != http.StatusTeapot ||
			string(ctx.Response.Header.ContentType()) != "text/x-own" || len(ctx.Response.Header.PeekAll("X-Two")) != 2 {
			t.Errorf("answered %d %s\n%s", ctx.Response.StatusCode(), got, &ctx.Response.Header)
		}
	}
	wg.Wait()
	for _, c := range kept {
		if c == context.Context(&ctx) || c.Err() != nil {
			t.Error("a request is told of the next one's end")
		}
	}
	serveHTTP(&ctx, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if ctx.Response.StatusCode() != http.StatusOK || len(ctx.Response.Body()) > 0 {
		t.Errorf("a handler that says nothing: %d %q", ctx.Response.StatusCode(), ctx.Response.Body())
	}
}
