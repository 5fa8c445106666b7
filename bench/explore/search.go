package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/explore/boot"
	"github.com/ropeline/ropeline/bench/explore/replay"
	"github.com/ropeline/ropeline/bench/explore/small"
	"github.com/ropeline/ropeline/node/ticket"
)

// ledgers searches small worlds of ledgers, each under every order of ids.
func ledgers(ctx context.Context, o options, rules ticket.Rules, out io.Writer) (found int, err error) {
	fmt.Fprintf(out, "Ledgers alone, everything that can happen:\n\n| nodes | minter's id | older | ticks | budget | states | all | time | found |\n|--:|--:|--:|---|---|--:|---|--:|---|\n")
	return each(ctx, o, out, small.Worlds(), func(cfg small.Config, tell *sync.Mutex) (string, error) {
		cfg.States, cfg.LeaveOut = o.states, rules
		r, err := small.Search(ctx, cfg)
		tell.Lock()
		defer tell.Unlock()
		tellWorld(out, cfg, r)
		return r.Broken, err
	})
}

// bootstraps searches small worlds in which a mesh comes to be. No rule of rights has a part in it.
func bootstraps(ctx context.Context, o options, _ ticket.Rules, out io.Writer) (found int, err error) {
	fmt.Fprintf(out, "How a mesh comes to be, everything that can happen:\n\n| named | joins | ids | budget | states | all | time | found |\n|--:|--:|---|---|--:|---|--:|---|\n")
	return each(ctx, o, out, boot.Worlds(), func(cfg boot.Config, tell *sync.Mutex) (string, error) {
		cfg.States = o.states
		r, err := boot.Search(ctx, cfg)
		tell.Lock()
		defer tell.Unlock()
		tellBoot(out, cfg, r)
		return r.Broken, err
	})
}

// each has workers search worlds, until enough is found.
func each[C any](ctx context.Context, o options, out io.Writer, worlds []C, search func(C, *sync.Mutex) (broken string, err error)) (found int, err error) {
	var mu, tell sync.Mutex // tell is held while something is printed
	var wg sync.WaitGroup
	in := make(chan C)
	for range o.workers {
		wg.Go(func() {
			for cfg := range in {
				broken, failed := search(cfg, &tell)
				mu.Lock()
				if failed != nil && err == nil {
					err = failed
				}
				if broken != "" {
					found++
				}
				mu.Unlock()
			}
		})
	}
	for _, cfg := range worlds {
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

func tellBoot(out io.Writer, cfg boot.Config, r boot.Result) {
	later, joins, all, what := "rising", "0", "yes", "nothing"
	if cfg.Falling {
		later = "falling"
	}
	if cfg.Joins {
		joins = "1"
	}
	if !r.Whole {
		all = "no"
	}
	if r.Broken != "" {
		what = r.Broken
	}
	fmt.Fprintf(out, "| %d | %s | %s, %s | %s | %d | %s | %v | %s |\n", cfg.Named, joins, cfg.Order, later, cfg.Budget(), r.States, all,
		r.Took.Round(time.Second/10), what)
	if r.Broken != "" {
		fmt.Fprintf(out, "    go run ./bench/explore -replay %q\n", cfg.History(r.Trace))
	}
}

func tellWorld(out io.Writer, cfg small.Config, r small.Result) {
	nodes, ticks, older, all, what := fmt.Sprint(cfg.Nodes), "at any time", "none", "yes", "nothing"
	if cfg.Halfway {
		nodes += ", leave half way"
	}
	if cfg.Older > 0 {
		older = fmt.Sprint(cfg.Older)
	}
	if cfg.Coarse {
		ticks = "after each event"
	}
	if !r.Whole {
		all = "no"
	}
	if r.Broken != "" {
		what = r.Broken
	}
	fmt.Fprintf(out, "| %s | %d of %d | %s | %s | %s | %d | %s | %v | %s |\n", nodes, cfg.Minter+1, cfg.Nodes, older, ticks, cfg.Budget, r.States, all,
		r.Took.Round(time.Second/10), what)
	for _, step := range r.Trace {
		fmt.Fprintf(out, "    %s\n", step)
	}
}

// nodes searches histories of whole nodes, until one breaks a promise.
func nodes(ctx context.Context, o options, rules ticket.Rules, out io.Writer) (found int, err error) {
	debug.SetGCPercent(800) // a history makes much garbage and keeps little
	s := replay.Search{LeaveOut: rules, For: o.length, Seed: o.seed}
	fmt.Fprintf(out, "Whole nodes:\n\n| searched | histories | of | without effect | time |\n|---|--:|--:|--:|--:|\n")
	for _, p := range s.Parts() {
		t, err := s.Run(ctx, p)
		if err != nil {
			return 0, err
		}
		of := "drawn"
		if !p.Drawn() {
			of = fmt.Sprint(len(p.Histories))
		}
		fmt.Fprintf(out, "| %s | %d | %s | %d | %v |\n", p.Name, t.Runs, of, t.Useless, t.Took.Round(time.Second))
		if f := t.Found; f.Broken != "" {
			fmt.Fprintf(out, "\n%s\n    %s\n    go run ./bench/explore%s -replay %q\n", f.History, f.Broken, rules.Flag(), f.History)
			return 1, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return 0, nil
}
