//go:build linux && !race

package rate

import (
	"math"
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
		// The runtime and what earlier tests left allocate meanwhile, too, so the least of some counts is taken:
		// what each request allocates is in all of them.
		least := uint64(math.MaxUint64)
		for range 5 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for until := l.tally.answered + 1000; l.tally.answered < until; {
				step()
			}
			runtime.ReadMemStats(&after)
			least = min(least, after.Mallocs-before.Mallocs)
		}
		if least > 10 {
			t.Errorf("at %v/s: %d allocations in 1000 requests", rate, least)
		}
		if len(l.tally.errors) > 0 {
			t.Errorf("at %v/s: errors %v", rate, l.tally.errors)
		}
	}
}
