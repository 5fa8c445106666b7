package ticket

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// moverWorld is sites with crowds, sessions and rights, in which movers see each
// other's counts late and what they move takes its time. Visitors are counted,
// not told apart, so that a limit of a million costs as little as one of ten.
type moverWorld struct {
	t       *testing.T
	rng     *rand.Rand
	limit   int64
	rate    int64
	session time.Duration
	arrive  func(site, step int) float64 // visitors a second
	cut     func(site, step int) bool
	late    int // steps until other sites see a count
	share   []float64

	sites []*moverSite
	air   map[int][]func()
	step  int
	moves int     // gifts so far
	flow  float64 // admissions a second, of late

	idle, busy float64 // the sum of idle parts of the limit while anybody waited, and how many steps that was
	worst      float64 // of one step
}

const (
	moverStep = 50 * time.Millisecond

	// moverPoll is how often those ask whose turn it nearly is, and moverSoon how
	// far ahead a view reckons with what comes free.
	moverPoll = 1500 * time.Millisecond
	moverSoon = 3 * time.Second
)

type moverSite struct {
	name    string
	nodes   []moverNode
	mover   Mover
	waiting []crowd // oldest first
	parked  []crowd // they wait for an answer
	past    []moverCount
}

type moverNode struct {
	id         crdt.NodeID
	held, used Amount
	ends       map[int]int64 // step → sessions that end
	cools      map[int]int64 // step → rate rights that are ready again
}

// crowd is visitors who came at about the same time.
type crowd struct {
	step int
	n    int64
}

// moverCount is what a site says of itself.
type moverCount struct {
	step       int
	held, used Amount
	waiting    []crowd
}

func newMoverWorld(t *testing.T, seed uint64, limit int64, sites, nodes int) *moverWorld {
	w := &moverWorld{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), limit: limit, rate: limit * 4, session: time.Minute,
		late: 20, air: map[int][]func(){}, share: make([]float64, sites),
	}
	w.cut = func(int, int) bool { return false }
	for i := range sites {
		w.share[i] = 1 / float64(sites)
		s := &moverSite{name: fmt.Sprintf("site-%d", i)}
		for k := range nodes {
			s.nodes = append(s.nodes, moverNode{id: crdt.NodeID{byte(i + 1), byte(k + 1)}, ends: map[int]int64{}, cools: map[int]int64{}})
		}
		w.sites = append(w.sites, s)
	}
	w.sites[0].nodes[0].held = Amount{limit, w.rate}
	return w
}

func (w *moverWorld) now(step int) time.Time { return sec(1000).Add(time.Duration(step) * moverStep) }

// after has something happen later.
func (w *moverWorld) after(d time.Duration, f func()) {
	at := w.step + int(d/moverStep)
	w.air[at] = append(w.air[at], f)
}

func (n *moverNode) free() Amount { return n.held.Sub(n.used).Max(Amount{}) }

func waiters(all []crowd) (n int64) {
	for _, c := range all {
		n += c.n
	}
	return n
}

func (w *moverWorld) poisson(mean float64) int64 {
	if mean > 30 {
		return max(0, int64(math.Round(mean+math.Sqrt(mean)*w.rng.NormFloat64())))
	}
	n, p := int64(0), math.Exp(-mean)
	for x := w.rng.Float64(); x > p; n++ {
		x *= w.rng.Float64()
	}
	return n
}

// run lets a number of seconds go by.
func (w *moverWorld) run(seconds int) {
	for range seconds * int(time.Second/moverStep) {
		w.tick()
		w.step++
	}
}

func (w *moverWorld) tick() {
	for _, f := range w.air[w.step] {
		f()
	}
	delete(w.air, w.step)
	came := make([]int64, len(w.sites))
	for i, s := range w.sites {
		for k := range s.nodes {
			n := &s.nodes[k]
			n.used = n.used.Sub(Amount{n.ends[w.step], n.cools[w.step]})
			delete(n.ends, w.step)
			delete(n.cools, w.step)
		}
		if came[i] = w.poisson(w.arrive(i, w.step) * moverStep.Seconds()); came[i] > 0 {
			s.come(w.step, came[i])
		}
	}
	for i, s := range w.sites {
		s.past = append(s.past, s.count(w.step))
		if len(s.past) > w.late+1 {
			s.past = s.past[1:]
		}
		in := w.poll(s, i, came[i])
		if in.Need > 0 || w.step%5 == i%5 {
			gifts, asks := s.mover.Move(in, w.now(w.step))
			w.carryOut(&s.nodes[0], gifts, asks)
		}
	}
	w.flow -= w.flow * moverStep.Seconds() / flowOver
	w.measure()
}

