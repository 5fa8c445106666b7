// Command limiters holds rate limits of ropeline beside those of nginx (limit_req) and
// HAProxy (stick tables), through HTTP and in one run: requests without a limit, within one
// and beyond one, and what each costs in processor time. It writes a table into a page of
// the documentation, between two marks. It needs nginx, haproxy, wrk and taskset, of
// Debian's packages nginx, haproxy, wrk and util-linux, and two processors: the server under
// test has one, wrk and the site have the other.
//
//	go run ./bench/limiters -binary ./ropeline -page docs/rate-limits-measured.md
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/docpage"
	"github.com/ropeline/ropeline/bench/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "limiters: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("limiters", flag.ContinueOnError)
	binary := fs.String("binary", "./ropeline", "the `program` to run")
	page := fs.String("page", "", "the `file` to write the table into; empty: print it")
	rounds := fs.Int("rounds", 5, "how often each is measured")
	attacked := fs.Bool("attack", false, "measure visitors while one source comes beyond a limit, instead")
	lasts := fs.Duration("lasts", 4*time.Second, "how long each time")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if missing := rig.Missing("nginx", "haproxy", "wrk", "taskset"); len(missing) > 0 {
		return fmt.Errorf("these are missing: %s", strings.Join(missing, ", "))
	}
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
	if *attacked {
		table, err := attack(ctx, dir, *binary, *rounds, *lasts)
		if err != nil {
			return err
		}
		return docpage.Write(os.Stdout, *page, "make limit-attack", table)
	}
	found := map[string][]figure{}
	for range *rounds {
		for _, s := range servers {
			for _, c := range cases {
				f, err := measure(ctx, dir, *binary, s, c, *lasts)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", s.name, c, err)
				}
				found[s.name+c] = append(found[s.name+c], f)
			}
		}
	}
	return docpage.Write(os.Stdout, *page, "make limit-bench", tableOf(found, *rounds))
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
	slices.Sort(values)
	return values[len(values)/2]
}
