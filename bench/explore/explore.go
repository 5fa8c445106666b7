// Package explore searches small meshes for a history that breaks the limit.
//
// There are three searches. Package small tries everything that can happen to the ledgers of two or three nodes, within a
// budget of operator's acts, stops and time; package boot everything that can happen while nodes make a mesh, within a
// budget of stops and lost disks. Package replay runs whole nodes through operator's acts at exact moments, with
// deviations of network, disk and machine.
//
// Each uses as many processors as GOMAXPROCS says, and ends with the first history that breaks a promise.
package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/explore/breadth"
	"github.com/ropeline/ropeline/bench/explore/replay"
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

// World is one of which all is gone through that can happen.
type World interface {
	Search(ctx context.Context, states int) breadth.Result
}

// Exhaust goes through worlds, up to so many states of each, until a promise is broken. It calls each, one call at a time,
// with what became of each world.
func Exhaust[W World](ctx context.Context, worlds []W, states int, each func(W, breadth.Result)) (found bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex // guards found, and each
	inParallel(func(n int) bool {
		if n >= len(worlds) || ctx.Err() != nil {
			return false
		}
		r := worlds[n].Search(ctx, states)
		mu.Lock()
		defer mu.Unlock()
		each(worlds[n], r)
		if r.Broken != "" {
			found = true
			stop()
		}
		return !found
	})
	return found
}

// Part is what became of one part of a search of whole nodes.
type Part struct {
	Name    string
	Runs    int // histories
	Of      int // that there are; 0: they are drawn, without end
	Useless int // of those that ran: an act was refused, or a moment never came
	Took    time.Duration
}

// Nodes searches histories of whole nodes for so long, until one breaks a promise, and calls each with each part that has
// ended. It returns that history, as short as it can be; nil: none does.
func Nodes(ctx context.Context, s replay.Search, length time.Duration, each func(Part)) (broken *replay.History, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // a history makes much garbage and keeps little
	for _, p := range s.Parts() {
		start := time.Now()
		within, stop := context.WithTimeout(ctx, length*time.Duration(p.Percent)/100)
		var mu sync.Mutex // guards the following, and err
		done := Part{Name: p.Name}
		inParallel(func(n int) bool {
			h, ok := s.History(p, n)
			if !ok || within.Err() != nil {
				return false
			}
			r, failed := replay.Run(h, s.LeaveOut, nil)
			mu.Lock()
			defer mu.Unlock()
			done.Runs++
			if r.Useless {
				done.Useless++
			}
			switch {
			case failed != nil:
				err = fmt.Errorf("%s: %w", h, failed)
			case r.Broken != "":
				broken = &h
			}
			return broken == nil && err == nil
		})
		stop()
		if !p.Drawn() {
			done.Of = len(p.Histories)
		}
		done.Took = time.Since(start)
		each(done)
		if broken != nil {
			h := s.Shortest(*broken)
			return &h, nil
		}
		if err != nil || ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
	return nil, nil
}

// Rerun runs one history, without some rules, prints what happens in it, and reports whether a promise was broken.
func Rerun(h replay.History, leaveOut ticket.Rules, out io.Writer) (broken bool, err error) {
	r, err := replay.Run(h, leaveOut, func(format string, a ...any) { fmt.Fprintf(out, format+"\n", a...) })
	if err == nil && r.Broken == "" {
		fmt.Fprintf(out, "no promise was broken; %d were inside at most\n", r.Peak)
	}
	return r.Broken != "", err
}
