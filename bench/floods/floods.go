//go:build linux

// Package floods measures what strangers without a token can do to a node: one kind of load at a time is
// brought to its bound and held there, while a visitor whom the node has let in goes on asking. What is held
// for the load has to stay within the documented budget and must not grow, and the visitor must not notice.
//
// The flood is a process of its own ([Hold]), at a low priority on the core of the load, so that it takes
// what the visitor's requests and the site leave of that core. The node has the other core to itself.
package floods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// Units of rows.
const (
	held     = "held"
	before   = "before-B"
	added    = "added-B"
	budget   = "budget-B"
	ofBudget = "of-budget"
	growth   = "growth"
	calmP99  = "calm-p99-sec"
	p99      = "p99-sec"
	rise     = "rise-sec"
	bad      = "bad"
	busy     = "busy-%"
	waited   = "waited-%"
)

// What has to hold of each kind.
const (
	mostRise   = 20 * time.Millisecond
	mostGrowth = 0.05
)

// config says how long what is measured.
type config struct {
	lasts  time.Duration // how long a flood is held at its bound
	window time.Duration // how long the visitor's requests are measured at a time
	most   int           // connections of visitors, at most
	sent   int           // requests that fill a table, at most
	cycles int           // of the node's garbage collector, which pass at the bound before memory is looked at
	only   []string
}

// Entry is the measurement.
func Entry() measurement.Entry {
	e := measurement.Entry{
		Name: "floods", Page: "measurements.md",
		Question: "What can strangers without a token do to a node?",
		Method: "A node in front of a small site, with a core to itself, and a visitor inside who makes 200 requests a second. One kind of load at a time comes from the other core, at a low priority, " +
			"until it has reached its bound, and is held there: of connections as many as the node takes with the limit of open files of the machine. The latency of the visitor's requests is that of windows before, while and after. Memory is what the kernel counts as resident and is the node's own, " +
			"without pages of files, every quarter of a second.",
		Units: []measurement.Unit{
			{Name: held, Meaning: "the most connections that were open, or requests that were answered", Exact: true},
			{Name: before, Meaning: "memory before the flood: the most between two garbage collections", Exact: true},
			{Name: added, Meaning: "the most that there was beyond that", Better: "lower", Exact: true},
			{Name: budget, Meaning: "what [the table](operating.md#what-strangers-can-make-a-node-hold) allows for so much", Exact: true},
			{Name: ofBudget, Meaning: "what was added, by that", Better: "lower", Exact: true},
			{Name: growth, Meaning: "by which part memory was higher in the last third of the span than in the first, in the median, beyond 4 MiB", Better: "lower", Exact: true},
			{Name: calmP99, Meaning: "p99 of the visitor's requests without a flood: of each window"},
			{Name: p99, Meaning: "p99 with it", Better: "lower"},
			{Name: rise, Meaning: "by how much that is more than the median without", Better: "lower"},
			{Name: bad, Meaning: "requests of the visitor that were not answered by the site, in a window", Better: "lower"},
			{Name: busy, Meaning: "part of the time in which the node used its core"},
			{Name: waited, Meaning: "part of the time in which it could have run, and others had its core: what a busy machine adds to p99"},
		},
		Needs: []string{measurement.Ropeline, "taskset", "nice", "nginx", "openssl"}, Cores: []int{rig.OfLoad.Number()},
		Quick: []string{"for=1500ms", "window=500ms", "connections=500", "requests=20000", "collections=0"},
		New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			var c config
			o.DurationVar(&c.lasts, "for", 5*time.Minute, "how long each flood is held at its bound")
			o.DurationVar(&c.window, "window", 10*time.Second, "how long requests of the visitor are measured at a time")
			o.IntVar(&c.most, "connections", defaultConns, "max-connections of the node; fewer where the limit of open files is too low")
			o.IntVar(&c.sent, "requests", 1<<30, "how many requests fill a table, at most; fewer than a table takes are for trying out")
			o.IntVar(&c.cycles, "collections", 4, "how many garbage collections pass at its bound before memory is looked at")
			o.StringSliceVar(&c.only, "only", names(), "which kinds")
			return func(ctx context.Context, r *measurement.Run) error { return measure(ctx, c, r) }
		},
	}
	for _, k := range kinds() {
		e.Bounds = append(e.Bounds,
			measurement.Bound{Row: k.row(), Unit: ofBudget, Most: 1, Text: k.name + ": memory by its budget"},
			measurement.Bound{Row: k.row(), Unit: growth, Most: mostGrowth, Text: k.name + ": growth while it is held"},
			measurement.Bound{Row: k.row(), Unit: rise, Most: mostRise.Seconds(), Text: k.name + ": rise of the visitor's p99"},
			measurement.Bound{Row: k.row(), Unit: bad, Most: measurement.NoneAtAll, Text: k.name + ": requests of the visitor without the site's answer"})
	}
	return e
}

