// Package accuracy holds what rate limits estimate against what is true, for crowds of
// sources whose rates have a heavy tail and for a real access log.
package accuracy

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/node"
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
		c := crowd{Sources: sources, Requests: requests, Span: limit.Millis(time.Hour.Milliseconds()), Spell: x.spell, Tail: 1.2, Seed: 1}
		if len(x.sites) > 1 { // as many a minute, for a shorter time
			c.Requests, c.Span = meshed, limit.Millis(float64(c.Span)*float64(meshed)/float64(requests))
		}
		e, err := newEstimates(x.sites, node.DefaultLimitMemory)
		if err != nil {
			return err
		}
		add(run, x.name, measureAll(limit.Millis(period.Milliseconds()), []int{1000, 10_000, 30_000}, sources,
			func(each func(int, limit.Millis)) { c.walk(e.pass, each) }, e.count))
	}
	return nil
}

func add(run *measurement.Run, name string, a accuracy) {
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
	log, err := load.ReadLog(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	type request struct {
		source int
		at     limit.Millis
	}
	var all []request
	for source, c := range log.Clients {
		for _, r := range c.Requests {
			all = append(all, request{source, limit.Millis(r.At.Milliseconds())})
		}
	}
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(a.at, b.at) })
	e, err := newEstimates([]int{1}, 1<<20)
	if err != nil {
		return err
	}
	add(run, "the access log", measureAll(limit.Millis(period.Milliseconds()), []int{5, 10, 20, 40}, len(log.Clients), func(each func(int, limit.Millis)) {
		for _, r := range all {
			each(r.source, r.at)
		}
	}, e.count))
	return nil
}