// crowdSpan is how many steps' visitors stand in line as one.
const crowdSpan = 5

func (s *moverSite) come(step int, n int64) {
	if k := len(s.waiting); k > 0 && step-s.waiting[k-1].step < crowdSpan {
		s.waiting[k-1].n += n
		return
	}
	s.waiting = append(s.waiting, crowd{step, n})
}

// poll lets those in who ask now: of the visitors in turn, each does every
// moverPoll, and those who came just now. Who finds no right waits for one, if
// any is idle elsewhere.
func (w *moverWorld) poll(s *moverSite, own int, came int64) Standing {
	in := w.standing(own)
	turn := in.Sites[own].Eligible
	asking := w.poisson(float64(turn) * float64(moverStep) / float64(moverPoll))
	if turn >= waiters(s.waiting) {
		asking += came
	}
	s.parked = slices.DeleteFunc(s.parked, func(c crowd) bool { return w.step-c.step > int(Parked/moverStep) })
	asking = min(asking+waiters(s.parked), turn)
	left := asking - w.admit(s, asking)
	s.parked = slices.DeleteFunc(s.parked, func(crowd) bool { return left == 0 })
	idle := Amount{}
	for i, x := range in.Sites {
		if i != own {
			idle = idle.Add(x.Held.Sub(x.Used).Max(Amount{}))
		}
	}
	in = w.standing(own)
	if left > 0 && idle.Places > 0 && idle.Rate > 0 {
		if more := left - waiters(s.parked); more > 0 {
			s.parked = append(s.parked, crowd{w.step, more})
		}
		in.Need = min(left, in.Sites[own].Eligible)
	}
	return in
}

func (s *moverSite) count(step int) moverCount {
	c := moverCount{step: step, waiting: slices.Clone(s.waiting[:min(len(s.waiting), 80)])}
	for i := range s.nodes {
		c.held, c.used = c.held.Add(s.nodes[i].held), c.used.Add(s.nodes[i].used)
	}
	return c
}

// standing returns what one site knows.
func (w *moverWorld) standing(own int) Standing {
	me := w.sites[own]
	n := &me.nodes[0]
	in := Standing{Self: n.id, Site: me.name, Held: n.held, Free: n.free(), Supply: Amount{w.limit, w.rate}}
	for k := range me.nodes[1:] {
		m := &me.nodes[k+1]
		in.Mates = append(in.Mates, MateRights{m.id, m.held, m.free()})
	}
	counts := make([]moverCount, len(w.sites))
	free := Amount{}
	for i, s := range w.sites {
		counts[i] = s.past0()
		if i == own {
			counts[i] = s.count(w.step)
		} else if w.away(own, i) {
			counts[i].waiting = nil
			continue
		}
		free = free.Add(counts[i].held.Sub(counts[i].used).Max(Amount{}))
	}
	soon := int64(math.Round(w.flow * moverSoon.Seconds()))
	eligible, oldest := w.eligible(counts, min(free.Places, free.Rate)+soon)
	for i, s := range w.sites {
		x := SiteRights{
			Name: s.name, Counter: s.nodes[0].id, At: w.now(counts[i].step), Held: counts[i].held, Used: counts[i].used,
			Eligible: eligible[i], Oldest: oldest[i], Share: w.share[i],
		}
		if w.away(own, i) {
			x.Counter = crdt.NodeID{}
		}
		in.Sites = append(in.Sites, x)
	}
	return in
}

func (s *moverSite) past0() moverCount {
	if len(s.past) == 0 {
		return moverCount{}
	}
	return s.past[0]
}

func (w *moverWorld) away(a, b int) bool { return a != b && (w.cut(a, w.step) || w.cut(b, w.step)) }

