//go:build linux && !race

package rate

import (
	"testing"
	"time"
)

// TestRequestsAllocNothing counts both ends: the bare server runs in this process.
func TestRequestsAllocNothing(t *testing.T) {
	for _, rate := range []float64{0, 50_000} {
		cfg, err := Config{Address: startBare(t, 100), Requests: [][]byte{get("/a"), get("/b")}, Rate: rate, Arrivals: Poisson, Lasts: time.Hour}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		to, family, err := resolve(t.Context(), cfg.Address)
		if err != nil {
			t.Fatal(err)
		}
		l, err := newLoop(cfg, to, family)
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
		if got := testing.AllocsPerRun(2000, step); got != 0 {
			t.Errorf("at %v/s: %v allocations for a step", rate, got)
		}
		if l.tally.answered < 1500 || l.tally.errors != [len(kinds)]int64{} {
			t.Errorf("at %v/s: %d answers, errors %v", rate, l.tally.answered, l.tally.errors)
		}
	}
}
