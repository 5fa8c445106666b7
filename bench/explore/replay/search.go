package replay

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// Mesh is where nodes are, and the order of their ids. Roles depend on both: who makes
// rights is the first node, and who takes over, leads or recovers follows from ids.
type Mesh struct{ Layout, IDs string }

// Meshes returns the meshes that are searched: two and three nodes, in one site or several,
// under every order of ids. Nodes that are in the same place exchange their ids only once.
func Meshes() []Mesh {
	return []Mesh{
		{"abc", "123"},
		{"abc", "213"},
		{"abc", "312"},
		{"aab", "123"},
		{"aab", "132"},
		{"aab", "213"},
		{"aab", "231"},
		{"aab", "312"},
		{"aab", "321"},
		{"aaa", "123"},
		{"aaa", "213"},
		{"aaa", "312"},
		{"ab", "12"},
		{"ab", "21"},
		{"aa", "12"},
		{"aa", "21"},
	}
}

// steps returns every act at every node.
func steps(nodes int) (all []Step) {
	for _, a := range Acts() {
		for n := range nodes {
			if a != Dead {
				all = append(all, Step{Act: a, Node: n})
				continue
			}
			for told := range nodes {
				if told != n {
					all = append(all, Step{Act: a, Node: n, Told: told})
				}
			}
		}
	}
	return all
}

// Space is all histories of so many acts in a list of meshes, in a fixed order.
type Space struct {
	Meshes []Mesh
	Acts   int
	Size   int
	Rate   bool // what is limited
}

// NewSpace returns the space of histories of so many acts.
func NewSpace(meshes []Mesh, acts int) Space {
	s := Space{Meshes: meshes, Acts: acts}
	for _, m := range meshes {
		s.Size += s.in(m)
	}
	return s
}

func (s Space) in(m Mesh) int {
	n := 1
	for i := range s.Acts {
		n *= len(steps(len(m.Layout)))
		if i > 0 {
			n *= len(Moments())
		}
	}
	return n
}

// At returns the history of an index.
func (s Space) At(i int) History {
	for _, m := range s.Meshes {
		if n := s.in(m); i >= n {
			i -= n
			continue
		}
		h := History{Rate: s.Rate, Layout: m.Layout, IDs: m.IDs}
		all := steps(len(m.Layout))
		for k := range s.Acts {
			x := all[i%len(all)]
			i /= len(all)
			if k > 0 {
				x.When = Moments()[i%len(Moments())]
				i /= len(Moments())
			}
			h.Steps = append(h.Steps, x)
		}
		return h
	}
	panic("replay: index beyond the space")
}

// Shuffled returns the indices of the space, each once, in an order that follows from seed.
func (s Space) Shuffled(seed uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		by := coprime(s.Size, int(seed%1000)+s.Size*5/8)
		at := int(seed*7919) % s.Size
		for range s.Size {
			if !yield(at) {
				return
			}
			at = (at + by) % s.Size
		}
	}
}

func coprime(n, from int) int {
	gcd := func(a, b int) int {
		for b != 0 {
			a, b = b, a%b
		}
		return a
	}
	for gcd(n, from) != 1 {
		from++
	}
	return from
}

// Finding is a history that breaks a promise.
type Finding struct {
	History History
	Broken  string
	First   string // as it was found, before it was made as short as it goes
	After   time.Duration
}

// Tally is what was searched in one part.
type Tally struct {
	Name    string
	Runs    int
	Of      int // histories of this kind in all; 0: nobody knows, these were drawn
	Useless int // in which a node refused an act, or a moment never came
	Took    time.Duration
	Found   int
}

// Explorer searches until it is told to stop, or has found enough.
type Explorer struct {
	LeaveOut ticket.Rules
	Workers  int
	Most     int // findings; 0: as many as there are
	Seed     uint64

	mu       sync.Mutex // guards the following
	findings []Finding
	alike    map[string]int // findings by what they have in common
	err      error
	start    time.Time
	report   func(Finding)
}

// Begin has the time of findings count from now. Report is told of each as it comes.
func (e *Explorer) Begin(report func(Finding)) {
	e.alike, e.start, e.report = map[string]int{}, time.Now(), report
}

