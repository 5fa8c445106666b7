//go:build !race

package httpfront

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/observe/tracing"
	"github.com/ropeline/ropeline/node"
)

// TestRecordsAllocateNothing: neither where nobody wants to know of a request, nor where
// somebody counts and logs it.
func TestRecordsAllocateNothing(t *testing.T) {
	h := http1.RawHead{Method: []byte("GET"), Target: []byte("/a?b"), Protocol: []byte("HTTP/1.1")}
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
			r := newRequest()
			r.record = f.newRecord(true)
			r.record.begin()
			r.record.asked(h, r)
			r.record.traced(r, false)
			r.record.decided(r.record.now())
			r.record.judged(Queued, s, &p, now)
			r.handOver(200).end(5)
			r.release()
		}); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
