package sim

import (
	"time"

	"github.com/ropeline/ropeline/node"
)

// phase is where somebody stands.
type phase uint8

const (
	asking  phase = iota // has never had an answer in this turn
	waiting              // was told to wait
	inside
	gone // nobody any more; the session may still run
)

// visitor is one person with a browser. Times are ns of the true time.
type visitor struct {
	pass  pass
	dice  dice
	came  int64 // asked first, in this turn
	until int64 // gives up waiting, or leaves the site; 0: has not thought of it yet
	due   int64 // of the next request
	rest  int64 // how long to stay when let in again, after a session that was too short; 0: in the first one
	ends  int64 // latest end that a node has said, of this session or one of before
	own   int64 // the same, of this session alone, as the visitor or the node by knows it
	lasts int64 // of the session, counted from the last request that was let pass
	said  float32
	asked int64 // when said was told

	// Of the ticket that the truth knows of.
	accepted int64  // as the pass has it, ms
	anchor   int32  // as in pass
	anchored uint32 // which start of the anchor
	started  uint32 // which start of which node
	by       int32
	site     int32

	spent   uint64 // the place that a session was given for last, hashed
	spentBy int64  // that session, as accepted has it

	at         int32  // the node that is asked
	generation uint32 // of what is planned: older plans are void
	no         uint32 // among all who came

	room  uint8 // of the session; see registry.room
	under uint8 // the largest change of limits that the node may have gone by, and 1 more than its number; 0: none was followed

	phase   phase
	first   bool // this turn is the one that the visitor came for
	queued  bool // was told to wait in this turn
	active  bool // inside, as the truth has it
	busy    bool // uses a place: inside, or has been let pass less than a session ago
	free    bool // by a session of a time in which the limit did not bind
	lent    bool // and goes on without a right, as the pass says
	stale   bool // the last request carried an older pass than the newest
	behind  bool // some request of this turn did
	known   bool // said means something
	pending bool // a node has not answered yet
	patient bool

	open uint8 // answers that nodes owe this slot, to whomever has it
}

const (
	// retryAfter is when a visitor whose request is not answered tries another
	// node.
	retryAfter = int64(2 * time.Second)
	// lateTimer is the most that a browser's timer is late.
	lateTimer = 500 * time.Millisecond
	// firstPause is the mean pause after the first page.
	firstPause = 3 * time.Second
	// idleMost is the part of a session that nobody pauses for longer than.
	idleMost = 0.8
)

// people are all visitors that are somewhere. Slots are used again.
type people struct {
	all  []visitor
	done []func(node.Verdict) // by slot
	free []int32
	old  map[int32][]pass // the last ones, by slot, where browsers send these at times
	come int              // so far
	here int              // asking, waiting or inside
}

// asking returns how many have come and never had an answer. It looks at all.
func (p *people) asking() (n int) {
	for i := range p.all {
		if p.all[i].phase == asking {
			n++
		}
	}
	return n
}

// arrive brings the next visitor, and plans the one after.
func (s *sim) arrive() {
	s.planArrival()
	var i int32
	p := &s.people
	if k := len(p.free); k > 0 {
		i = p.free[k-1]
		p.free = p.free[:k-1]
	} else {
		i = int32(len(p.all))
		p.all = append(p.all, visitor{})
		p.done = append(p.done, func(v node.Verdict) { s.answers = append(s.answers, late{i, s.driven, v}) })
	}
	generation := p.all[i].generation
	p.all[i] = visitor{no: uint32(p.come), dice: dice(keyed(s.cfg.Seed, forVisitors, uint64(p.come), 0)), came: s.now, generation: generation, first: true}
	delete(p.old, i)
	p.come++
	p.here++
	v := &p.all[i]
	v.at = s.home(&v.dice)
	v.patient = v.dice.unit() >= s.cfg.Abandon
	s.request(i)
}

// trait returns a number that a visitor comes with, exponential with the given
// mean. It is not of the visitor's dice, because how often these have been thrown
// by then depends on what the nodes did.
func (s *sim) trait(v *visitor, which uint64, mean time.Duration) int64 {
	d := dice(keyed(s.cfg.Seed, forTraits, uint64(v.no), which))
	return max(1, int64(d.exp(float64(mean))))
}

// Traits of a visitor.
const (
	theirStay = iota
	theirPatience
)

// home picks the node that a visitor comes to.
func (s *sim) home(d *dice) int32 {
	shift := 0
	if s.cfg.Rotate > 0 && s.now > 0 {
		shift = int(s.now / int64(s.cfg.Rotate) % int64(s.cfg.Sites))
	}
	x, site := d.unit()*s.weights[len(s.weights)-1], 0
	for site < len(s.weights)-1 && x >= s.weights[site] {
		site++
	}
	// What was the first site's part is the second one's after one turn.
	site = (site + shift) % s.cfg.Sites
	place := 0
	if u := d.unit(); u >= s.cfg.Uneven {
		place = d.below(s.cfg.Nodes)
	}
	return int32(site*s.cfg.Nodes + place)
}

