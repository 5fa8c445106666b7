package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/explore/replay"
	"github.com/ropeline/ropeline/bench/explore/small"
	"github.com/ropeline/ropeline/node/ticket"
)

// ledgers searches small worlds of ledgers, each under every order of ids.
func ledgers(ctx context.Context, o options, rules ticket.Rules, out io.Writer) (found int, err error) {
	fmt.Fprintf(out, "Ledgers alone, everything that can happen:\n\n| nodes | minter's id | ticks | budget | states | all | time | found |\n|--:|--:|---|---|--:|---|--:|---|\n")
	var mu sync.Mutex
	var wg sync.WaitGroup
	in := make(chan small.Config)
	for range o.workers {
		wg.Go(func() {
			for cfg := range in {
				r, failed := small.Search(ctx, cfg)
				mu.Lock()
				if failed != nil && err == nil {
					err = failed
				}
				if r.Broken != "" {
					found++
				}
				tellWorld(out, cfg, r)
				mu.Unlock()
			}
		})
	}
	for _, cfg := range small.Worlds() {
		cfg.States, cfg.LeaveOut = o.states, rules
		mu.Lock()
		over := ctx.Err() != nil || err != nil || o.most > 0 && found >= o.most
		mu.Unlock()
		if over {
			break
		}
		in <- cfg
	}
	close(in)
	wg.Wait()
	fmt.Fprintln(out)
	return found, err
}

func tellWorld(out io.Writer, cfg small.Config, r small.Result) {
	ticks, all, what := "at any time", "yes", "nothing"
	if cfg.Coarse {
		ticks = "after each event"
	}
	if !r.Whole {
		all = "no"
	}
	if r.Broken != "" {
		what = r.Broken
	}
	fmt.Fprintf(out, "| %d | %d of %d | %s | %s | %d | %s | %v | %s |\n", cfg.Nodes, cfg.Minter+1, cfg.Nodes, ticks, cfg.Budget, r.States, all,
		r.Took.Round(time.Second/10), what)
	for _, step := range r.Trace {
		fmt.Fprintf(out, "    %s\n", step)
	}
}

// nodes searches histories of whole nodes.
func nodes(ctx context.Context, o options, rules ticket.Rules, out io.Writer) (found int, err error) {
	debug.SetGCPercent(800) // a history makes much garbage and keeps little
	e := &replay.Explorer{LeaveOut: rules, Workers: o.workers, Most: o.most, Seed: o.seed}
	fmt.Fprintf(out, "Whole nodes:\n\n")
	e.Begin(func(f replay.Finding) {
		fmt.Fprintf(out, "%s\n    %s\n    after %v; go run ./bench/explore%s -replay %q\n", f.History, f.Broken, f.After.Round(time.Second), rules.Flag(), f.History)
	})
	var tallies []replay.Tally
	for _, part := range e.Parts(o.length) {
		within, stop := context.WithTimeout(ctx, part.For)
		t, failed := e.Search(within, part.Name, part.Of, part.Histories)
		stop()
		tallies = append(tallies, t)
		if err = failed; err != nil || ctx.Err() != nil {
			break
		}
	}
	fmt.Fprintf(out, "\n| searched | histories | of | without effect | time | broken |\n|---|--:|--:|--:|--:|--:|\n")
	for _, t := range tallies {
		of := "drawn"
		if t.Of > 0 {
			of = fmt.Sprint(t.Of)
		}
		fmt.Fprintf(out, "| %s | %d | %s | %d | %v | %d |\n", t.Name, t.Runs, of, t.Useless, t.Took.Round(time.Second), t.Found)
	}
	if all := e.Findings(); len(all) > 0 {
		fmt.Fprintf(out, "\nThe shortest history that breaks a promise: %s\n", all[0].History)
	}
	return len(e.Findings()), err
}
