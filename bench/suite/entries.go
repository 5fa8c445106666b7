package suite

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
)

// The units of all rows. Checks have those that they are of.
var units = []measurement.Unit{
	{Name: "cpu-sec/req", Meaning: "processor time of the server for each request", Better: "lower"},
	{Name: "req/s", Meaning: "whole answers a second", Better: "higher"},
	{Name: "p50-sec", Meaning: "latency, half are faster", Better: "lower"},
	{Name: "p99-sec", Meaning: "latency, 99 of 100 are faster", Better: "lower"},
	{Name: "p999-sec", Meaning: "latency, 999 of 1000 are faster", Better: "lower"},
	{Name: "bad", Meaning: "answers with another status than was wanted, and requests without an answer", Better: "lower"},
	{Name: checkUnit, Meaning: "what a bound is for, as its text says"},
}

// checkUnit is that of all checks, whose texts say what they are of.
const checkUnit = "check"

// Entries returns every benchmark, as a measurement.
func Entries() (all []measurement.Entry) {
	for _, b := range All() {
		e := measurement.Entry{Name: b.Name, Question: b.Question, Method: b.Method, Page: "benchmarks.md", Units: units, Needs: []string{measurement.Ropeline, "taskset"}, Quick: []string{"rounds=1", "for=1s"},
			New: func(options *pflag.FlagSet) func(context.Context, *measurement.Run) error {
				var c Config
				options.IntVar(&c.Rounds, "rounds", 6, "how often each server is measured; an interval takes six")
				options.DurationVar(&c.Lasts, "for", 4*time.Second, "how long each time")
				options.StringVar(&c.Only, "only", "", "measure servers with this text in their names only")
				return func(ctx context.Context, r *measurement.Run) error { return runInto(ctx, b, c, r) }
			}}
		for _, k := range b.checks {
			e.Bounds = append(e.Bounds, k.bound())
		}
		all = append(all, e)
	}
	return all
}

// bound is that of a check, whose values are a row of their own.
func (c *check) bound() measurement.Bound {
	text := c.text
	if c.unit != "" {
		text += " [" + c.unit + "]"
	}
	return measurement.Bound{Row: measurement.Row("check", c.text), Unit: checkUnit, Least: c.least, Most: c.most, Text: text}
}

func runInto(ctx context.Context, b Benchmark, c Config, run *measurement.Run) error {
	if c.Rounds < 1 || c.Lasts < time.Second {
		return errors.New("rounds are at least 1, and for is at least 1s")
	}
	if run.Docs != "" && c.Only != "" {
		return errors.New("--docs does not go with the option only: the page would have a part of the servers")
	}
	c.Binary, c.Self, c.Caddy, c.Tell = run.Binary, run.Self, cmp.Or(run.Caddy, "caddy"), run.Tell
	c.Warm, c.SelfTest = time.Second, 100*time.Millisecond
	r, err := Run(ctx, b, c)
	if err != nil {
		return err
	}
	for round := range r.Rounds {
		for i := range r.Rows {
			if row := &r.Rows[i]; round < len(row.Samples) {
				s := &row.Samples[round]
				run.Add(measurement.Row("server", row.Server, "case", row.Case), measurement.Values{"cpu-sec/req": s.CPU / 1e6, "req/s": s.Rate,
					"p50-sec": s.P50 / 1e3, "p99-sec": s.P99 / 1e3, "p999-sec": s.P999 / 1e3, "bad": float64(s.Bad + s.Failed)})
			}
		}
	}
	for _, k := range b.checks {
		values, _ := k.values(r)
		for _, v := range values {
			run.Add(k.bound().Row, measurement.Values{checkUnit: v})
		}
	}
	if run.Docs != "" {
		return r.WriteDocs(run.Docs)
	}
	r.Checks = nil // bounds are judged below the table
	return run.Table(r.Markdown())
}
