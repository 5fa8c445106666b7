package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/node/ticket"
)

// Set is a number of schedules. N and Workers are required.
type Set struct {
	N        int
	Seed     uint64       // of the first one; the next one has the next number
	Story    string       // of Stories, that they tell; empty: they are of all kinds
	LeaveOut ticket.Rules // that no node follows
	Verbose  bool         // what happens in each schedule is printed, step by step
	Workers  int          // how many schedules run at once
}

// all yields the schedules of a set.
func (s *Set) all() iter.Seq[sim.Config] {
	return func(yield func(sim.Config) bool) {
		for i := range uint64(s.N) {
			if !yield(s.draw(s.Seed + i)) {
				return
			}
		}
	}
}

func (s *Set) draw(seed uint64) sim.Config {
	cfg := draw(seed)
	if s.Story != "" {
		cfg = drawOf(seed, s.Story)
	}
	cfg.LeaveOut = s.LeaveOut
	if s.Verbose {
		cfg.Trace = new(strings.Builder)
	}
	return cfg
}

// Run runs a set, and prints those that fail. After each, it calls progress with what became of all until then.
func (s *Set) Run(ctx context.Context, out io.Writer, progress func(*Tally)) (*Tally, error) {
	t := &Tally{kinds: map[string]int{}}
	return t, sim.RunAll(ctx, s.Workers, s.all(), func(cfg sim.Config, r *sim.Result) bool {
		t.add(cfg, r)
		s.tell(out, cfg, r)
		progress(t)
		return true
	})
}

// shownViolations is how many broken promises are printed of one schedule.
const shownViolations = 5

// tell prints a schedule that failed, and how to run it again.
func (s *Set) tell(out io.Writer, cfg sim.Config, r *sim.Result) {
	if s.Verbose {
		fmt.Fprint(out, cfg.Trace)
	}
	bad := r.Violations
	if len(bad) == 0 && !s.Verbose {
		return
	}
	fmt.Fprintf(out, "seed %d: %d broken promises (%s)\n", cfg.Seed, len(bad), strings.Join(r.Kinds(), ", "))
	for _, v := range bad[:min(shownViolations, len(bad))] {
		fmt.Fprintf(out, "  %v\n", v)
	}
	story := ""
	if s.Story != "" {
		story = fmt.Sprintf(" --story %q", s.Story)
	}
	fmt.Fprintf(out, "  again: ropeline-bench schedules -n 1 -v --seed %d%s%s\n  %s\n", cfg.Seed, story, cfg.LeaveOut.Flag(), describe(cfg))
}

// describe returns all that a schedule consists of.
func describe(cfg sim.Config) string {
	text, err := json.Marshal(cfg)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d visitors, %s", cfg.Arrivals.Len(), text)
}

// Tally sums schedules up.
type Tally struct {
	Schedules, Failed    int
	kinds                map[string]int // of broken promises
	Full, Rated          int            // schedules in which a limit was reached
	Admitted, Reanchored int
	Borrowed, Faults     int
	Virtual              float64 // s, of all together
}

func (t *Tally) add(cfg sim.Config, r *sim.Result) {
	t.Schedules++
	t.Virtual += r.Simulated
	t.Admitted += r.LetIn + r.Requeued
	t.Reanchored += r.Reanchored
	t.Borrowed += r.Borrowed
	t.Faults += len(cfg.Faults)
	if r.PeakActive >= cfg.Room.TotalActiveUsers {
		t.Full++
	}
	if r.PeakMinute >= cfg.Room.NewUsersPerMinute {
		t.Rated++
	}
	for _, k := range r.Kinds() {
		t.kinds[k]++
	}
	if len(r.Violations) > 0 {
		t.Failed++
	}
}

// Broken says which promises were broken in how many schedules, the most frequent first.
func (t *Tally) Broken() string {
	keys := slices.SortedFunc(maps.Keys(t.kinds), func(a, b string) int {
		return cmp.Or(t.kinds[b]-t.kinds[a], cmp.Compare(a, b))
	})
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s in %d", k, t.kinds[k])
	}
	return strings.Join(keys, ", ")
}

func (t *Tally) tell(out io.Writer, wall time.Duration) {
	fmt.Fprintf(out, "%d schedules, %d failed: %s\n", t.Schedules, t.Failed, cmp.Or(t.Broken(), "all promises were kept"))
	fmt.Fprintf(out, "%d admissions, %d sessions re-anchored, %d borrowed; %d faults; all places taken in %d schedules, the rate used up in %d\n",
		t.Admitted, t.Reanchored, t.Borrowed, t.Faults, t.Full, t.Rated)
	fmt.Fprintf(out, "%v, for %.0f s of virtual time each\n", wall.Round(time.Second), t.Virtual/float64(max(1, t.Schedules)))
}