// another picks a different node: one of the same site, or any.
func (s *sim) another(at int32, d *dice, near bool) int32 {
	first, n := int32(0), int32(len(s.machines))
	if near && s.cfg.Nodes > 1 {
		n = int32(s.cfg.Nodes)
		first = at / n * n
	}
	if n < 2 {
		return at
	}
	o := first + int32(d.below(int(n-1)))
	if o >= at {
		o++
	}
	return o
}

// act does what is due for a visitor.
func (s *sim) act(i int32, generation uint32) {
	v := &s.people.all[i]
	if v.generation != generation {
		return
	}
	if v.active && v.ends <= s.now {
		s.goOut(v)
	}
	if v.busy && v.frees() <= s.now {
		s.free(v)
	}
	switch {
	case v.phase == gone && !v.busy:
		s.drop(i)
		return
	case v.phase == gone:
	case v.pending:
		if v.due <= s.now {
			v.pending = false // the answer comes too late for anybody
			s.unanswered(v)
		} // else it is only that the session is over
	case v.phase == waiting && v.until <= s.now && v.until > 0:
		s.giveUp(i)
		return
	case v.phase == inside && v.until <= s.now && v.until > 0:
		s.depart(v)
	case v.due <= s.now:
		if s.cfg.Roam > 0 && v.dice.unit() < s.cfg.Roam {
			v.at = s.another(v.at, &v.dice, v.dice.unit() < 0.5)
		}
		s.request(i)
		return
	}
	s.plan(i)
}

// plan puts what is next for a visitor into the heap.
func (s *sim) plan(i int32) {
	v := &s.people.all[i]
	if v.phase == gone && !v.busy {
		s.drop(i)
		return
	}
	at := v.due
	if v.phase == gone {
		at = v.frees()
	}
	if v.busy {
		at = min(at, v.frees())
	}
	if v.active {
		at = min(at, v.ends)
	}
	if !v.pending && v.until > 0 && v.phase != gone {
		at = min(at, v.until)
	}
	v.generation++
	s.heap.add(max(at, s.now), acts, i, v.generation)
}

func (s *sim) drop(i int32) {
	v := &s.people.all[i]
	v.generation++
	if v.open == 0 {
		s.people.free = append(s.people.free, i)
	} // else whoever answers at last finds the slot as it was
}

// depart has somebody leave the site, without a word.
func (s *sim) depart(v *visitor) {
	v.phase = gone
	s.people.here--
}

func (s *sim) giveUp(i int32) {
	v := &s.people.all[i]
	s.oracle.wait(-1)
	s.f.GaveUp++
	s.depart(v)
	s.plan(i)
}

// request sends one request to the visitor's node.
func (s *sim) request(i int32) {
	v := &s.people.all[i]
	m := s.machines[v.at]
	if !m.answers() {
		s.unanswered(v)
		s.plan(i)
		return
	}
	s.driven = m
	now := m.clock.at(s.now)
	shown := s.show(i)
	known := shown.known()
	var p node.Pass
	if known {
		p = shown.Pass
	}
	verdict, ok := m.brain.begin(p, known, now, s.people.done[i])
	if ok {
		s.answer(i, m, &verdict)
		s.store(m)
		return
	}
	v.pending, v.due = true, s.now+retryAfter
	v.open++
	s.plan(i)
	s.post(m, m.brain.Flush(now))
	s.hand()
	s.store(m)
}

// unanswered has a visitor try another node of the same site, and if there is
// none, of any.
func (s *sim) unanswered(v *visitor) {
	s.f.Unanswered++
	v.due = s.now + retryAfter
	v.at = s.another(v.at, &v.dice, v.dice.unit() < 0.75)
}

// late is an answer that a node did not give at once.
type late struct {
	who  int32
	from *machine
	v    node.Verdict
}

// hand gives out the answers that nodes have come to. Whoever has turned to
// another node meanwhile does not get them.
func (s *sim) hand() {
	for k := 0; k < len(s.answers); k++ {
		a := &s.answers[k]
		v := &s.people.all[a.who]
		v.open--
		if a.v.Admit && (!v.pending || v.at != a.from.no) {
			s.letInUnheard(v, a)
		}
		switch {
		case v.phase == gone && v.open == 0 && !v.busy:
			s.people.free = append(s.people.free, a.who) // what drop left
		case v.pending && v.at == a.from.no:
			v.pending = false
			verdict := a.v
			s.answer(a.who, a.from, &verdict)
		}
	}
	s.answers = s.answers[:0]
}
