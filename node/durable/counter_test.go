package durable_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/durable/faultstore"
)

// start runs objects on a store until the test, or stop, ends.
func start(t testing.TB, cfg durable.Config) (o *durable.Objects, stop func()) {
	t.Helper()
	o, err := durable.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { o.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return o, stop
}

func openStore(t testing.TB, d durable.Disk, path string) durable.Store {
	t.Helper()
	s, err := d.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// numbers is what a counter has returned, over all its lives.
type numbers struct {
	mu   sync.Mutex
	seen map[int]bool
	last int
}

// drawn takes a number that was returned.
func (s *numbers) drawn(t testing.TB, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = make(map[int]bool)
	}
	if s.seen[n] {
		t.Errorf("%d was returned twice", n)
	}
	s.seen[n] = true
	s.last = max(s.last, n)
}

func TestCounterIsUniqueUnderConcurrency(t *testing.T) {
	file, err := durable.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	o, stop := start(t, durable.Config{Store: file})
	defer stop()
	var got numbers
	var wg sync.WaitGroup
	const callers, calls = 64, 100
	for range callers {
		wg.Go(func() {
			for range calls {
				n, err := durable.Do(t.Context(), o, "counter", next)
				if err != nil {
					t.Error(err)
					return
				}
				got.drawn(t, n)
			}
		})
	}
	wg.Wait()
	if got.last != callers*calls || len(got.seen) != callers*calls {
		t.Errorf("%d calls returned %d numbers up to %d", callers*calls, len(got.seen), got.last)
	}
}

// TestCounterWhenACommitFails fails every commit in turn, with every outcome, then
// goes on with a store made of what is confirmed, and with what is left on disk.
func TestCounterWhenACommitFails(t *testing.T) {
	const calls = 30
	for _, outcome := range []faultstore.Outcome{faultstore.Lost, faultstore.Kept, faultstore.Maybe} {
		for failAt := 1; failAt <= calls; failAt++ {
			t.Run(fmt.Sprintf("outcome %d/commit %d", outcome, failAt), func(t *testing.T) {
				disk := faultstore.New(faultstore.NewMemory(uint64(failAt)), uint64(failAt))
				disk.Set(faultstore.Faults{FailAt: failAt, Outcome: outcome})
				store := openStore(t, disk, "s")
				o, stop := start(t, durable.Config{Store: store})
				var got numbers
				failed := 0
				for range calls {
					n, err := durable.Do(t.Context(), o, "counter", next)
					switch {
					case err == nil:
						got.drawn(t, n)
					case failed == 0 && !errors.Is(err, faultstore.ErrInjected):
						t.Fatalf("the call whose commit failed returned %v", err)
					case failed > 0 && !errors.Is(err, durable.ErrBroken):
						t.Fatalf("a call on a broken store returned %v", err)
					}
					if err != nil {
						failed++
					}
				}
				if len(got.seen) != failAt-1 || disk.Commits() != failAt {
					t.Fatalf("%d numbers and %d commits before commit %d failed; want %d and %d", len(got.seen), disk.Commits(), failAt, failAt-1, failAt)
				}
				if n := value(t, o); n != failAt-1 {
					t.Errorf("the object restarted from %d, confirmed was %d", n, failAt-1)
				}
				if err := o.Broken(); !errors.Is(err, durable.ErrBroken) {
					t.Errorf("after a failed commit the objects say %v", err)
				}
				replaceByItself(t, disk, o, store)
				again, err := durable.Do(t.Context(), o, "counter", next)
				if err != nil {
					t.Fatalf("after the store was replaced: %v", err)
				}
				got.drawn(t, again)
				stop()
				o, _ = start(t, durable.Config{Store: openStore(t, disk, "s")})
				after, err := durable.Do(t.Context(), o, "counter", next)
				if err != nil {
					t.Fatal(err)
				}
				got.drawn(t, after)
			})
		}
	}
}

// value reads the counter without changing it.
func value(t *testing.T, o *durable.Objects) int {
	t.Helper()
	n, err := durable.Do(t.Context(), o, "counter", func(c *durable.Call) (int, error) {
		b, err := c.Get("n")
		n, _ := strconv.Atoi(string(b))
		return n, err
	})
	if err != nil {
		t.Errorf("a read on a broken store: %v", err)
	}
	return n
}

// replaceByItself makes a new store of what the broken one shows.
func replaceByItself(t *testing.T, disk durable.Disk, o *durable.Objects, broken durable.Store) {
	t.Helper()
	var all []durable.Write
	if err := broken.Load(func(w durable.Write) bool { all = append(all, w); return true }); err != nil {
		t.Fatal(err)
	}
	fresh, err := disk.Create("s", all)
	if err != nil {
		t.Fatal(err)
	}
	o.Replace(fresh)
	if err := broken.Close(); err != nil {
		t.Error(err)
	}
	if err := o.Broken(); err != nil {
		t.Errorf("still broken: %v", err)
	}
}

// TestCounterWhenTheMachineCrashes takes the machine down while a commit is being
// written, at every commit and under load, and starts it again.
func TestCounterWhenTheMachineCrashes(t *testing.T) {
	for seed := range uint64(200) {
		disk := faultstore.NewMemory(seed)
		var got numbers
		left := 1 + int(seed%20)
		disk.Syncing = func() {
			if left--; left == 0 {
				disk.Crash()
			}
		}
		for range 3 {
			left = 1 + int(seed%20)
			store := openStore(t, disk, "s")
			o, stop := start(t, durable.Config{Store: store})
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for {
						n, err := durable.Do(t.Context(), o, "counter", next)
						if err != nil {
							return
						}
						got.drawn(t, n)
					}
				})
			}
			wg.Wait()
			stop()
		}
		if len(got.seen) == 0 && seed%20 > 1 {
			t.Errorf("seed %d: no number was ever drawn", seed)
		}
	}
}