// Findings returns what was found, the shortest first.
func (e *Explorer) Findings() []Finding {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := slices.Clone(e.findings)
	slices.SortFunc(all, func(a, b Finding) int { return a.History.compare(b.History) })
	return all
}

// Search runs histories until there are no more, the time is over, or enough is found.
func (e *Explorer) Search(ctx context.Context, name string, of int, histories iter.Seq[History]) (Tally, error) {
	t := Tally{Name: name, Of: of}
	start := time.Now()
	in := make(chan History)
	var wg sync.WaitGroup
	for range e.Workers {
		wg.Go(func() {
			for h := range in {
				e.one(h, &t)
			}
		})
	}
	for h := range histories {
		if ctx.Err() != nil || e.enough() {
			break
		}
		in <- h
	}
	close(in)
	wg.Wait()
	t.Took = time.Since(start)
	return t, e.err
}

func (e *Explorer) enough() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err != nil || e.Most > 0 && len(e.findings) >= e.Most
}

func (e *Explorer) one(h History, t *Tally) {
	r, err := Run(h, e.LeaveOut, nil)
	var f Finding
	if err == nil && r.Broken != "" && !e.known(h.likeness(r.Broken)) {
		f.History, f.First = e.shortest(h), h.String()
		again, _ := Run(f.History, e.LeaveOut, nil)
		f.Broken = again.Broken
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	t.Runs++
	if r.Refused+r.Unmet > 0 || r.Met < len(h.Twists) {
		t.Useless++
	}
	switch {
	case err != nil:
		e.err = fmt.Errorf("%s: %w", h, err)
	case r.Broken != "":
		t.Found++
		e.alike[h.likeness(r.Broken)]++
		if f.Broken == "" {
			return
		}
		is := f.History.likeness(f.Broken)
		if e.alike[is]++; e.alike[is] > 1 && is != h.likeness(r.Broken) || e.alike[is] > 2 {
			return
		}
		f.After = time.Since(e.start)
		e.findings = append(e.findings, f)
		if e.report != nil {
			e.report(f)
		}
	}
}

// known reports whether something like it was found before.
func (e *Explorer) known(likeness string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.alike[likeness] > 0
}

// likeness returns what a finding has in common with others that are nearly the same: what
// was done and what is wrong, but not where.
func (h History) likeness(broken string) string {
	var b strings.Builder
	for _, s := range h.Steps {
		b.WriteString(string(s.Act) + " ")
	}
	for _, t := range h.Twists {
		b.WriteString(string(t.What) + " " + kindName(t.Kind) + " ")
	}
	for _, c := range broken {
		if c < '0' || c > '9' {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// shortest takes out of a history that breaks a promise whatever it does not need for that.
func (e *Explorer) shortest(h History) History {
	for again := true; again; {
		again = false
		for _, o := range shorter(h) {
			if r, err := Run(o, e.LeaveOut, nil); err == nil && r.Broken != "" {
				h, again = o, true
				break
			}
		}
	}
	return h
}

// shorter returns the histories that lack one thing, or two steps.
func shorter(h History) (all []History) {
	for i := range h.Twists {
		o := h
		o.Twists = slices.Delete(slices.Clone(h.Twists), i, i+1)
		all = append(all, o)
	}
	for i := range h.Steps {
		all = h.without(all, i, i)
		for k := range i {
			all = h.without(all, k, i)
		}
	}
	for i := range h.Steps {
		if h.Steps[i].When != Now {
			o := h
			o.Steps = slices.Clone(h.Steps)
			o.Steps[i].When = Now
			all = append(all, o)
		}
	}
	return all
}

// without appends h without two of its steps, which may be the same one, if any are left.
func (h History) without(all []History, i, k int) []History {
	o := h
	o.Steps = nil
	for n, s := range h.Steps {
		if n != i && n != k {
			o.Steps = append(o.Steps, s)
		}
	}
	if len(o.Steps) == 0 {
		return all
	}
	o.Steps[0].When = Now
	return append(all, o)
}

// Whole returns all histories of a space.
func Whole(s Space) iter.Seq[History] {
	return func(yield func(History) bool) {
		for i := range s.Size {
			if !yield(s.At(i)) {
				return
			}
		}
	}
}

// Mixed returns all histories of a space, in an order that follows from seed.
func Mixed(s Space, seed uint64) iter.Seq[History] {
	return func(yield func(History) bool) {
		for i := range s.Shuffled(seed) {
			if !yield(s.At(i)) {
				return
			}
		}
	}
}

// Twisted returns each history with each single deviation for which it has an occasion.
func (e *Explorer) Twisted(histories iter.Seq[History]) iter.Seq[History] {
	return func(yield func(History) bool) {
		for h := range histories {
			for _, one := range e.deviate(h) {
				if !yield(one) {
					return
				}
			}
		}
	}
}

// deviate returns a history with each further deviation for which its run has an occasion.
// None if an act of it is refused: the rest is the same as without.
func (e *Explorer) deviate(h History) (all []History) {
	r, err := Run(h, e.LeaveOut, nil)
	if err != nil || r.Refused+r.Unmet > 0 || r.Broken != "" {
		return nil
	}
	for _, p := range r.Points {
		for _, t := range Deviations(p) {
			if !slices.Contains(h.Twists, t) {
				o := h
				o.Twists = append(slices.Clone(h.Twists), t)
				all = append(all, o)
			}
		}
	}
	return all
}

// Drawn returns histories of a space with up to so many deviations, drawn at random,
// without end.
func (e *Explorer) Drawn(s Space, most int, seed uint64) iter.Seq[History] {
	return func(yield func(History) bool) {
		d := rand.New(rand.NewPCG(seed, 31))
		for {
			h := s.At(d.IntN(s.Size))
			for range 1 + d.IntN(most) {
				all := e.deviate(h)
				if len(all) == 0 {
					break
				}
				h = all[d.IntN(len(all))]
			}
			if len(h.Twists) > 0 && !yield(h) {
				return
			}
		}
	}
}

// Parting returns those of some histories of three acts in which the limit changes, and two
// nodes leave or are lost; parting is how many a space has of them.
func Parting(histories iter.Seq[History]) iter.Seq[History] {
	return func(yield func(History) bool) {
		for h := range histories {
			limits, gone := kindsOf(h.Steps)
			if limits == 1 && gone == 2 && !yield(h) {
				return
			}
		}
	}
}

func parting(s Space) (n int) {
	for _, m := range s.Meshes {
		limits, gone := kindsOf(steps(len(m.Layout)))
		n += 3 * limits * gone * gone * len(Moments()) * len(Moments())
	}
	return n
}

// kindsOf returns how many steps change the limit, and with how many a node is gone for good.
func kindsOf(all []Step) (limits, gone int) {
	for _, s := range all {
		switch s.Act {
		case Raise, Lower:
			limits++
		case Leave, Dead:
			gone++
		}
	}
	return limits, gone
}

// Part is one part of a search.
type Part struct {
	Name      string
	Of        int // histories in all; 0: they are drawn
	For       time.Duration
	Histories iter.Seq[History]
}

// Parts returns the parts of a search of about so long. The first are done when all of
// their histories have run; the others share the time that is left.
func (e *Explorer) Parts(length time.Duration) []Part {
	meshes := Meshes()
	one, two, three := NewSpace(meshes, 1), NewSpace(meshes, 2), NewSpace(meshes, 3)
	rateOne, rateTwo := one, two
	rateOne.Rate, rateTwo.Rate = true, true
	part := func(percent int) time.Duration { return length * time.Duration(percent) / 100 }
	return []Part{
		{"one act", one.Size, part(5), Whole(one)},
		{"the rate is the limit: one act", rateOne.Size, part(10), Whole(rateOne)},
		{"two acts", two.Size, part(25), Mixed(two, e.Seed)},
		{"the rate is the limit: two acts", rateTwo.Size, part(15), Mixed(rateTwo, e.Seed)},
		{"one act, one deviation", 0, part(10), e.Twisted(Mixed(one, e.Seed))},
		{"three acts", three.Size, part(5), Mixed(three, e.Seed)},
		{"three acts: two nodes leave or are lost, and the limit changes", parting(three), part(10), Parting(Mixed(three, e.Seed+1))},
		{"two acts, one deviation", 0, part(10), e.Drawn(two, 1, e.Seed)},
		{"one act, two deviations", 0, part(5), e.Drawn(one, 2, e.Seed)},
		{"three acts, one to three deviations", 0, part(5), e.Drawn(three, 3, e.Seed)},
	}
}
