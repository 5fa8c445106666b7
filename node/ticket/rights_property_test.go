package ticket

import (
	"flag"
	"runtime"
	"sync"
	"testing"
)

var rightsRuns = flag.Int("rights-runs", 0, "runs of each world of rights; 0: a few")

// worlds are the kinds of runs, by name.
func worlds() map[string]worldOptions {
	return map[string]worldOptions{
		"plain":            {},
		"counter":          {Counter: true},
		"limits":           {Limits: true},
		"limits, counter":  {Limits: true, Counter: true},
		"leave":            {Leave: true},
		"leave, counter":   {Leave: true, Counter: true},
		"lost disks":       {Lose: true},
		"leave and lost":   {Leave: true, Lose: true, Often: true},
		"limits and leave": {Limits: true, Leave: true, Lose: true, Often: true},
		"everything":       {Counter: true, Limits: true, Leave: true, Lose: true},
		"open":             {Open: true},
		"light":            {Light: true, Counter: true},
		"slow disks":       {Slow: true, Limits: true, Leave: true},
		"open, everything": {Open: true, Counter: true, Limits: true, Leave: true, Lose: true},
	}
}

// runWorlds runs seeds of a world on all cores and calls found for each.
func runWorlds(opt worldOptions, from, n int, found func(seed uint64, t truth)) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := from
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				mu.Lock()
				seed := next
				next++
				mu.Unlock()
				if seed >= from+n {
					return
				}
				got := newWorld(uint64(seed), opt).run()
				mu.Lock()
				found(uint64(seed), got)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// TestRightsHold runs worlds with faults of every kind. At no moment more
// visitors are active than places are minted, in no 60 s more are let in than rate
// rights are, no ticket is used twice, and once all is well no right is lost or
// gained.
func TestRightsHold(t *testing.T) {
	runs := 6
	if testing.Short() {
		runs = 2
	}
	if *rightsRuns > 0 {
		runs = *rightsRuns
	}
	for name, opt := range worlds() {
		t.Run(name, func(t *testing.T) {
			admitted, used, usedN := 0, 0.0, 0.0
			runWorlds(opt, 1, runs, func(seed uint64, got truth) {
				admitted += got.Admitted
				used, usedN = used+got.used, usedN+got.usedN
				if got.wrong() {
					t.Errorf("seed %d of %+v: %s", seed, opt, got.what())
				}
			})
			t.Logf("%d runs, %d admitted in each, %.1f %% used once healed", runs, admitted/runs, 100*used/max(1, usedN))
			if admitted < 20*runs {
				t.Errorf("%d visitors admitted in %d runs", admitted, runs)
			}
		})
	}
}
