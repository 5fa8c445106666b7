//go:build linux

// Package faults runs meshes of real ropeline processes, hurts them while
// visitors ask, and checks from what every node has put on record that no ticket
// was given twice and no limit passed. docs/faults.md says how and what was seen.
package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// units are those of every entry. Counts and peaks are of one run.
var units = []measurement.Unit{
	{Name: "broken", Meaning: "1: a promise was broken, or the run could not be finished", Better: "lower", Exact: true},
	measurement.InAll,
	{Name: "skipped", Meaning: "1: it cannot be done here", Better: "lower", Exact: true},
	{Name: "faults", Meaning: "how often something was done to the mesh"},
	{Name: "tickets", Meaning: "tickets that were given"},
	{Name: "twice", Meaning: "numbers of tickets that two visitors were given", Better: "lower", Exact: true},
	{Name: "active", Meaning: "the most visitors at one time"},
	{Name: "limit", Meaning: "of these: `total_active_users`, the greatest that an operator has set"},
	{Name: "new", Meaning: "the most new visitors in any 60 s"},
	{Name: "new-limit", Meaning: "of these: `new_users_per_minute`"},
	{Name: "pause-sec", Meaning: "the longest time without a new visitor"},
	{Name: "transfers", Meaning: "of rights, from node to node"},
	{Name: "order-error", Meaning: "visitors who were let in in the wrong order, as `ropeline load` counts them"},
	{Name: "sessions-lost", Meaning: "visitors who were sent into the queue in a session"},
	{Name: "places-lost", Meaning: "waiting visitors who were told a later arrival than before"},
	{Name: "again-sec", Meaning: "until every other node of the site gives tickets after its counter is killed: at most 1 s", Better: "lower"},
	{Name: "whole-sec", Meaning: "until the mesh gives as many as before: at most a minute", Better: "lower"},
	{Name: "sec", Meaning: "how long it took"},
}

// Entries are the measurements: each a choice of scenarios.
func Entries() []measurement.Entry {
	const method = "Real processes on links that can be cut, with visitors who come all the time. Each node puts every ticket on record; afterwards the records of all are merged in true time and checked. As root it cuts real links."
	each := func(name, question, which string, trials int, quick ...string) measurement.Entry {
		some, _ := choose(scenarios(), which) // which are named here, and there
		return entry(name, question, listed(method, some), quick, func(f *pflag.FlagSet, o *options) func() ([]scenario, error) {
			pattern := f.String("run", which, whichRun)
			f.IntVar(&o.trials, "trials", trials, "try those scenarios so often that are tried several times; 0: as often as each wants")
			return func() ([]scenario, error) { return choose(scenarios(), *pattern) }
		})
	}
	return []measurement.Entry{
		each("faults", "What does a mesh do when its processes, links, disks and clocks fail?", "F.*", 0, "run=F3b"),
		each("changed-limits", "Does the limit hold where it is changed while the room is full?", "L.*", 0),
		each("rolling", "Does anybody notice a restart of all nodes, or nodes that come and go?", "R.*", 0, "run=R3"),
		each("killed-counter", "How long until tickets flow again when the site's counter is killed?", "F5", 50, "trials=1"),
		entry("soak", "Does the limit hold under all faults mixed, for long?", method, []string{"for=20s"}, func(f *pflag.FlagSet, _ *options) func() ([]scenario, error) {
			lasts := f.Duration("for", time.Hour, "how long")
			return func() ([]scenario, error) { return []scenario{soakScenario(*lasts)}, nil }
		}),
		entry("chaos", "Does anything that goes wrong around nodes end one, or cost a visitor a place?", method, []string{"for=20s"}, func(f *pflag.FlagSet, _ *options) func() ([]scenario, error) {
			lasts := f.Duration("for", time.Hour, "how long")
			return func() ([]scenario, error) { return []scenario{chaosScenario(*lasts)}, nil }
		}),
	}
}

const whichRun = "the scenarios whose whole name this expression matches"

// listed is a method with the scenarios in which it is tried.
func listed(method string, some []scenario) string {
	text := method + "\n"
	for _, s := range some {
		text += fmt.Sprintf("\n  %-5s %s: %s", s.Name, s.Fault, s.Injected)
	}
	return text
}

