//go:build !race

package httpfront

import (
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/tracing"
	"github.com/ropeline/ropeline/node"
)

// TestRecordsAllocateNothing: neither where nobody wants to know of a request, nor where
// somebody counts and logs it.
func TestRecordsAllocateNothing(t *testing.T) {
	ctx := new(fasthttp.RequestCtx)
	ctx.Request.SetRequestURI("/a?b")
	ctx.Request.Header.SetMethod("GET")
	ctx.Request.Header.SetUserAgent("Browser/1.0")
	h := &ctx.Request.Header
	s := newRoom(nil).Settings()
	tracer, err := tracing.New(t.Context(), tracing.Config{Endpoint: "http://127.0.0.1:1", Sample: 0})
	if err != nil {
		t.Fatal(err)
	}
	defer run(t, tracer.Run)()
	for name, change := range map[string]func(*Config){
		"nobody":   func(*Config) {},
		"counts":   func(c *Config) { c.Requests = deaf{} },
		"tracing":  func(c *Config) { c.Tracer = tracer },
		"and logs": func(c *Config) { c.Requests, c.AccessLog = deaf{}, deaf{} },
	} {
		f := judges(t, fakeRooms{}, change)
		p, now := node.Pass{Arrival: time.Now()}, time.Now()
		if n := testing.AllocsPerRun(1000, func() {
			r := f.request()
			r.record.begin()
			r.record.asked(rawHead{h.Method(), h.RequestURI(), h.Protocol(), nil}, h.Referer(), h.UserAgent())
			r.record.traced(r, false)
			r.record.decided(r.record.now())
			r.record.judged(Queued, s, &p, now)
			endRequest(ctx, r)
			r.release()
		}); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
