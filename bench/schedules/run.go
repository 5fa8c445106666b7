package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/node/ticket"
)

// outcome is what became of one schedule.
type outcome struct {
	story  string // which it is; "" if none was asked for
	cfg    sim.Config
	result *sim.Result
	took   time.Duration
	trace  string
	err    error
}

// runAll runs schedules until all have run, one could not be run, or each says to
// stop. Outcomes come in the order in which runs end; each is called by one
// goroutine at a time.
func runAll(ctx context.Context, o options, leaveOut ticket.Rules, progress io.Writer, each func(outcome) bool) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	seeds, outcomes := make(chan uint64), make(chan outcome)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(seeds)
		for i := range o.n {
			select {
			case seeds <- o.seed + uint64(i):
			case <-ctx.Done():
				return
			}
		}
	})
	for range min(o.workers, o.n) {
		wg.Go(func() {
			for seed := range seeds {
				done := run(ctx, o.draw(seed), leaveOut, o.verbose)
				done.story = o.story
				outcomes <- done
			}
		})
	}
	go func() {
		wg.Wait()
		close(outcomes)
	}()
	start, n, enough := time.Now(), 0, false
	var failed error
	for r := range outcomes {
		switch {
		case enough || failed != nil:
		case r.err != nil:
			failed = fmt.Errorf("seed %d: %w", r.cfg.Seed, r.err)
			stop(failed)
		case !each(r):
			enough = true
			stop(nil)
		}
		if n++; n%progressEvery == 0 && progress != nil {
			fmt.Fprintf(progress, "%d of %d after %v\n", n, o.n, time.Since(start).Round(time.Second))
		}
	}
	return failed
}

// draw returns the schedule of a seed.
func (o *options) draw(seed uint64) sim.Config {
	if o.story != "" {
		return drawOf(seed, o.story)
	}
	return draw(seed)
}

// progressEvery is after how many schedules a line says how far it is.
const progressEvery = 5000

func runOne(ctx context.Context, seed uint64, leaveOut ticket.Rules, verbose bool) outcome {
	return run(ctx, draw(seed), leaveOut, verbose)
}

func run(ctx context.Context, cfg sim.Config, leaveOut ticket.Rules, verbose bool) outcome {
	o := outcome{cfg: cfg}
	o.cfg.LeaveOut = leaveOut
	var trace strings.Builder
	if verbose {
		o.cfg.Trace = &trace
	}
	start := time.Now()
	o.result, o.err = sim.Run(ctx, o.cfg)
	o.took, o.trace = time.Since(start), trace.String()
	return o
}

// kinds returns which promises were broken, each once.
func (o *outcome) kinds() (all []string) {
	for _, v := range o.result.Violations {
		if !slices.Contains(all, v.Kind) {
			all = append(all, v.Kind)
		}
	}
	return all
}

// shownViolations is how many broken promises are printed of one schedule.
const shownViolations = 5

// tell prints a schedule that failed, and how to run it again.
func (o *outcome) tell(out io.Writer) {
	fmt.Fprint(out, o.trace)
	bad := o.result.Violations
	if len(bad) == 0 && o.trace == "" {
		return
	}
	fmt.Fprintf(out, "seed %d: %d broken promises (%s)\n", o.cfg.Seed, len(bad), strings.Join(o.kinds(), ", "))
	for _, v := range bad[:min(shownViolations, len(bad))] {
		fmt.Fprintf(out, "  %v\n", v)
	}
	story := ""
	if o.story != "" {
		story = fmt.Sprintf(" -story %q", o.story)
	}
	fmt.Fprintf(out, "  again: go run ./bench/schedules -n 1 -v -seed %d%s%s\n  %s\n", o.cfg.Seed, story, o.cfg.LeaveOut.Flag(), describe(o.cfg))
}

// describe returns all that a schedule consists of.
func describe(cfg sim.Config) string {
	visitors := cfg.Arrivals.Len()
	cfg.Arrivals, cfg.Trace = nil, nil
	text, err := json.Marshal(cfg)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d visitors, %s", visitors, text)
}

// tally sums schedules up.
type tally struct {
	runs, failed         int
	kinds                map[string]int
	full, rated          int // schedules in which a limit was reached
	admitted, reanchored int
	borrowed, faults     int
	virtual, work        time.Duration
}

func newTally() *tally { return &tally{kinds: map[string]int{}} }

func (t *tally) add(o outcome) {
	r := o.result
	t.runs++
	t.work += o.took
	t.virtual += time.Duration(r.Simulated * float64(time.Second))
	t.admitted += r.LetIn + r.Requeued
	t.reanchored += r.Reanchored
	t.borrowed += r.Borrowed
	t.faults += len(o.cfg.Faults)
	if r.PeakActive >= o.cfg.Room.TotalActiveUsers {
		t.full++
	}
	if r.PeakMinute >= o.cfg.Room.NewUsersPerMinute {
		t.rated++
	}
	if len(r.Violations) > 0 {
		t.failed++
	}
	for _, k := range o.kinds() {
		t.kinds[k]++
	}
}

func (t *tally) tell(out io.Writer, wall time.Duration, workers int) {
	fmt.Fprintf(out, "%d schedules, %d failed", t.runs, t.failed)
	names := make([]string, 0, len(t.kinds))
	for k := range t.kinds {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		fmt.Fprintf(out, ", %s in %d", k, t.kinds[k])
	}
	if t.runs == 0 {
		fmt.Fprintln(out)
		return
	}
	fmt.Fprintf(out, "\n%d admissions, %d sessions re-anchored, %d borrowed; %d faults; all places taken in %d schedules, the rate used up in %d\n",
		t.admitted, t.reanchored, t.borrowed, t.faults, t.full, t.rated)
	n := time.Duration(t.runs)
	fmt.Fprintf(out, "%v, %d at a time: %v each, for %v of virtual time\n", wall.Round(time.Second), workers,
		(t.work / n).Round(100*time.Microsecond), (t.virtual / n).Round(time.Second))
}
