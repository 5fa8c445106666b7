// Package story runs sets of simulations, with the command lines that their tables write down: so a
// table cannot say anything that a reader does not get.
package story

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
)

// Entries are the measurements.
func Entries() []measurement.Entry {
	return []measurement.Entry{
		{
			Name: "policies", Page: "policies.md",
			Question: "What do the policies do to the same crowds, undisturbed, in a spike, and while a site is cut off?",
			Method:   "Simulations of five sites of three nodes, each of which is a command line in the page.",
			Units: []measurement.Unit{
				{Name: "over-%", Meaning: "most that were inside, beyond the limit in force", Better: "lower", Exact: true},
				{Name: "rate-over-%", Meaning: "most that came in within a minute, beyond the limit in force", Better: "lower", Exact: true},
				{Name: "idle-%", Meaning: "part of the limit that lay idle while somebody waited", Better: "lower", Exact: true},
				{Name: "broken", Meaning: "promises that were broken", Better: "lower", Exact: true},
			},
			Quick: []string{"only=--nodes 3 --total-active-users 800 --new-users-per-minute 400 --stay 2m --session-duration 1m --policy open"}, // the spike
			New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
				return runOf(o, policies(), func(f finished) measurement.Values {
					return measurement.Values{"over-%": f.result.OvershootPct, "rate-over-%": f.result.OvershootRatePct, "idle-%": f.result.IdlePct, "broken": float64(len(f.result.Violations))}
				})
			},
		},
		{
			Name: "methods", Page: "simulator.md",
			Question: "What do first come first served and chance do to the same crowd?",
			Method:   "10,000 visitors come over 30 minutes and browse for a minute on average, in a small room.",
			Units: []measurement.Unit{
				{Name: "wait-r2", Meaning: "part of the waits' variance that a straight line over the times of arrival explains", Exact: true},
				{Name: "correlation", Meaning: "of wait and arrival", Exact: true},
				{Name: "idle-%", Meaning: "part of the limit that lay idle while somebody waited", Better: "lower", Exact: true},
			},
			Quick: []string{"only=--total-active-users 200"},
			New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
				return runOf(o, methods(), func(f finished) measurement.Values {
					return measurement.Values{"wait-r2": f.result.WaitR2, "correlation": f.result.WaitCorrelation, "idle-%": f.result.IdlePct}
				})
			},
		},
		{
			Name: "simulate-large", Page: "simulator.md",
			Question: "How large a mesh, and a crowd, can a simulation have?",
			Method:   "A million visitors, and meshes of up to 3,000 nodes, each simulated on one core; the command lines are in the page.",
			Units: []measurement.Unit{
				{Name: "sec", Meaning: "time that a simulation took", Better: "lower"},
				{Name: "visitors/s", Meaning: "visitors simulated a second", Better: "higher"},
				{Name: "B", Meaning: "most that the process had resident", Better: "lower"},
				{Name: "broken", Meaning: "promises that were broken", Better: "lower", Exact: true},
			},
			Quick: []string{"only=--sites 10 "},
			New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
				return runOf(o, large(), func(f finished) measurement.Values {
					return measurement.Values{"sec": f.took.Seconds(), "visitors/s": float64(f.result.Visitors) / f.took.Seconds(), "B": float64(f.memory), "broken": float64(len(f.result.Violations))}
				})
			},
		},
	}
}

// runOf returns the run of a set, one simulation after the other: time and memory are measured.
func runOf(o *pflag.FlagSet, s set, values func(finished) measurement.Values) func(context.Context, *measurement.Run) error {
	only := o.String("only", "", "do only runs whose command line has this text")
	return func(ctx context.Context, r *measurement.Run) error {
		runs := s.runs
		if *only != "" {
			if r.Docs != "" {
				return errors.New("--docs does not go with the option only: the page would have a part of the runs")
			}
			runs = slices.DeleteFunc(slices.Clone(runs), func(p planned) bool { return !strings.Contains(p.line(), *only) })
		}
		var done []finished
		for i, p := range runs {
			f, err := one(ctx, r.Self, p)
			if err != nil {
				return err
			}
			r.Tell("%2d of %d  %6.1f s  %s", i+1, len(runs), f.took.Seconds(), p.line())
			done = append(done, f)
			r.Add(measurement.Row(s.head[0], f.title[0], s.head[1], strings.Trim(f.title[1], "`")), values(f))
		}
		return r.Table(s.table(done))
	}
}