// eligible returns how many of each site's visitors are among the first of all.
func (w *moverWorld) eligible(counts []moverCount, slots int64) ([]int64, []time.Time) {
	out, oldest := make([]int64, len(counts)), make([]time.Time, len(counts))
	type group struct {
		crowd
		site int
	}
	var all []group
	for i, c := range counts {
		for _, x := range c.waiting {
			all = append(all, group{x, i})
		}
		if len(c.waiting) > 0 {
			oldest[i] = w.now(c.waiting[0].step)
		}
	}
	slices.SortStableFunc(all, func(a, b group) int { return a.step - b.step })
	for _, x := range all {
		n := min(x.n, slots)
		out[x.site] += n
		slots -= n
	}
	return out, oldest
}

// admit lets up to n visitors of a site in, as far as its nodes have rights, and
// returns how many.
func (w *moverWorld) admit(s *moverSite, n int64) (all int64) {
	for i := range s.nodes {
		node := &s.nodes[i]
		f := node.free()
		some := min(n, f.Places, f.Rate, waiters(s.waiting))
		if some <= 0 {
			continue
		}
		n, all = n-some, all+some
		w.flow += float64(some) / flowOver
		node.used = node.used.Add(Amount{some, some})
		node.cools[w.step+int(time.Minute/moverStep)] += some
		for left := some; left > 0; {
			// Sessions end at random, so that their ends are spread as the starts are.
			k := min(left, max(1, some/8))
			end := w.step + 1 + int(-math.Log(1-w.rng.Float64())*float64(w.session/moverStep))
			node.ends[end] += k
			left -= k
		}
		for some > 0 {
			k := min(some, s.waiting[0].n)
			if s.waiting[0].n -= k; s.waiting[0].n == 0 {
				s.waiting = s.waiting[1:]
			}
			some -= k
		}
	}
	return all
}

// flowOver is over how many seconds the flow of admissions is averaged.
const flowOver = 30

func (w *moverWorld) find(id crdt.NodeID) (*moverSite, *moverNode, int) {
	s := w.sites[id[0]-1]
	return s, &s.nodes[id[1]-1], int(id[0] - 1)
}

// carryOut has gifts of a node arrive 150 ms later and wishes 100 ms later.
func (w *moverWorld) carryOut(from *moverNode, gifts []Gift, asks []Ask) {
	for _, g := range gifts {
		w.give(from, g)
	}
	for _, a := range asks {
		w.after(100*time.Millisecond, func() {
			s, n, site := w.find(a.From)
			switch _, _, to := w.find(a.To); {
			case w.away(to, site):
			case n != &s.nodes[0]:
				w.give(n, Gift{a.To, a.Amount.Min(n.free())})
			default:
				gifts, asks := s.mover.Wanted(w.standing(site), a, w.now(w.step))
				w.carryOut(n, gifts, asks)
			}
		})
	}
}

func (w *moverWorld) give(from *moverNode, g Gift) {
	free := from.free()
	if g.Amount.Places > free.Places || g.Amount.Rate > free.Rate || g.Amount.Places < 0 || g.Amount.Rate < 0 {
		w.t.Fatalf("%v gives %+v of %+v that are free", from.id, g.Amount, free)
	}
	if g.Amount.IsZero() {
		return
	}
	_, n, to := w.find(g.To)
	if _, _, site := w.find(from.id); w.away(site, to) {
		w.t.Fatalf("%v gives %+v to a node that it cannot reach", from.id, g.Amount)
	}
	from.held = from.held.Sub(g.Amount)
	w.moves++
	w.after(150*time.Millisecond, func() { n.held = n.held.Add(g.Amount) })
}

// measure notes how many places nobody uses although somebody waits who can
// reach them. A site that is cut off is a world of its own.
func (w *moverWorld) measure() {
	used, held, waiting := int64(0), int64(0), int64(0)
	for i, s := range w.sites {
		if w.cut(i, w.step) {
			continue
		}
		c := s.count(w.step)
		used, held, waiting = used+c.used.Places, held+c.held.Places, waiting+waiters(c.waiting)
	}
	if waiting == 0 {
		return
	}
	idle := float64(min(waiting, held-used)) / float64(w.limit)
	w.busy++
	w.idle += idle
	w.worst = max(w.worst, idle)
}

// watch runs for some seconds and returns what part of the limit lay idle while
// anybody waited, in percent, and how many gifts there were in a minute.
func (w *moverWorld) watch(seconds int) (idle, moves float64) {
	w.idle, w.busy, w.worst = 0, 0, 0
	before := w.moves
	w.run(seconds)
	return 100 * w.idle / max(1, w.busy), float64(w.moves-before) * 60 / float64(seconds)
}

