package suite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// The units of rows.
const (
	cpu       = "cpu-sec/req"
	perSecond = "req/s"
	p50       = "p50-sec"
	p99       = "p99-sec"
	p999      = "p999-sec"
	late      = "late-p99-sec"
	garbage   = "gc-%"
	bad       = "bad"
	generator = "generator-%"
	waited    = "waited-%"
)

var units = []measurement.Unit{
	{Name: cpu, Meaning: "processor time of the server for each request", Better: "lower"},
	{Name: perSecond, Meaning: "whole answers a second", Better: "higher"},
	{Name: p50, Meaning: "latency, half are faster", Better: "lower"},
	{Name: p99, Meaning: "latency, 99 of 100 are faster", Better: "lower"},
	{Name: p999, Meaning: "latency, 999 of 1000 are faster, from when requests were due", Better: "lower"},
	{Name: late, Meaning: "how late requests were sent by the generator's own fault, 99 of 100 less", Better: "lower"},
	{Name: garbage, Meaning: "part of the node's processor time that collecting garbage took", Better: "lower"},
	{Name: bad, Meaning: "answers with another status than was wanted, and requests without an answer", Better: "lower"},
	{Name: generator, Meaning: "part of its core that the generator used"},
	{Name: waited, Meaning: "part of the time in which a server of one process could have run, and others had its core", Better: "lower"},
}

var programs = map[string][]string{"nginx": {"nginx", "-v"}, "HAProxy": {"haproxy", "-v"}, "Redis": {"redis-server", "--version"}, "Caddy": {"caddy", "version"}}

// Entries returns every benchmark, as a measurement.
func Entries() (all []measurement.Entry) {
	for _, b := range benchmarks() {
		e := measurement.Entry{
			Name: b.name, Question: b.question, Method: b.method, Page: cmp.Or(b.page, "benchmarks.md"), Programs: programs,
			Needs: []string{measurement.Ropeline, "taskset"}, Cores: []int{rig.OfLoad.Number()}, Quick: []string{"rounds=1", "for=300ms", "line=1000"},
			New: func(options *pflag.FlagSet) func(context.Context, *measurement.Run) error {
				var c config
				options.IntVar(&c.rounds, "rounds", 6, "how often each server is measured; an interval takes six")
				options.DurationVar(&c.lasts, "for", 4*time.Second, "how long each time")
				options.StringVar(&c.only, "only", "", "measure servers with this text in their names only")
				options.IntVar(&c.line, "line", 1_000_000, "measure no server with more visitors who wait: these come first, which takes a minute for a million")
				return func(ctx context.Context, r *measurement.Run) error { return measure(ctx, b, c, r) }
			},
		}
		for _, r := range b.ratios {
			e.Units = append(e.Units, r.unit)
		}
		e.Units = slices.Concat(units[:1], e.Units, units[1:])
		for _, bound := range b.bounds {
			i := slices.IndexFunc(b.entries, func(e entry) bool { return e.name() == bound.Row })
			bound.Row = b.entries[i].row()
			e.Bounds = append(e.Bounds, bound)
		}
		all = append(all, e)
	}
	return all
}

func measure(ctx context.Context, b benchmark, c config, run *measurement.Run) error {
	if c.rounds < 1 || c.lasts < 100*time.Millisecond {
		return errors.New("rounds are at least 1, and for is at least 100ms")
	}
	if run.Docs != "" && (c.only != "" || c.line < 1_000_000) {
		return errors.New("--docs does not go with the options only and line: the page would have a part of the servers")
	}
	h := harness{config: c, run: run, caddy: cmp.Or(run.Caddy, "caddy"), samples: map[string][]sample{}}
	if err := h.measure(ctx, b); err != nil {
		return err
	}
	h.record(b)
	return nil
}

// record adds the samples of all rounds, and their ratios.
func (h *harness) record(b benchmark) {
	for round := range h.rounds {
		for _, e := range b.entries {
			if s := h.sample(e.name(), round); s != nil {
				for _, r := range b.ratios {
					if other := h.sample(r.by(&e), round); other != nil {
						s[r.unit.Name] = r.of(s, other)
					}
				}
				h.run.Add(e.row(), s)
			}
		}
	}
}

// sample is that of a row in a round; nil: it was not measured.
func (h *harness) sample(row string, round int) sample {
	if all := h.samples[row]; round < len(all) {
		return all[round]
	}
	return nil
}
