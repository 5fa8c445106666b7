// Package explore searches small meshes for a history that breaks the limit, and prints a
// short one if there is any.
//
// There are three searches. [Ledgers] goes through everything that can happen to the ledgers of two
// or three nodes, within a budget of operator's acts, stops and time; see package small. [Bootstrap] goes
// through everything that can happen while nodes make a mesh, within a budget of stops and lost
// disks; see package boot. [Nodes] replays whole nodes through operator's acts at exact moments, with
// deviations of network, disk and machine; see package replay.
//
// Each uses as many processors as GOMAXPROCS says, and ends with the first history that breaks a promise.
package explore

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/explore/boot"
	"github.com/ropeline/ropeline/bench/explore/breadth"
	"github.com/ropeline/ropeline/bench/explore/replay"
	"github.com/ropeline/ropeline/bench/explore/small"
	"github.com/ropeline/ropeline/node/ticket"
)

// inParallel calls do with 0, 1, 2 and so on, as often at once as there are processors, until it
// returns false.
func inParallel(do func(n int) (more bool)) {
	var next atomic.Int64
	var over atomic.Bool
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !over.Load() {
				if !do(int(next.Add(1) - 1)) {
					over.Store(true)
				}
			}
		})
	}
	wg.Wait()
}

// Ledgers looks at up to so many states of each small mesh of ledgers, without some rules, and reports whether a promise
// was broken.
func Ledgers(ctx context.Context, leaveOut ticket.Rules, states int, out io.Writer) (found bool) {
	return exhaust(ctx, small.Worlds(leaveOut), states, out)
}

// Bootstrap does so with meshes that come to be.
func Bootstrap(ctx context.Context, states int, out io.Writer) (found bool) {
	return exhaust(ctx, boot.Worlds(), states, out)
}

// world is one of which all is gone through that can happen.
type world interface {
	Search(ctx context.Context, states int) breadth.Result
}

// exhaust goes through worlds until something is found.
func exhaust[W world](ctx context.Context, worlds []W, states int, out io.Writer) (found bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	fmt.Fprintf(out, "Everything that can happen:\n\n| world | states | all | time |\n|---|--:|---|--:|\n")
	var mu sync.Mutex // guards found, and out
	inParallel(func(n int) bool {
		if n >= len(worlds) || ctx.Err() != nil {
			return false
		}
		r := worlds[n].Search(ctx, states)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "| %+v | %d | %v | %v |\n", worlds[n], r.States, r.Whole, r.Took.Round(time.Second/10))
		if r.Broken != "" {
			fmt.Fprintf(out, "BROKEN: %s\n    %s\n", r.Broken, strings.Join(r.Trace, "\n    "))
			found = true
			stop()
		}
		return !found
	})
	fmt.Fprintln(out)
	return found
}

// Nodes searches histories of whole nodes for so long, until one breaks a promise.
func Nodes(ctx context.Context, s replay.Search, length time.Duration, out io.Writer) (found bool, err error) {
	debug.SetGCPercent(800) // a history makes much garbage and keeps little
	fmt.Fprintf(out, "Whole nodes:\n\n| searched | histories | of | without effect | time |\n|---|--:|--:|--:|--:|\n")
	for _, p := range s.Parts() {
		start := time.Now()
		within, stop := context.WithTimeout(ctx, length*time.Duration(p.Percent)/100)
		var mu sync.Mutex // guards the following, and err
		runs, useless := 0, 0
		var broken replay.History
		inParallel(func(n int) bool {
			h, ok := s.History(p, n)
			if !ok || within.Err() != nil {
				return false
			}
			r, failed := replay.Run(h, s.LeaveOut, nil)
			mu.Lock()
			defer mu.Unlock()
			runs++
			if r.Useless {
				useless++
			}
			switch {
			case failed != nil:
				err = fmt.Errorf("%s: %w", h, failed)
			case r.Broken != "":
				broken, found = h, true
			}
			return !found && err == nil
		})
		stop()
		of := "–"
		if !p.Drawn() {
			of = fmt.Sprint(len(p.Histories))
		}
		fmt.Fprintf(out, "| %s | %d | %s | %d | %v |\n", p.Name, runs, of, useless, time.Since(start).Round(time.Second))
		if found {
			h := s.Shortest(broken)
			fmt.Fprintf(out, "\n    ropeline-bench explore%s --replay %q\n\n", s.LeaveOut.Flag(), h)
			return Rerun(h, s.LeaveOut, out)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// Rerun runs one history, without some rules, prints what happens in it, and reports whether a promise was broken.
func Rerun(h replay.History, leaveOut ticket.Rules, out io.Writer) (broken bool, err error) {
	r, err := replay.Run(h, leaveOut, func(format string, a ...any) { fmt.Fprintf(out, format+"\n", a...) })
	if err == nil && r.Broken == "" {
		fmt.Fprintf(out, "no promise was broken; %d were inside at most\n", r.Peak)
	}
	return r.Broken != "", err
}
