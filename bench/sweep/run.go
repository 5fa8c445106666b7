package sweep

import (
	"context"
	"fmt"
	"sync"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/node/room"
)

// summary is what the schedules of one policy came to.
type summary struct {
	policy       room.Policy
	runs, broken int
	active, rate worst
	perNode      densest
	idles        []float64
}

// worst is the run that went furthest over one of the limits.
type worst struct {
	times       int // in how many schedules the limit was exceeded at all
	pct         float64
	over, limit int
	line        string
}

// densest is the run that went furthest over either limit for each node of its mesh, which is
// what bounds go by.
type densest struct {
	over float64
	line string
}

func (w *worst) add(peak, limit int, line func() string) {
	if peak <= limit {
		return
	}
	w.times++
	if pct := 100 * float64(peak-limit) / float64(limit); pct > w.pct {
		w.pct, w.over, w.limit, w.line = pct, peak-limit, limit, line()
	}
}

// idle returns the median part of the limit that lay idle while somebody waited, in percent.
func (s *summary) idle() float64 {
	return measurement.Median(s.idles)
}

// outcome is one run.
type outcome struct {
	schedule
	result *sim.Result
	err    error
}

// sweep runs the schedules of one policy. Outcomes are taken in whatever order runs end; what
// is made of them does not depend on it but for which of two equal worst ones is shown.
func sweep(ctx context.Context, o options, policy room.Policy, tell func(string, ...any)) (*summary, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	seeds, outcomes := make(chan uint64), make(chan outcome)
	go func() {
		defer close(seeds)
		for i := range o.n {
			select {
			case seeds <- o.seed + uint64(i):
			case <-ctx.Done():
				return
			}
		}
	}()
	var wg sync.WaitGroup
	for range min(o.workers, o.n) {
		wg.Go(func() {
			for seed := range seeds {
				outcomes <- runOne(ctx, seed, policy)
			}
		})
	}
	go func() {
		wg.Wait()
		close(outcomes)
	}()
	sum := &summary{policy: policy}
	var failed error
	for r := range outcomes {
		if r.err != nil {
			if failed == nil {
				failed = fmt.Errorf("seed %d: %w", r.seed, r.err)
				stop(failed)
			}
			continue
		}
		if sum.add(r) || o.all && r.over() {
			tell("%s", r.text())
		}
	}
	if failed == nil && sum.runs < o.n {
		failed = context.Cause(ctx)
	}
	return sum, failed
}

func runOne(ctx context.Context, seed uint64, policy room.Policy) outcome {
	o := outcome{schedule: draw(seed, policy)}
	cfg, err := o.config()
	if err != nil {
		o.err = err
		return o
	}
	o.result, o.err = sim.Run(ctx, cfg)
	return o
}

func (o *outcome) over() bool {
	return o.result.PeakActive > o.limit || o.result.PeakMinute > o.rate
}

func (o *outcome) text() string {
	return fmt.Sprintf("%d of %d active, %d of %d in 60 s: %s", o.result.PeakActive, o.limit, o.result.PeakMinute, o.rate, o.line())
}

// add takes an outcome, and reports whether it broke what the policy is bound to.
func (s *summary) add(o outcome) (broken bool) {
	s.runs++
	s.active.add(o.result.PeakActive, o.limit, o.line)
	s.rate.add(o.result.PeakMinute, o.rate, o.line)
	if over := float64(o.beyond()) / float64(o.sites*o.nodes); over > s.perNode.over {
		s.perNode = densest{over, o.line()}
	}
	s.idles = append(s.idles, o.result.IdlePct)
	if broken = o.broken(); broken {
		s.broken++
	}
	return broken
}
