package replay

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// meshes are those that are searched: two and three nodes, in one site or several, under every
// order of ids. Nodes that are in the same place exchange their ids only once. Roles depend on
// both: who makes rights is the first node, and who takes over, leads or recovers follows from ids.
const meshes = "abc/123 abc/213 abc/312 aab/123 aab/132 aab/213 aab/231 aab/312 aab/321 aaa/123 aaa/213 aaa/312 ab/12 ab/21 aa/12 aa/21"

// singles returns all histories of one act.
func singles(meshes string, rate bool) (all []History) {
	for mesh := range strings.FieldsSeq(meshes) {
		layout, ids, _ := strings.Cut(mesh, "/")
		for _, h := range longer(History{Rate: rate, Layout: layout, IDs: ids}) {
			if h.Steps[0].When == Now {
				all = append(all, h)
			}
		}
	}
	return all
}

// pairs returns all histories of two acts that begin with those of one.
func pairs(singles []History) (all []History) {
	for _, h := range singles {
		all = append(all, longer(h)...)
	}
	return all
}

// longer returns a history with each act that may come next.
func longer(h History) (all []History) {
	for _, s := range steps(len(h.Layout)) {
		o := h
		o.Steps = append(slices.Clone(h.Steps), s)
		all = append(all, o)
	}
	return all
}

// shorter returns the histories that lack a deviation, some of the acts, or a time between two.
func shorter(h History) (all []History) {
	for i := range h.Twists {
		o := h
		o.Twists = slices.Delete(slices.Clone(h.Twists), i, i+1)
		all = append(all, o)
	}
	for kept := 1; kept < 1<<len(h.Steps)-1; kept++ {
		o := h
		o.Steps = nil
		for i, s := range h.Steps {
			if kept>>i&1 == 1 {
				o.Steps = append(o.Steps, s)
			}
		}
		o.Steps[0].When = Now
		all = append(all, o)
	}
	for i, s := range h.Steps {
		if s.When != Now {
			o := h
			o.Steps = slices.Clone(h.Steps)
			o.Steps[i].When = Now
			all = append(all, o)
		}
	}
	return all
}

// parting reports whether the limit changes in a history, and two nodes leave or are lost.
func parting(h History) bool {
	limits, gone := 0, 0
	for _, s := range h.Steps {
		switch s.Act {
		case Raise, Lower:
			limits++
		case Leave, Dead:
			gone++
		}
	}
	return limits == 1 && gone == 2
}

// Search runs histories of whole nodes until one breaks a promise.
type Search struct {
	LeaveOut ticket.Rules
	Seed     uint64        // of what is drawn
	For      time.Duration // how long about
}

// Part is one part of a search. Where nothing is drawn all histories are run once, and it is over with
// the last one.
type Part struct {
	Name      string
	Histories []History
	percent   int // of the time

	acts   int                // drawn to go on with one of these
	keep   func(History) bool // of such; nil: all
	twists int                // the same of deviations, at most; then there is one at least
}

// Tally is what came of a part.
type Tally struct {
	Runs    int
	Useless int // without an effect: a node refused an act, or a moment never came
	Took    time.Duration
	Found   Finding
}

// Finding is a history that breaks a promise, as short as it can be made; the zero value is none.
type Finding struct {
	History History
	Broken  string
	First   History // as it was found
}

// Parts returns the parts of a search. Those of which all histories have run leave the rest of their time.
func (s Search) Parts() []Part {
	one, rateOne := singles(meshes, false), singles(meshes, true)
	two, rateTwo := pairs(one), pairs(rateOne)
	rng := rand.New(rand.NewPCG(s.Seed, 0))
	for _, all := range [][]History{two, rateTwo} {
		rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	}
	return []Part{
		{Name: "one act", percent: 5, Histories: one},
		{Name: "the rate is the limit: one act", percent: 10, Histories: rateOne},
		{Name: "two acts", percent: 25, Histories: two},
		{Name: "the rate is the limit: two acts", percent: 15, Histories: rateTwo},
		{Name: "one act, one deviation", percent: 10, Histories: one, twists: 1},
		{Name: "three acts", percent: 5, Histories: two, acts: 1},
		{Name: "three acts: two nodes leave or are lost, and the limit changes", percent: 10, Histories: two, acts: 1, keep: parting},
		{Name: "two acts, one deviation", percent: 10, Histories: two, twists: 1},
		{Name: "one act, two deviations", percent: 5, Histories: one, twists: 2},
		{Name: "three acts, one to three deviations", percent: 5, Histories: two, acts: 1, twists: 3},
	}
}

// Drawn reports whether histories are drawn, without end.
func (p Part) Drawn() bool { return p.acts+p.twists > 0 }

// Run runs a part, on all processors that Go may use.
func (s Search) Run(ctx context.Context, p Part) (t Tally, err error) {
	start := time.Now()
	ctx, stop := context.WithTimeout(ctx, s.For*time.Duration(p.percent)/100)
	defer stop()
	var mu sync.Mutex // guards the following, t and err
	next := 0
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for ctx.Err() == nil && (p.Drawn() || next < len(p.Histories)) {
				n := next
				next++
				mu.Unlock()
				h := s.history(p, n)
				r, failed := Run(h, s.LeaveOut, nil)
				mu.Lock()
				t.Runs++
				if r.useless(h) {
					t.Useless++
				}
				if failed != nil {
					err = cmp.Or(err, fmt.Errorf("%s: %w", h, failed))
				} else if r.Broken != "" && t.Found.Broken == "" {
					t.Found = Finding{h, r.Broken, h}
				}
				if failed != nil || r.Broken != "" {
					stop()
				}
			}
		})
	}
	wg.Wait()
	if t.Found.Broken != "" {
		t.Found = s.shortest(t.Found)
	}
	t.Took = time.Since(start)
	return t, err
}

// history returns the nth of a part. What is drawn depends on nothing else.
func (s Search) history(p Part, n int) History {
	if !p.Drawn() {
		return p.Histories[n]
	}
	rng := rand.New(rand.NewPCG(s.Seed, uint64(n)))
	pick := func(all []History) History { return all[rng.IntN(len(all))] }
	for {
		h := pick(p.Histories)
		for range p.acts {
			h = pick(longer(h))
		}
		if p.keep != nil && !p.keep(h) {
			continue
		}
		if p.twists == 0 {
			return h
		}
		for range 1 + rng.IntN(p.twists) {
			if all := s.twisted(h); len(all) > 0 {
				h = pick(all)
			}
		}
		if len(h.Twists) > 0 {
			return h
		}
	}
}

// twisted returns a history with each further deviation for which its run has an occasion.
// None if an act of it is refused: the rest is the same as without.
func (s Search) twisted(h History) (all []History) {
	r, err := Run(h, s.LeaveOut, nil)
	if err != nil || r.Refused+r.Unmet > 0 || r.Broken != "" {
		return nil
	}
	for _, t := range r.Twists {
		if !slices.Contains(h.Twists, t) {
			o := h
			o.Twists = append(slices.Clone(h.Twists), t)
			all = append(all, o)
		}
	}
	return all
}

// shortest takes out of a history that breaks a promise whatever it does not need for that.
func (s Search) shortest(f Finding) Finding {
	for _, o := range shorter(f.History) {
		if r, err := Run(o, s.LeaveOut, nil); err == nil && r.Broken != "" {
			return s.shortest(Finding{o, r.Broken, f.First})
		}
	}
	return f
}
