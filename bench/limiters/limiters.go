// Package limiters holds rate limits of ropeline beside those of nginx (limit_req) and
// HAProxy (stick tables), through HTTP and in one run: requests without a limit, within one
// and beyond one, and what each costs in processor time; and visitors while one source comes
// beyond a limit.
package limiters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

const page = "rate-limits-measured.md"

// Entries are the measurements.
func Entries() []measurement.Entry {
	return []measurement.Entry{
		{
			Name: "limit-bench", Page: page,
			Question: "What does a rate limit cost, beside those of nginx and HAProxy?",
			Method:   "One server at a time on one core, wrk and the site on the other: requests without a limit, within one that is not reached, and beyond one that refuses nearly all.",
			Units: []measurement.Unit{{Name: "cpu-sec/req", Meaning: "processor time of the server for each request", Better: "lower"},
				{Name: "req/s", Meaning: "answers a second", Better: "higher"}},
			Needs: []string{measurement.Ropeline, "nginx", "haproxy", "wrk", "taskset"}, Quick: []string{"rounds=1", "for=1s"},
			New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
				rounds, lasts := options(o, 6)
				return func(ctx context.Context, r *measurement.Run) error {
					return withSite(ctx, func(dir string) error { return compare(ctx, r, dir, *rounds, *lasts) })
				}
			},
		},
		{
			Name: "limit-attack", Page: page,
			Question: "What do visitors notice while one source comes beyond a rate limit?",
			Method: "Through HTTP, with the server on one core, and visitors, the attack and the site on the other. Visitors come at an even rate and are measured from when they were to come; " +
				"the attack goes on whether it is answered or not.",
			Units: []measurement.Unit{{Name: "p50-sec", Meaning: "latency of visitors, half are faster", Better: "lower"}, {Name: "p99-sec", Meaning: "latency of visitors, 99 of 100 are faster", Better: "lower"},
				{Name: "attacks/s", Meaning: "requests of the attack"}},
			Needs: []string{measurement.Ropeline, "nginx", "taskset"}, Cores: []int{1}, Quick: []string{"rounds=1", "for=1s"},
			New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
				rounds, lasts := options(o, 11)
				return func(ctx context.Context, r *measurement.Run) error {
					return withSite(ctx, func(dir string) error { return attack(ctx, r, dir, *rounds, *lasts) })
				}
			},
		},
	}
}

func options(o *pflag.FlagSet, usual int) (rounds *int, lasts *time.Duration) {
	return o.Int("rounds", usual, "how often each is measured; an interval takes six"), o.Duration("for", 4*time.Second, "how long each time")
}

// withSite calls do while the site runs, with a folder for the time.
func withSite(ctx context.Context, do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "limiters")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	origin, err := rig.StartSite(ctx, filepath.Join(dir, "site"), site)
	if err != nil {
		return err
	}
	defer origin.Stop()
	return do(dir)
}

func compare(ctx context.Context, r *measurement.Run, dir string, rounds int, lasts time.Duration) error {
	found := map[string][]figure{}
	for range rounds {
		for _, s := range servers {
			for _, c := range cases {
				f, err := measure(ctx, dir, r.Binary, s, c, lasts)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", s.name, c, err)
				}
				r.Add(measurement.Row("server", s.name, "case", c), measurement.Values{"cpu-sec/req": f.cpu.Seconds(), "req/s": f.rate})
				found[s.name+c] = append(found[s.name+c], f)
			}
		}
	}
	return r.Table(tableOf(found, rounds))
}

// What each server is measured in.
const (
	without = "no limit"
	within  = "within a limit"
	beyond  = "beyond it"
)

var cases = []string{without, within, beyond}

// figure is one measurement.
type figure struct {
	rate float64       // requests a second
	cpu  time.Duration // of the server, for each request
}

// measure starts a server, has wrk ask it, and ends it.
func measure(ctx context.Context, dir, binary string, s server, c string, lasts time.Duration) (f figure, err error) {
	p, err := s.start(ctx, dir, binary, c)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	url := "http://" + address + "/"
	if err := p.Await(ctx, url); err != nil {
		return f, err
	}
	if _, err := rig.Wrk(ctx, url, time.Second); err != nil { // all is warm, and the limit is reached
		return f, err
	}
	before, err := p.CPU()
	if err != nil {
		return f, err
	}
	got, err := rig.Wrk(ctx, url, lasts)
	if err != nil {
		return f, err
	}
	after, err := p.CPU()
	if err != nil {
		return f, err
	}
	if refused := got.Other > got.All/2; refused != (c == beyond) {
		return f, fmt.Errorf("%d of %d answers are no 2xx", got.Other, got.All)
	}
	return figure{got.Rate, (after - before) / time.Duration(max(got.All, 1))}, nil
}

func tableOf(found map[string][]figure, rounds int) string {
	var b bytes.Buffer
	fmt.Fprintln(&b, "| server | no limit | within a limit | beyond it | what a limit costs |\n|---|---|---|---|---|")
	for _, s := range servers {
		fmt.Fprintf(&b, "| %s ", s.name)
		for _, c := range cases {
			all := found[s.name+c]
			rate, cpu := median(all, func(f figure) float64 { return f.rate }), median(all, func(f figure) float64 { return float64(f.cpu) / 1e3 })
			fmt.Fprintf(&b, "| %.0f/s, %.1f µs ", rate, cpu)
		}
		cost := median(found[s.name+within], func(f figure) float64 { return float64(f.cpu) }) / median(found[s.name+without], func(f figure) float64 { return float64(f.cpu) })
		fmt.Fprintf(&b, "| × %.2f |\n", cost)
	}
	own := func(c string) float64 {
		return median(found[servers[0].name+c], func(f figure) float64 { return float64(f.cpu) })
	}
	var ratios []string
	for _, s := range servers[1:] {
		for _, c := range cases[1:] {
			ratios = append(ratios, fmt.Sprintf("%s %s %.2f", s.name, c, own(c)/median(found[s.name+c], func(f figure) float64 { return float64(f.cpu) })))
		}
	}
	fmt.Fprintf(&b, "\nMedians of %d rounds, with 64 connections; µs is processor time of the server for each request. ropeline's time by that of %s.\n", rounds, strings.Join(ratios, ", of "))
	return b.String()
}

func median(all []figure, of func(figure) float64) float64 {
	values := make([]float64, len(all))
	for i := range all {
		values[i] = of(all[i])
	}
	return measurement.Median(values)
}
