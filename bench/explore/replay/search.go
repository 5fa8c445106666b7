package replay

import (
	"math/rand/v2"
	"slices"
	"strings"

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

// Search says what is searched.
type Search struct {
	LeaveOut ticket.Rules
	Seed     uint64 // of what is drawn
}

// Part is one part of a search. Where nothing is drawn its histories are run as they are, each once.
type Part struct {
	Name      string
	Percent   int // of the time
	Histories []History

	acts   int                // drawn to go on with one of these
	keep   func(History) bool // of such; nil: all
	twists int                // the same of deviations, at most; then there is one at least
}

// Parts returns the parts of a search, the shortest histories first.
func (s Search) Parts() []Part {
	one, rateOne := singles(meshes, false), singles(meshes, true)
	two, rateTwo := pairs(one), pairs(rateOne)
	rng := rand.New(rand.NewPCG(s.Seed, 0))
	for _, all := range [][]History{two, rateTwo} {
		rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	}
	return []Part{
		{Name: "one act", Percent: 5, Histories: one},
		{Name: "the rate is the limit: one act", Percent: 10, Histories: rateOne},
		{Name: "two acts", Percent: 25, Histories: two},
		{Name: "the rate is the limit: two acts", Percent: 15, Histories: rateTwo},
		{Name: "one act, one deviation", Percent: 10, Histories: one, twists: 1},
		{Name: "three acts", Percent: 5, Histories: two, acts: 1},
		{Name: "three acts: two nodes leave or are lost, and the limit changes", Percent: 10, Histories: two, acts: 1, keep: parting},
		{Name: "two acts, one deviation", Percent: 10, Histories: two, twists: 1},
		{Name: "one act, two deviations", Percent: 5, Histories: one, twists: 2},
		{Name: "three acts, one to three deviations", Percent: 5, Histories: two, acts: 1, twists: 3},
	}
}

// Drawn reports whether histories are drawn, without end.
func (p Part) Drawn() bool { return p.acts+p.twists > 0 }

// History returns the nth of a part, if there are so many. What is drawn depends on nothing else.
func (s Search) History(p Part, n int) (h History, ok bool) {
	if !p.Drawn() {
		if n < len(p.Histories) {
			return p.Histories[n], true
		}
		return h, false
	}
	rng := rand.New(rand.NewPCG(s.Seed, uint64(n)))
	pick := func(all []History) History { return all[rng.IntN(len(all))] }
	for {
		h = pick(p.Histories)
		for range p.acts {
			h = pick(longer(h))
		}
		if p.keep != nil && !p.keep(h) {
			continue
		}
		if p.twists == 0 {
			return h, true
		}
		for range 1 + rng.IntN(p.twists) {
			if all := s.twisted(h); len(all) > 0 {
				h = pick(all)
			}
		}
		if len(h.Twists) > 0 {
			return h, true
		}
	}
}

// twisted returns a history with each further deviation for which its run has an occasion.
// None if an act of it is refused: the rest is the same as without.
func (s Search) twisted(h History) (all []History) {
	r, err := Run(h, s.LeaveOut, nil)
	if err != nil || r.Useless || r.Broken != "" {
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

// Shortest takes out of a history that breaks a promise whatever it does not need for that.
func (s Search) Shortest(h History) History {
	for _, o := range shorter(h) {
		if r, err := Run(o, s.LeaveOut, nil); err == nil && r.Broken != "" {
			return s.Shortest(o)
		}
	}
	return h
}