// entry is one with the options that all have.
func entry(name, question, method string, quick []string, bind func(*pflag.FlagSet, *options) func() ([]scenario, error)) measurement.Entry {
	return measurement.Entry{
		Name: name, Page: "faults.md", Question: question, Method: method, Units: units, Quick: quick,
		Bounds: []measurement.Bound{measurement.NothingBroken},
		New: func(f *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			o := options{policy: escrow}
			chosen := bind(f, &o)
			f.Uint64Var(&o.seed, "seed", 1, "visitors, losses and the order of faults follow from it")
			return func(ctx context.Context, r *measurement.Run) error {
				some, err := chosen()
				if err != nil {
					return err
				}
				return measure(ctx, some, o, r)
			}
		},
	}
}

func measure(ctx context.Context, chosen []scenario, o options, r *measurement.Run) (err error) {
	o.out = r.Log
	if o.dir, err = os.MkdirTemp("", "ropeline-faults-"); err != nil {
		return err
	}
	defer func() { _ = os.Remove(o.dir) }() // stays if a run left something
	if o.binary, err = rig.Built(ctx, rig.Ropeline, "faults"); err != nil {
		return err
	}
	broken := 0
	for _, s := range chosen {
		broken += runAll(ctx, s, o, r)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return r.Broken(broken)
}

// choose returns the scenarios whose whole name an expression matches.
func choose(all []scenario, pattern string) ([]scenario, error) {
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(all, func(s scenario) bool { return !re.MatchString(s.Name) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no scenario is called %s; ropeline-bench list NAME has those of a measurement", pattern)
	}
	return chosen, nil
}

// runAll runs a scenario as often as it wants, and returns how often a promise was broken. What cannot be done here is
// skipped.
func runAll(ctx context.Context, s scenario, o options, m *measurement.Run) (broken int) {
	row := measurement.Row("scenario", s.Name, "fault", s.Fault)
	trials := 1
	if s.Trials > 0 {
		trials = cmp.Or(o.trials, s.Trials)
	}
	for trial := range trials {
		began := time.Now()
		r, err := execute(ctx, s, o, trial)
		if ctx.Err() != nil {
			return broken
		}
		if errors.Is(err, rig.ErrCannot) {
			m.Add(row, measurement.Values{"skipped": 1})
			m.Note("%s is skipped: %v", s.Name, err)
			return broken
		}
		values := measurement.Values{"broken": 0, "sec": time.Since(began).Seconds()}
		if wrong := r.came(values, err); len(wrong) > 0 {
			broken++
			values["broken"] = 1
			m.Note("**%s is broken**: %s", s.Name, strings.Join(wrong, "; "))
		}
		m.Add(row, values)
		if r != nil && len(r.seen) > 0 {
			m.Note("%s: %s", s.Name, strings.Join(r.seen, "; "))
		}
		m.Tell("%s: %v", s.Name, values)
	}
	return broken
}

// came puts down what came of a run, and returns what is wrong. err is why it could not be finished; it may be nil then.
func (r *run) came(values measurement.Values, err error) (wrong []string) {
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	if r == nil {
		return wrong
	}
	values["faults"] = float64(len(r.marks))
	values["order-error"], values["sessions-lost"], values["places-lost"] = r.loaded.OrderError, float64(r.loaded.SessionsLost), float64(r.loaded.PlacesLost)
	if o := r.outage; o != nil && o.lasts == nil {
		values["again-sec"], values["whole-sec"] = o.again.Seconds(), o.whole.Seconds()
	}
	if f := r.found; f != nil {
		values["pause-sec"] = f.pause.Seconds()
		for unit, n := range map[string]int{
			"tickets": f.tickets.Given, "twice": f.tickets.Doubles, "active": f.active.Peak, "limit": f.greatest.Active,
			"new": f.rate.Peak, "new-limit": f.greatest.PerMinute, "transfers": f.moves.Count,
		} {
			values[unit] = float64(n)
		}
	}
	return append(wrong, r.broken()...)
}