// uneven is five sites with very different crowds, load times as many visitors as
// there are places for.
func (w *moverWorld) uneven(load float64) {
	parts := []float64{0.5, 0.3, 0.1, 0.07, 0.03}
	copy(w.share, parts)
	full := float64(w.limit) / w.session.Seconds()
	w.arrive = func(site, step int) float64 { return load * full * parts[site] }
}

func TestMoverKeepsIdleRightsFew(t *testing.T) {
	for _, c := range []struct {
		limit int64
		nodes int
		load  float64
		most  float64 // percent
	}{{1_000_000, 2, 1.3, 1}, {10_000, 3, 1.3, 1}, {1000, 2, 1.3, 1}, {100, 1, 1.5, 3}, {10, 1, 4, 10}, {2, 1, 12, 10}, {1, 1, 20, 10}} {
		if testing.Short() && (c.limit == 10_000 || c.limit == 2) {
			continue // their neighbours are enough
		}
		w := newMoverWorld(t, 1, c.limit, 5, c.nodes)
		w.uneven(c.load)
		w.run(90)
		idle, moves := w.watch(90)
		t.Logf("limit %d: %.2f %% idle, at worst %.1f %%, %.0f gifts a minute", c.limit, idle, 100*w.worst, moves)
		if idle > c.most {
			t.Errorf("limit %d: %.2f %% lay idle while visitors waited, want at most %g", c.limit, idle, c.most)
		}
		if w.busy < 80/moverStep.Seconds() {
			t.Errorf("limit %d: nobody waited for most of the time, so nothing was measured", c.limit)
		}
	}
}

func TestMoverSettlesWhereNobodyWaits(t *testing.T) {
	for _, limit := range []int64{1_000_000, 1000, 100, 10} {
		w := newMoverWorld(t, 2, limit, 5, 2)
		w.uneven(0.6)
		w.run(90)
		_, moves := w.watch(120)
		t.Logf("limit %d: %.1f gifts a minute", limit, moves)
		if moves > 30 {
			t.Errorf("limit %d: %.1f gifts a minute under a steady load", limit, moves)
		}
	}
}

// TestMoverFollowsACrowd has all visitors of one site come to another from one
// moment to the next. The first site's sessions end, and their places are wanted
// elsewhere.
func TestMoverFollowsACrowd(t *testing.T) {
	for _, limit := range []int64{1_000_000, 1000, 100} {
		w := newMoverWorld(t, 3, limit, 5, 2)
		w.uneven(1.3)
		before := w.arrive
		w.run(90)
		moved := w.step
		w.arrive = func(site, step int) float64 {
			switch {
			case step < moved || site > 1:
				return before(site, step)
			case site == 0:
				return 0
			}
			return before(0, step) + before(1, step)
		}
		first, _ := w.watch(10)
		worst := w.worst
		then, moves := w.watch(60)
		t.Logf("limit %d: %.2f %% idle in the first seconds, at worst %.1f %%, %.2f %% then, %.0f gifts a minute", limit, first, 100*worst, then, moves)
		most := max(1, 300/float64(limit))
		if first > 3*most || then > most {
			t.Errorf("limit %d: %.2f %% idle in the first seconds and %.2f %% then, want at most %.1f and %.1f", limit, first, then, 3*most, most)
		}
	}
}

// TestMoverLeavesCutSitesAlone cuts one site off for a while. Giving to a node that
// cannot be reached is an error of the world.
func TestMoverLeavesCutSitesAlone(t *testing.T) {
	w := newMoverWorld(t, 4, 1000, 3, 2)
	w.arrive = func(site, step int) float64 { return 9 }
	w.run(90)
	from := w.step
	w.cut = func(site, step int) bool {
		return site == 2 && step >= from && step < from+60*int(time.Second/moverStep)
	}
	idle, _ := w.watch(60)
	if w.busy == 0 || idle > 1 {
		t.Errorf("%.2f %% idle on the larger side of a cut, in %g steps", idle, w.busy)
	}
	if idle, _ := w.watch(60); idle > 1 {
		t.Errorf("%.2f %% idle after the cut", idle)
	}
	held := Amount{}
	for _, s := range w.sites {
		held = held.Add(s.count(0).held)
	}
	w.run(1)
	if held.Places > 1000 || held.Places < 950 {
		t.Errorf("%d places are held of 1000", held.Places)
	}
}
