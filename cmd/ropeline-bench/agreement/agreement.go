// Package agreement has operators change the rooms, events, rules, pages and rate limits of whole meshes at random
// nodes, in virtual time, and demands that all nodes agree in the end on one catalog in which everything that was
// answered as done has its effect or was overruled by a later change, and nothing is half there.
//
// Each sequence follows from one number: two to seven nodes in one to three sites, up to thirty acts of operators, and
// between them cuts of nodes and sites, in one direction too, crashes, disks that are lost, nodes that leave, nodes that
// join with the configuration file of the others, and may be cut off while they do, clocks that are wrong at a start, and pauses
// in which deletions are forgotten. Then all is healed. What is true is known from what operators did and were
// answered alone, and not from the nodes.
//
// The same acts can be sent to processes, by the API and in real time, through links that are cut.
//
// Of two acts that ran at once either may win, for each field by itself. What only a node had whose disk was lost may be
// lost, and nothing else. What is deleted stays so.
package agreement

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Set is a number of sequences. N and Workers are required.
type Set struct {
	N       int
	Seed    uint64 // of the first one; the next one has the next number
	Workers int    // how many run at once
	Without []Kind // are left out of all
	Verbose bool   // what happens in each is printed, step by step
}

// shownViolations is how many broken promises are printed of one sequence.
const shownViolations = 5

// Judge runs a set, writes to out which sequences fail, and reports whether all promises were kept.
func (s *Set) Judge(ctx context.Context, out, progress io.Writer) (kept bool, err error) {
	start := time.Now()
	t := s.Run(ctx, func(done int, q Sequence, r *Result) {
		for _, line := range r.Trace {
			fmt.Fprintln(out, line)
		}
		for i, v := range r.Violations[:min(shownViolations, len(r.Violations))] {
			if i == 0 {
				fmt.Fprintf(out, "seed %d: %d broken promises; again: ropeline-bench agreement -n 1 -v --seed %d%s\n", q.Seed, len(r.Violations), q.Seed, s.without())
			}
			fmt.Fprintf(out, "  %s\n", v)
		}
		if s.Verbose && len(r.Violations) > 0 {
			less := Reduce(q, nil)
			fmt.Fprintf(out, "the same comes of %q with %v\n", less.Layout, less.Steps)
		}
		if done%1000 == 0 {
			fmt.Fprintf(progress, "%d of %d sequences\n", done, s.N)
		}
	})
	took := time.Since(start)
	fmt.Fprintf(out, "%d sequences, %d failed; %d acts were answered, %d of them named a node that had not confirmed; %d troubles; %v, %.1f a second of each worker\n",
		t.Sequences, t.Failed, t.Answered, t.Named, t.Troubles, took.Round(time.Second), float64(t.Sequences)/took.Seconds()/float64(s.Workers))
	return t.Failed == 0, context.Cause(ctx)
}

// without returns the flags that leave out what the set does.
func (s *Set) without() (flags string) {
	for _, kind := range s.Without {
		flags += fmt.Sprintf(" --without %q", kind)
	}
	return flags
}

// Tally sums sequences up.
type Tally struct{ Sequences, Failed, Answered, Named, Troubles int }

// Run runs a set. After each sequence it calls tell, one call at a time, with how many are done.
func (s *Set) Run(ctx context.Context, tell func(done int, q Sequence, r *Result)) (t Tally) {
	var mu sync.Mutex // guards t and calls of tell
	var all sync.WaitGroup
	for worker := range s.Workers {
		all.Go(func() {
			for i := worker; i < s.N && ctx.Err() == nil; i += s.Workers {
				q := Draw(s.Seed + uint64(i))
				q.Steps = slices.DeleteFunc(q.Steps, func(x Step) bool { return slices.Contains(s.Without, x.Do) })
				r := q.Run(s.Verbose, nil)
				mu.Lock()
				t.add(r)
				tell(t.Sequences, q, r)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return t
}

func (t *Tally) add(r *Result) {
	t.Sequences++
	t.Answered += r.Answered
	t.Named += r.Named
	t.Troubles += r.Troubles
	if len(r.Violations) > 0 {
		t.Failed++
	}
}

// Reduce returns a sequence that still fails and has no step that could be left out.
func Reduce(q Sequence, fault Fault) Sequence {
	fails := func(q Sequence) bool { return len(q.Run(false, fault).Violations) > 0 }
	for size := len(q.Steps); size > 0; size /= 2 {
		for i := 0; i < len(q.Steps); {
			less := q
			less.Steps = slices.Delete(slices.Clone(q.Steps), i, min(i+size, len(q.Steps)))
			if fails(less) {
				q = less
			} else {
				i += size
			}
		}
	}
	return q
}
