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

// run runs a set, and prints those that fail.
func (s *Set) run(ctx context.Context, out io.Writer, each func(*tally)) (*tally, error) {
	t := &tally{kinds: map[string]int{}}
	return t, sim.RunAll(ctx, s.Workers, s.all(), func(cfg sim.Config, r *sim.Result) bool {
		t.add(cfg, r)
		s.tell(out, cfg, r)
		each(t)
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

// tally sums schedules up.
type tally struct {
	runs, failed         int
	first                uint64         // seed of those that failed
	kinds                map[string]int // of broken promises
	full, rated          int            // schedules in which a limit was reached
	admitted, reanchored int
	borrowed, faults     int
	virtual              float64 // s
}

func (t *tally) add(cfg sim.Config, r *sim.Result) {
	t.runs++
	t.virtual += r.Simulated
	t.admitted += r.LetIn + r.Requeued
	t.reanchored += r.Reanchored
	t.borrowed += r.Borrowed
	t.faults += len(cfg.Faults)
	if r.PeakActive >= cfg.Room.TotalActiveUsers {
		t.full++
	}
	if r.PeakMinute >= cfg.Room.NewUsersPerMinute {
		t.rated++
	}
	for _, k := range r.Kinds() {
		t.kinds[k]++
	}
	if len(r.Violations) == 0 {
		return
	}
	if t.failed++; t.failed == 1 || cfg.Seed < t.first {
		t.first = cfg.Seed
	}
}

// broken says which promises were broken in how many schedules, the most frequent first.
func (t *tally) broken() string {
	keys := slices.SortedFunc(maps.Keys(t.kinds), func(a, b string) int {
		return cmp.Or(t.kinds[b]-t.kinds[a], cmp.Compare(a, b))
	})
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s in %d", k, t.kinds[k])
	}
	return strings.Join(keys, ", ")
}

func (t *tally) tell(out io.Writer, wall time.Duration) {
	fmt.Fprintf(out, "%d schedules, %d failed: %s\n", t.runs, t.failed, cmp.Or(t.broken(), "all promises were kept"))
	fmt.Fprintf(out, "%d admissions, %d sessions re-anchored, %d borrowed; %d faults; all places taken in %d schedules, the rate used up in %d\n",
		t.admitted, t.reanchored, t.borrowed, t.faults, t.full, t.rated)
	each := time.Duration(t.virtual / float64(max(1, t.runs)) * float64(time.Second))
	fmt.Fprintf(out, "%v, for %v of virtual time each\n", wall.Round(time.Second), each.Round(time.Second))
}

// table runs a set for each name, changed as the name wants, and prints what became of it,
// as a table in Markdown. It returns how many schedules failed in each.
func (s Set) table(ctx context.Context, what string, names []string, change func(*Set, string), out, errOut io.Writer) (failed []int, err error) {
	fmt.Fprintf(out, "| %s | schedules | let in | all places taken in | the rate used up in | failed | by | first seed |\n|---|--:|--:|--:|--:|--:|---|--:|\n", what)
	for _, name := range names {
		change(&s, name)
		t, err := s.run(ctx, errOut, func(*tally) {})
		if err != nil {
			return nil, err
		}
		failed = append(failed, t.failed)
		fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d | %s | %d |\n", name, t.runs, t.admitted, t.full, t.rated, t.failed, t.broken(), t.first)
	}
	return failed, nil
}
