//go:build linux

// Package faults runs meshes of real ropeline processes, hurts them while
// visitors ask, and checks from what every node has put on record that no ticket
// was given twice and no limit passed. docs/faults.md says how and what was seen.
package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// units are those of every entry.
var units = []measurement.Unit{
	{Name: "broken", Meaning: "1: a promise was broken, or the run could not be finished", Better: "lower", Exact: true},
	{Name: "skipped", Meaning: "1: it cannot be done here", Better: "lower", Exact: true},
	{Name: "sec", Meaning: "how long it took"},
}

// Entries are the measurements: each a choice of scenarios.
func Entries() []measurement.Entry {
	const method = "Real processes on links that can be cut, with visitors who come all the time. Each node puts every ticket on record; afterwards the records of all are merged in true time and checked. As root it cuts real links."
	each := func(name, question, which string, trials int, quick ...string) measurement.Entry {
		text := method + "\n"
		for _, s := range named(which) {
			text += fmt.Sprintf("\n  %-5s %s: %s", s.Name, s.Fault, s.Injected+s.Skip)
		}
		return entry(name, question, text, quick, func(f *pflag.FlagSet, o *options) func() ([]scenario, error) {
			pattern := f.String("run", which, "the scenarios whose whole name this expression matches")
			long := f.Duration("long", 20*time.Second, "how long cuts and pauses last that outlast every lease")
			f.IntVar(&o.trials, "trials", trials, "repeat faults that can be at least so often; 0: as often as each wants")
			return func() ([]scenario, error) { return choose(scenarios(*long), *pattern) }
		})
	}
	return []measurement.Entry{
		each("faults", "What does a mesh do when it is hurt in every way that is known?", "F.*", 0, "run=F5b"),
		each("changed-limits", "Does the limit hold where it is changed while nodes leave and are killed?", "L.*", 0, "run=L1"),
		each("rolling", "Does anybody notice a restart of all nodes, or nodes that come and go?", "R.*", 0, "run=R1"),
		each("killed-counter", "How long until tickets flow again when the site's counter is killed?", "F5", 50, "trials=1"),
		entry("soak", "Does the limit hold under all faults mixed, for long?", method, []string{"for=1m"}, func(f *pflag.FlagSet, _ *options) func() ([]scenario, error) {
			lasts := f.Duration("for", time.Hour, "how long")
			return func() ([]scenario, error) { return []scenario{soakScenario(*lasts)}, nil }
		}),
	}
}

func named(pattern string) []scenario {
	some, _ := choose(scenarios(20*time.Second), pattern) // of one that no scenario is called by, none
	return some
}

// entry is one with the options that all have.
func entry(name, question, method string, quick []string, bind func(*pflag.FlagSet, *options) func() ([]scenario, error)) measurement.Entry {
	return measurement.Entry{Name: name, Page: "faults.md", Question: question, Method: method, Units: units, Quick: quick,
		Bounds: []measurement.Bound{{Row: "all", Unit: "broken", Most: measurement.NoneAtAll, Text: "what did not hold"}},
		New: func(f *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			var o options
			chosen := bind(f, &o)
			f.StringVar(&o.binary, "faulty", "", "ropeline, built with the tag faults (default: built now)")
			f.StringVar(&o.dir, "dir", "", "directory for data, logs and records (default: a temporary one)")
			f.StringVar(&o.policy, "policy", "escrow", "policy of the room")
			f.Uint64Var(&o.seed, "seed", 1, "visitors, losses and the order of faults follow from it")
			f.BoolVar(&o.loopback, "loopback", false, "cut by proxies only, even where real links could be")
			f.BoolVar(&o.keep, "keep", false, "keep data, logs and records of runs that held, too")
			return func(ctx context.Context, r *measurement.Run) error {
				some, err := chosen()
				if err != nil {
					return err
				}
				return measure(ctx, some, o, r)
			}
		}}
}

// errBroken says that a promise was broken; which one stands in the table.
var errBroken = errors.New("not everything held")

func measure(ctx context.Context, chosen []scenario, o options, r *measurement.Run) (err error) {
	o.out = r.Log
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "ropeline-faults-"); err != nil {
			return err
		}
		defer func() { _ = os.Remove(o.dir) }() // stays if a run left something
	}
	if o.binary == "" {
		if o.binary, err = rig.Built(ctx, rig.Ropeline, "faults"); err != nil {
			return err
		}
	}
	table, sum := tableHead, 0.0
	for _, s := range chosen {
		x := runOne(ctx, s, o)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.Tell("%s", strings.TrimSpace(x.row()))
		values := measurement.Values{"broken": 0, "skipped": 0, "sec": x.took.Seconds()}
		switch {
		case x.Skip != "":
			values["skipped"] = 1
		case x.bad():
			values["broken"] = 1
		}
		r.Add(measurement.Row("scenario", x.Name), values)
		table += x.row()
		sum += values["broken"]
	}
	r.Add("all", measurement.Values{"broken": sum})
	if err := r.Table(table); err != nil || sum == 0 {
		return err
	}
	return errBroken
}

// choose returns the scenarios whose whole name an expression matches.
func choose(all []scenario, pattern string) ([]scenario, error) {
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return nil, err
	}
	var chosen []scenario
	for _, s := range all {
		if re.MatchString(s.Name) {
			chosen = append(chosen, s)
		}
	}
	if chosen == nil {
		return nil, fmt.Errorf("no scenario is called %s; ropeline-bench list faults has them", pattern)
	}
	return chosen, nil
}

// runOne runs a scenario as often as it wants. What cannot be done here is skipped.
func runOne(ctx context.Context, s scenario, o options) result {
	all := result{scenario: s}
	began := time.Now()
	trials := 1
	if s.Trials > 0 {
		trials = max(s.Trials, o.trials)
	}
	var outages []*outage
	for trial := 0; trial < trials && all.Skip == "" && ctx.Err() == nil; trial++ {
		r, err := execute(ctx, s, o, trial)
		if errors.Is(err, rig.ErrCannot) {
			all.Skip = err.Error()
			break
		}
		all.add(r, err)
		if r != nil && r.outage != nil {
			outages = append(outages, r.outage)
		}
	}
	if len(outages) > 0 {
		seen, wrong := flow(outages)
		all.seen, all.broken = append(all.seen, seen), append(all.broken, wrong...)
	}
	all.took = time.Since(began)
	return all
}
