// Package accuracy holds what rate limits estimate against what is true, for crowds of
// sources whose rates have a heavy tail and for a real access log.
package accuracy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/accesslog"
	"github.com/ropeline/ropeline/bench/limits"
	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/node/limit"
)

// Entry is the measurement.
func Entry() measurement.Entry {
	return measurement.Entry{
		Name: "limit-accuracy", Page: "rate-limits-measured.md",
		Question: "How far are the estimates of rate limits from what is true?",
		Method: "The code that nodes run counts crowds of sources whose rates have a heavy tail, in virtual time, at one node and in a mesh, and a real access log. " +
			"Of each request it is said whether it would have been limited, by the estimate of the node that it came to, and whether it should have been.",
		Units: []measurement.Unit{
			{Name: "requests", Meaning: "requests of all", Exact: true},
			{Name: "sources", Meaning: "who makes them", Exact: true},
			{Name: "difference-%", Meaning: "mean difference between the estimate and the truth", Better: "lower", Exact: true},
			{Name: "by-source-%", Meaning: "the same of each source at its highest rate, of those that came ten times a minute", Better: "lower", Exact: true},
			{Name: "wrong-%", Meaning: "requests that were wrongly let pass or limited", Better: "lower", Exact: true},
			{Name: "above", Meaning: "sources above the limit", Exact: true},
			{Name: "missed", Meaning: "of these, were never found", Better: "lower", Exact: true},
			{Name: "worst-%", Meaning: "by which part of the limit the most of a missed one was above it", Better: "lower", Exact: true},
			{Name: "falsely", Meaning: "sources that were limited, and never above the limit", Better: "lower", Exact: true},
		},
		Quick: []string{"requests=400000", "mesh-requests=8000", "sources=2700"},
		New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			requests := o.Int("requests", 420_000_000, "how many requests a crowd makes at one node")
			meshed := o.Int("mesh-requests", 42_000_000, "how many it makes at a mesh")
			sources := o.Int("sources", 270_000, "how many sources a crowd has")
			return func(ctx context.Context, r *measurement.Run) error {
				if err := crowds(ctx, r, *sources, *requests, *meshed); err != nil {
					return err
				}
				return real(r, "bench/testdata/semicomplete-2015-05.access.log.gz")
			}
		},
	}
}

// mix is a crowd and the mesh that it asks.
type mix struct {
	name  string
	spell limit.Millis
	sites []int
}

var mixes = []mix{
	{"steady, one node", 0, []int{1}},
	{"in spells of 10 minutes, one node", 600_000, []int{1}},
	{"in spells of 1 minute, one node", 60_000, []int{1}},
	{"steady, 3 sites of 4 nodes", 0, []int{4, 4, 4}},
	{"in spells of 10 minutes, 3 sites of 4 nodes", 600_000, []int{4, 4, 4}},
}

const period = time.Minute

func crowds(ctx context.Context, run *measurement.Run, sources, requests, meshed int) error {
	for _, x := range mixes {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		run.Tell("%s", x.name)
		c := limits.Crowd{Sources: sources, Requests: requests, Span: limit.Millis(time.Hour.Milliseconds()), Spell: x.spell, Tail: 1.2, Seed: 1}
		if len(x.sites) > 1 { // as many a minute, for a shorter time
			c.Requests, c.Span = meshed, limit.Millis(float64(c.Span)*float64(meshed)/float64(requests))
		}
		cfg := limits.Config{Sites: x.sites, Memory: 64 << 20, Near: [2]limit.Millis{0, 1}, Far: [2]limit.Millis{20, 60}}
		count, pass := limits.Estimates(period, cfg)
		a := limits.Measure(limit.Millis(period.Milliseconds()), []int{1000, 10_000, 30_000}, sources,
			func(each func(int, limit.Millis)) { c.Walk(pass, each) }, count)
		add(run, x.name, a)
	}
	return nil
}

func add(run *measurement.Run, name string, a limits.Accuracy) {
	for _, l := range a.Limits {
		run.Add(measurement.Row("crowd", name, "limit", fmt.Sprint(l.Limit)), measurement.Values{
			"requests": float64(a.Requests), "sources": float64(a.Sources), "difference-%": 100 * a.MeanDifference, "by-source-%": 100 * a.BySource,
			"wrong-%": 100 * float64(l.Allowed+l.Refused) / float64(a.Requests), "above": float64(l.Over), "missed": float64(l.Missed), "worst-%": 100 * l.WorstMissed, "falsely": float64(l.FalsePositives),
		})
	}
}

// real is crowds, for the requests of an access log.
func real(run *measurement.Run, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	type request struct {
		source int
		at     limit.Millis
	}
	var all []request
	ids := map[string]int{}
	log, err := accesslog.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for {
		e, err := log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if _, ok := errors.AsType[*accesslog.Malformed](err); ok {
			continue
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if _, ok := ids[e.Address]; !ok {
			ids[e.Address] = len(ids)
		}
		all = append(all, request{ids[e.Address], limit.MillisOf(e.At)})
	}
	// Its lines are not in the order of their times.
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(a.at, b.at) })
	count, _ := limits.Estimates(period, limits.Config{Sites: []int{1}, Memory: 1 << 20})
	begin := all[0].at
	a := limits.Measure(limit.Millis(period.Milliseconds()), []int{5, 10, 20, 40}, len(ids), func(each func(int, limit.Millis)) {
		for _, r := range all {
			each(r.source, r.at-begin)
		}
	}, count)
	add(run, "the access log", a)
	return nil
}
