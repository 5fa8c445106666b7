// Command explore searches small meshes for a history that breaks the limit, and prints a
// short one if there is any.
//
// There are three searches. One goes through everything that can happen to the ledgers of two
// or three nodes, within a budget of operator's acts, stops and time; see package small. One goes
// through everything that can happen while nodes make a mesh, within a budget of stops and lost
// disks; see package boot. One replays whole nodes through operator's acts at exact moments, with
// deviations of network, disk and machine; see package replay.
//
//	go run ./bench/explore
//	go run ./bench/explore -leave-out fresh-mint
//	go run ./bench/explore -replay "abc/123: raise@2, m leave@1, t kill@1"
//	go run ./bench/explore -replay "rate abc/123: raise@2, leave@1"
//
// All of it uses as many processors as GOMAXPROCS says, and ends with the first history that breaks
// a promise. The exit code is 0 if nothing was found, 1 if something was, and 2 if the flags make no
// sense. With -replay it says the same of that history.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/explore/boot"
	"github.com/ropeline/ropeline/bench/explore/breadth"
	"github.com/ropeline/ropeline/bench/explore/replay"
	"github.com/ropeline/ropeline/bench/explore/small"
	"github.com/ropeline/ropeline/node/ticket"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

func command(args []string, out, errOut io.Writer) int {
	f := flag.NewFlagSet("explore", flag.ContinueOnError)
	f.SetOutput(errOut)
	again := f.String("replay", "", "run this `history` of whole nodes alone, and print what happens in it")
	leaveOut := f.String("leave-out", "", "run without these `rules`, separated by commas: "+strings.Join(ticket.RuleNames(), ", "))
	only := f.String("only", "", "run one `search` alone: ledgers, bootstrap or nodes")
	states := f.Int("states", 1_000_000, "how many states are looked at in each small world, at most")
	var s replay.Search
	f.DurationVar(&s.For, "for", 10*time.Minute, "how long whole nodes are searched")
	f.Uint64Var(&s.Seed, "seed", 1, "seed of the order in which histories of whole nodes come, and of those that are drawn")
	if err := f.Parse(args); err != nil {
		return 2
	}
	rules, err := ticket.ParseRules(*leaveOut)
	if err == nil && (f.NArg() > 0 || !slices.Contains([]string{"", "ledgers", "bootstrap", "nodes"}, *only)) {
		err = errors.New("want flags only, and ledgers, bootstrap or nodes for -only")
	}
	var history replay.History
	if err == nil && *again != "" {
		history, err = replay.Parse(*again)
	}
	if err != nil {
		fmt.Fprintln(errOut, "explore:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s.LeaveOut = rules
	searches := map[string]func() (bool, error){
		"ledgers":   func() (bool, error) { return exhaust(ctx, small.Worlds(rules), *states, out), nil },
		"bootstrap": func() (bool, error) { return exhaust(ctx, boot.Worlds(), *states, out), nil },
		"nodes":     func() (bool, error) { return nodes(ctx, s, out) },
		"replay":    func() (bool, error) { return rerun(history, rules, out) },
	}
	names := []string{"ledgers", "bootstrap", "nodes"}
	if *again != "" {
		names = []string{"replay"}
	} else if *only != "" {
		names = []string{*only}
	}
	for _, name := range names {
		switch found, err := searches[name](); {
		case err != nil:
			fmt.Fprintln(errOut, "explore:", err)
			return 1
		case found:
			return 1
		}
	}
	return 0
}

// world is one of which all is gone through that can happen.
type world interface {
	fmt.Stringer
	Search(ctx context.Context, states int) breadth.Result
}

// exhaust goes through worlds, as many at once as there are processors, until something is found.
func exhaust[W world](ctx context.Context, worlds []W, states int, out io.Writer) (found bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	fmt.Fprintf(out, "Everything that can happen:\n\n| world | states | all | time |\n|---|--:|---|--:|\n")
	var mu sync.Mutex // guards the following, and out
	next := 0
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for next < len(worlds) && ctx.Err() == nil {
				w := worlds[next]
				next++
				mu.Unlock()
				r := w.Search(ctx, states)
				mu.Lock()
				fmt.Fprintf(out, "| %s | %d | %v | %v |\n", w, r.States, r.Whole, r.Took.Round(time.Second/10))
				if r.Broken != "" {
					fmt.Fprintf(out, "BROKEN: %s\n    %s\n", r.Broken, strings.Join(r.Trace, "\n    "))
					found = true
					stop()
				}
			}
		})
	}
	wg.Wait()
	fmt.Fprintln(out)
	return found
}

// nodes searches histories of whole nodes, until one breaks a promise.
func nodes(ctx context.Context, s replay.Search, out io.Writer) (found bool, err error) {
	debug.SetGCPercent(800) // a history makes much garbage and keeps little
	fmt.Fprintf(out, "Whole nodes:\n\n| searched | histories | of | without effect | time |\n|---|--:|--:|--:|--:|\n")
	for _, p := range s.Parts() {
		t, err := s.Run(ctx, p)
		if err != nil {
			return false, err
		}
		of := "–"
		if !p.Drawn() {
			of = fmt.Sprint(len(p.Histories))
		}
		fmt.Fprintf(out, "| %s | %d | %s | %d | %v |\n", p.Name, t.Runs, of, t.Useless, t.Took.Round(time.Second))
		if f := t.Found; f.Broken != "" {
			fmt.Fprintf(out, "BROKEN: %s\n    go run ./bench/explore%s -replay %q\n", f.Broken, s.LeaveOut.Flag(), f.History)
			return true, nil
		}
	}
	return false, nil
}

// rerun runs one history.
func rerun(h replay.History, rules ticket.Rules, out io.Writer) (broken bool, err error) {
	r, err := replay.Run(h, rules, func(format string, a ...any) { fmt.Fprintf(out, format+"\n", a...) })
	if err == nil && r.Broken == "" {
		fmt.Fprintf(out, "no promise was broken; %d were inside at most\n", r.Peak)
	}
	return r.Broken != "", err
}
