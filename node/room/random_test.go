package room

import (
	"flag"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	meshSeed = flag.Uint64("mesh-seed", 0, "run the one random mesh of this seed; with -v print what happens in it")
	meshRuns = flag.Int("mesh-runs", 10_000, "how many random meshes to run")
)

// TestRandomMeshes runs small meshes, each drawn from its seed: sites, nodes,
// limits, methods and switches of them, events, delays, faults, and visitors with
// odd habits. See oracle for what has to hold.
func TestRandomMeshes(t *testing.T) {
	if *meshSeed != 0 {
		d := runMesh(*meshSeed, t.Logf)
		reportMesh(t, *meshSeed, d)
		return
	}
	runs := uint64(*meshRuns)
	if testing.Short() {
		runs /= 4
	}
	var next atomic.Uint64
	var mu sync.Mutex // guards the following
	var sum totals
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var own totals
			for own.broken < 4 {
				seed := next.Add(1)
				if seed > runs {
					break
				}
				d := runMesh(seed, nil)
				own.add(d)
				mu.Lock()
				reportMesh(t, seed, d)
				mu.Unlock()
			}
			mu.Lock()
			defer mu.Unlock()
			sum.merge(own)
		})
	}
	wg.Wait()
	t.Log(sum)
	sum.check(t)
}

// runMesh runs the mesh of one seed to its end.
func runMesh(seed uint64, log func(string, ...any)) (d *drawing) {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("%v\nreplay it with: %s", r, replay(seed)))
		}
	}()
	d = drawMesh(seed, log)
	if err := d.m.settings.Validate(); err != nil {
		d.m.failAt("drawn settings: %v", err)
	}
	// Who is away when it would be time comes back later.
	var end time.Time
	quiet := false
	for !quiet && end.Before(d.deadline()) {
		end = d.deadline()
		quiet = d.m.runUntil(end)
	}
	if !quiet {
		// Leases and counts of visitors who are through may still run out.
		d.m.checkWaiting()
		quiet = d.m.runUntil(d.m.now.Add(time.Hour))
		if !quiet {
			d.m.failAt("the mesh does not come to rest")
		}
	}
	d.m.checkEmpty()
	return d
}

func replay(seed uint64) string {
	return fmt.Sprintf("go test ./node/room -run '^TestRandomMeshes$' -mesh-seed %d -v", seed)
}

func reportMesh(t *testing.T, seed uint64, d *drawing) {
	t.Helper()
	if len(d.m.violations) == 0 {
		return
	}
	for _, v := range d.m.violations {
		t.Errorf("seed %d: %s", seed, v)
	}
	t.Logf("replay it with: %s", replay(seed))
}

// totals is what all meshes did together.
type totals struct {
	meshes, visitors, admitted, requests int
	overtaken, minutes, broken           int
	pairs, inOrder                       int // of a shuffled pre-queue
	hours                                float64
}

func (s *totals) add(d *drawing) {
	m := d.m
	s.meshes++
	s.visitors += len(m.visitors)
	s.admitted += len(m.admitted)
	s.requests += m.requests
	s.overtaken += m.overtaken
	s.minutes += m.minutes
	s.hours += m.now.Sub(m.start).Hours()
	if len(m.violations) > 0 {
		s.broken++
	}
	pairs, inOrder := m.shuffledPairs()
	s.pairs += pairs
	s.inOrder += inOrder
}

func (s *totals) merge(o totals) {
	s.meshes += o.meshes
	s.visitors += o.visitors
	s.admitted += o.admitted
	s.requests += o.requests
	s.overtaken += o.overtaken
	s.minutes += o.minutes
	s.broken += o.broken
	s.pairs += o.pairs
	s.inOrder += o.inOrder
	s.hours += o.hours
}

func (s totals) String() string {
	return fmt.Sprintf("%d meshes, %d visitors, %d let in, %d requests in %.0f h; %d times the order was at stake, %d times more than a minute told; %d of %d shuffled pairs in order of arrival",
		s.meshes, s.visitors, s.admitted, s.requests, s.hours, s.overtaken, s.minutes, s.inOrder, s.pairs)
}

// check looks at what only many meshes together show: a shuffled place says
// nothing of the arrival. Of n pairs that share nobody, half are in order, give
// or take a few times √n/2.
func (s totals) check(t *testing.T) {
	if off := math.Abs(float64(s.inOrder) - float64(s.pairs)/2); off > 4*math.Sqrt(float64(s.pairs))/2 {
		t.Errorf("%d of %d pairs of a shuffled pre-queue kept the order of arrival", s.inOrder, s.pairs)
	}
	if s.meshes < 10_000 || s.broken > 0 {
		return
	}
	// A test that never gets to the point shows nothing.
	if s.pairs < s.meshes/50 || s.overtaken < s.meshes/50 || s.minutes < s.meshes/10 || s.admitted < s.visitors/2 {
		t.Errorf("the meshes do not do what they are for: %v", s)
	}
}
