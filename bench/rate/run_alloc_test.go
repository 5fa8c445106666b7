//go:build linux && !race

package rate

import (
	"runtime"
	"testing"
	"time"
)

// TestRequestsAllocNothing counts both ends: the server runs in this process. testing.AllocsPerRun would
// have both take turns on one processor, which neither gives away while it waits.
func TestRequestsAllocNothing(t *testing.T) {
	for _, rate := range []float64{0, 50_000} {
		cfg := Config{Address: startBare(t, 100), Requests: [][]byte{get("/a"), get("/b")}, Rate: rate, Lasts: time.Hour}
		l, err := newLoop(cfg.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		defer l.close()
		if err := l.connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.begins()
		step := func() {
			if _, err := l.step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for l.tally.answered < 1000 { // what is kept for later is there then
			step()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for l.tally.answered < 6000 {
			step()
		}
		runtime.ReadMemStats(&after)
		// Some that the runtime makes meanwhile are not of requests.
		if got := after.Mallocs - before.Mallocs; got > 50 {
			t.Errorf("at %v/s: %d allocations in 5000 requests", rate, got)
		}
		if len(l.tally.errors) > 0 {
			t.Errorf("at %v/s: errors %v", rate, l.tally.errors)
		}
	}
}
