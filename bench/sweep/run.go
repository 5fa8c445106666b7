package sweep

import (
	"context"
	"fmt"

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
}

// sweep runs the schedules of one policy. What is made of them does not depend on the order in
// which they end but for which of two equal worst ones is shown.
func sweep(ctx context.Context, o options, policy room.Policy, tell func(string, ...any)) (*summary, error) {
	sum := &summary{policy: policy}
	all := func(yield func(sim.Config) bool) {
		for i := range uint64(o.n) {
			if s := draw(o.seed+i, policy); !yield(s.config()) {
				return
			}
		}
	}
	return sum, sim.RunAll(ctx, o.workers, all, func(cfg sim.Config, r *sim.Result) bool {
		if done := (outcome{draw(cfg.Seed, policy), r}); sum.add(done) {
			tell("%s", done.text())
		}
		return true
	})
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