func names() (all []string) {
	for _, k := range kinds() {
		all = append(all, k.name)
	}
	return all
}

func measure(ctx context.Context, c config, r *measurement.Run) error {
	if c.window < 500*time.Millisecond || c.lasts < 3*c.window || c.most <= spare {
		return fmt.Errorf("want a window of at least 500ms, three of them in for, and more than %d connections", spare)
	}
	if r.Docs != "" && (!slices.Equal(c.only, names()) || c.sent < 1<<30) {
		return errors.New("--docs does not go with the options only and requests: the page would have a part of the floods")
	}
	var chosen []kind
	for _, name := range c.only {
		k, ok := kindOf(name)
		if !ok {
			return fmt.Errorf("there is no kind %q; want some of %s", name, strings.Join(names(), ", "))
		}
		chosen = append(chosen, k)
	}
	var failed error
	for i, k := range chosen {
		r.Tell("%d of %d: %s: %s", i+1, len(chosen), k.name, k.what)
		err := rig.Try(func() { one(ctx, c, k, r) })
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil: // the others are measured all the same
			r.Tell("%s: %v", k.name, err)
			failed = errors.Join(failed, fmt.Errorf("%s: %w", k.name, err))
		}
	}
	return failed
}

// one measures one kind of load.
func one(ctx context.Context, c config, k kind, r *measurement.Run) {
	s := startSubject(ctx, r, k, c.most)
	defer s.end()
	if k.to != "admin" {
		c.most = s.metric(ctx, "ropeline_connections_max") // fewer than it was asked for where files are short
	}
	s.windows(ctx, 1, c.window) // warm
	calm := s.windows(ctx, calmWindows, c.window)
	base := s.atRest(ctx)
	begun := time.Now()
	w := s.watch(ctx)
	f := startFlood(ctx, r.Self, k, s, c)
	defer f.Kill()
	f.await(ctx, s, c, func() { r.Tell("%s: %v", k.name, f.last()) })
	reached, now := w.taken()
	r.Tell("%s: at its bound after %v: %v; %s", k.name, time.Since(begun).Round(time.Second), f.last(), mib(now))
	var at []seen
	count := f.count()
	for n := int(c.lasts / c.window); len(at) < n; {
		at = append(at, s.windows(ctx, 1, c.window)...)
		_, now := w.taken()
		count = max(count, f.count())
		r.Tell("%s: %v of %v: p99 %v, %s; %v", k.name, time.Duration(len(at))*c.window, c.lasts, at[len(at)-1].p99.Round(10*time.Microsecond), mib(now), f.last())
	}
	samples := w.stop()
	rig.Must(errors.Join(f.Stop(), s.node.Sleep(ctx, min(afterwards, c.lasts))))
	calm = append(calm, s.windows(ctx, calmWindows, c.window)...)
	report(r, k, outcome{base, samples, samples[reached:], count, calm, at})
}

// outcome is what was measured of one kind.
type outcome struct {
	base    float64   // memory before
	samples []float64 // of memory, since the flood began
	span    []float64 // of these, since it is at its bound
	count   int       // the most connections at the end of a window, or answers until the last one
	calm    []seen    // windows without
	at      []seen    // windows at its bound
}

// report adds what was measured.
func report(r *measurement.Run, k kind, o outcome) {
	quiet, more := medianP99(o.calm), slices.Max(o.samples)-o.base
	allowed := float64(k.budget(o.count))
	r.Add(k.row(), measurement.Values{
		held: float64(o.count), before: o.base, added: max(0, more), budget: allowed, ofBudget: max(0, more) / allowed, growth: grown(o.span),
	})
	for _, w := range o.calm {
		r.Add(k.row(), measurement.Values{calmP99: w.p99.Seconds()})
	}
	for _, w := range o.at {
		r.Add(k.row(), measurement.Values{p99: w.p99.Seconds(), rise: (w.p99 - quiet).Seconds(), bad: float64(w.bad), busy: 100 * w.busy, waited: 100 * w.waited})
	}
	r.Tell("%s: added %s of %s; growth %.3f; p99 %v, and %v without", k.name, mib(more), mib(allowed), grown(o.span), medianP99(o.at), quiet)
}

func mib(bytes float64) string { return fmt.Sprintf("%.1f MiB", bytes/(1<<20)) }
