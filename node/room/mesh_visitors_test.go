package room

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// meshVisitor is one browser, and its one visit to the queue. Who queues again
// after a session is another one.
type meshVisitor struct {
	number  int
	id      [16]byte
	home    int // node
	habits  habits
	state   visitorState
	vis     Visitor // what the pass says
	shown   Shown
	arrived time.Time
	entered time.Time
	polls   int
	site    *meshSite // where it polled last
	nextAsk time.Time
	witness
}

type visitorState uint8

const (
	coming visitorState = iota
	waiting
	inside
	gone // left, or through
)

// habits are what a visitor will do. The zero value keeps polling, and leaves
// without a second request after a session.
type habits struct {
	patience  time.Duration // gives up after; 0: never
	says      bool          // and says so
	awayAt    int           // stays away after this poll; 0: never
	awayFor   time.Duration
	roams     float64       // chance, per poll, of another node
	early     float64       // chance, per poll, of a second request too early
	copies    float64       // chance, per poll, of a copied pass at another node
	stay      time.Duration // once inside
	queuesNew int           // how often it queues again when its session is over
}

// arrive brings a visitor to a node after d.
func (m *mesh) arrive(home int, d time.Duration) *meshVisitor {
	return m.visit(home, d, habits{})
}

func (m *mesh) visit(home int, d time.Duration, h habits) *meshVisitor {
	v := &meshVisitor{number: len(m.visitors), home: home, habits: h}
	for i := range v.id {
		v.id[i] = byte(m.rng.Uint32())
	}
	m.visitors = append(m.visitors, v)
	m.after(d, func() {
		v.arrived = m.now
		v.state = waiting
		m.waiting++
		m.trace("visitor %d comes to node %d", v.number, v.home)
		if h.patience > 0 {
			m.after(h.patience, func() { m.giveUp(v) })
		}
		m.ask(v)
	})
	return v
}

func (m *mesh) giveUp(v *meshVisitor) {
	if v.state != waiting {
		return
	}
	m.trace("visitor %d gives up", v.number)
	m.leaves(v)
	if n := m.nodes[v.home]; v.habits.says && n.alive && !v.vis.Arrival.IsZero() {
		m.tellOwner(n, v, m.near, func(o *meshNode) []Change { return o.line.Leave(nil, v.id) })
	}
}

// ask is one request of a visitor who is not in yet, and plans the next.
func (m *mesh) ask(v *meshVisitor) {
	if v.state != waiting {
		return
	}
	n := m.reach(v)
	if n == nil {
		m.after(time.Second, func() { m.ask(v) })
		return
	}
	before := v.vis
	told := m.request(n, v)
	if m.rng.Float64() < v.habits.copies && !before.Arrival.IsZero() {
		m.copied(v, before)
	}
	if v.state != waiting {
		return
	}
	v.polls++
	if v.habits.roams > 0 && m.rng.Float64() < v.habits.roams {
		v.home = m.rng.IntN(len(m.nodes))
	}
	next := told + time.Duration(m.rng.IntN(500))*time.Millisecond // browsers are a little late now and then
	if v.polls == v.habits.awayAt {
		m.trace("visitor %d is away for %v", v.number, v.habits.awayFor)
		next = max(next, v.habits.awayFor)
		if back := m.now.Add(next); back.After(m.backBy) {
			m.backBy = back
		}
	} else if v.habits.early > 0 && m.rng.Float64() < v.habits.early {
		m.after(time.Duration(m.rng.Float64()*float64(told)*0.99), func() { m.tooEarly(v) })
	}
	v.nextAsk = m.now.Add(next)
	m.after(next, func() { m.ask(v) })
}

// reach returns the node that a visitor's request comes to: its own, or if that
// is gone another one.
func (m *mesh) reach(v *meshVisitor) *meshNode {
	n := m.route(m, v)
	for i := 0; !n.alive && i < len(m.nodes); i++ {
		v.home = (v.home + 1) % len(m.nodes)
		n = m.nodes[v.home]
	}
	if !n.alive {
		return nil
	}
	return n
}

// tooEarly is a request before the told interval is over.
func (m *mesh) tooEarly(v *meshVisitor) {
	if n := m.reach(v); n != nil && v.state == waiting && !v.vis.LastPoll.IsZero() {
		m.trace("visitor %d asks too early", v.number)
		m.request(n, v)
	}
}

// request has n answer a visitor who waits, and returns when to ask again.
func (m *mesh) request(n *meshNode, v *meshVisitor) (told time.Duration) {
	view, now := m.viewOf(n), m.clock(n)
	s := view.Settings
	m.requests++
	if s.Suspended {
		m.trace("visitor %d passes node %d, which counts nobody", v.number, n.index)
		m.leaves(v)
		return 0
	}
	before := v.vis
	m.short = false
	d := view.Decide(v.vis, now)
	m.checkDecision(n, v, d)
	if d.New {
		v.vis, v.shown = Visitor{}, Shown{}
		m.forget(v)
	}
	switch d.Action {
	case TooEarly:
		return v.vis.Refresh
	case Refuse:
		m.trace("visitor %d is refused at node %d", v.number, n.index)
		v.vis, v.shown = Visitor{}, Shown{}
		m.forget(v)
		return s.RefreshInterval
	case Apply, Compete:
		if m.take(n, d.Action) {
			m.checkEntry(n, v, before)
			m.enter(n, v)
			return 0
		}
	}
	m.wait(n, v, view)
	return v.vis.Refresh
}

// wait keeps a visitor's place, and has it counted.
func (m *mesh) wait(n *meshNode, v *meshVisitor, view *View) {
	now, s := m.clock(n), view.Settings
	if v.vis.Arrival.IsZero() {
		v.vis.Arrival = now
		m.members = append(m.members, v)
	}
	v.vis.Place = s.Place(meshKey, v.id, v.vis.Arrival)
	m.checkRefusal(n, v)
	est, shown := view.Estimate(v.vis.Place, v.shown)
	v.vis.LastPoll, v.vis.Refresh = now, view.Told(v.id, est, now)
	m.checkEstimate(n, v, est, shown)
	v.shown = shown
	m.trace("visitor %d waits at node %d: %v", v.number, n.index, est)
	vis := v.vis
	m.tellOwner(n, v, m.near, func(o *meshNode) []Change {
		m.look(o, absentAfter(vis.Refresh)+time.Second)
		return o.line.Poll(nil, v.id, vis.Arrival, now, vis.Refresh)
	})
}

// copied is a request with a copy of a pass, at the same time but elsewhere.
func (m *mesh) copied(v *meshVisitor, before Visitor) {
	n := m.nodes[m.rng.IntN(len(m.nodes))]
	if !n.alive || m.viewOf(n).Settings.Suspended {
		return
	}
	d := m.viewOf(n).Decide(before, m.clock(n))
	if (d.Action == Apply || d.Action == Compete) && !d.New && m.take(n, d.Action) {
		m.trace("a copy of visitor %d's pass is let in", v.number)
		m.copies++
		if v.state == waiting {
			m.enter(n, v)
		} else {
			m.session(n, v)
		}
	}
}

// take draws on an allowance. Under Counter that of the site's counter, and for
// places that are nobody's that of the counter for anywhere. Who grants a place
// knows at once what the taker counts.
func (m *mesh) take(n *meshNode, a Action) bool {
	class := contested
	if a == Apply {
		class = reserved
	}
	switch n.settings.Policy {
	case Counter:
	case Escrow:
		m.short = m.viewOf(n).AllowNew != Unlimited && !m.right(n)
		return !m.short && m.draw(n, class)
	default:
		return m.draw(n, class)
	}
	if c := m.counter(n.site.nodes); c != nil && m.draw(c, class) {
		m.grantedBy = c
		return true
	}
	if class != contested {
		return false
	}
	if c := m.anywhereCounter(n.site); c != nil && m.draw(c, anywhereClass) {
		m.grantedBy = c
		return true
	}
	return false
}

func (m *mesh) draw(n *meshNode, class int) bool {
	v := m.viewOf(n)
	allow := [...]int{v.AllowWaiting, v.AllowNew, v.AllowAnywhere}[class]
	if n.taken[class] >= allow || v.Over(m.clock(n)) {
		return false
	}
	n.taken[class]++
	return true
}

// counter returns the node that hands out places: the first one alive. A new
// one waits until what the one before it granted must have reached it.
func (m *mesh) counter(nodes []*meshNode) *meshNode {
	for _, n := range nodes {
		if n.alive {
			if m.now.Before(n.leads) {
				return nil
			}
			return n
		}
	}
	return nil
}

// anywhereCounter is the counter of the first site that has a node.
func (m *mesh) anywhereCounter(from *meshSite) *meshNode {
	for _, s := range m.sites {
		for _, n := range s.nodes {
			if n.alive {
				if s != from && (s.cut || from.cut) {
					return nil
				}
				return m.counter(s.nodes)
			}
		}
	}
	return nil
}

// tellOwner brings news of a visitor to its owner in the site of n.
func (m *mesh) tellOwner(n *meshNode, v *meshVisitor, after time.Duration, f func(o *meshNode) []Change) {
	var ids [16]crdt.NodeID
	live := ids[:0]
	for _, other := range n.site.nodes {
		if other.alive {
			live = append(live, other.id)
		}
	}
	id := Owner(meshKey, m.settings.ID, v.id, live)
	for _, o := range n.site.nodes {
		switch {
		case o.id != id:
		case after == 0:
			m.book(o, f(o))
		case o == n && after == m.near:
			m.book(o, f(o))
		default:
			m.after(after, func() {
				if o.alive {
					m.book(o, f(o))
				}
			})
		}
	}
}

// enter lets a visitor in.
func (m *mesh) enter(n *meshNode, v *meshVisitor) {
	m.trace("visitor %d enters at node %d after %v", v.number, n.index, m.now.Sub(v.arrived).Round(time.Millisecond))
	waited := !v.vis.Arrival.IsZero()
	m.waiting--
	v.state, v.entered = inside, m.now
	m.forget(v)
	m.admitted = append(m.admitted, v)
	v.vis.AcceptedAt = m.clock(n)
	lease := m.session(n, v)
	v.vis.LeaseEnd = lease.end.Add(n.skew)
	tick := crdt.TickOf(m.clock(n))
	if !waited {
		v.vis.Arrival = m.clock(n)
		m.write(n.row, crdt.Seen, tick, 1)
	} else {
		// The owner counts one less only after all count one more.
		at := m.clock(n)
		m.tellOwner(n, v, m.far, func(o *meshNode) []Change { return o.line.Admit(nil, v.id, at) })
	}
	m.browse(n, v, lease, m.now.Add(v.habits.stay))
}

// lease is one session as its anchor knows it. It is truth: a place is taken
// until its end.
type lease struct {
	anchor *meshNode
	row    *row
	end    time.Time
	ended  bool
	right  bool // it uses one of its site's
}

// session takes a place at n for as long as the lease runs.
func (m *mesh) session(n *meshNode, v *meshVisitor) *lease {
	m.checkLimits(n)
	l := &lease{anchor: n, row: n.row, end: m.now.Add(n.view.Settings.SessionDuration), right: m.settings.Policy == Escrow && n.view.AllowNew < Unlimited}
	m.useRight(l)
	m.write(n.row, crdt.Active, 0, 1)
	m.write(n.row, crdt.Admitted, crdt.TickOf(m.clock(n)), 1)
	if c := m.grantedBy; c != nil {
		m.grantedBy = nil
		p := &c.own
		if c.site != n.site {
			p = &c.site.outside[n.site.index()]
		}
		if c != n {
			m.read(p, n.row, len(n.row.changes))
		}
	}
	m.runLease(l)
	return l
}

func (m *mesh) runLease(l *lease) {
	m.after(l.end.Sub(m.now), func() {
		if m.now.Before(l.end) {
			m.runLease(l) // it was extended
			return
		}
		l.ended = true
		m.active--
		m.endRight(l)
		if l.row == l.anchor.row && l.anchor.alive {
			m.write(l.row, crdt.Active, 0, -1)
		}
	})
}

// browse has an admitted visitor make requests until the visit is over.
func (m *mesh) browse(n *meshNode, v *meshVisitor, l *lease, until time.Time) {
	next := time.Duration((0.2 + 1.3*m.rng.Float64()) * float64(n.settings.SessionDuration))
	if v.habits.stay == 0 || m.now.Add(next).After(until) {
		m.after(until.Sub(m.now), func() { v.state = gone })
		return
	}
	m.after(next, func() {
		at := m.reach(v)
		if at == nil || m.viewOf(at).Settings.Suspended {
			m.browse(n, v, l, until)
			return
		}
		d := m.viewOf(at).Decide(v.vis, m.clock(at))
		m.checkInside(at, v, d, l)
		anchored := l.anchor.alive && l.row == l.anchor.row && !l.ended
		switch {
		case d.Action == Enter, d.Action == Ask && anchored:
			if anchored && !at.view.Settings.DisableSessionRenewal {
				l.end = m.now.Add(at.view.Settings.SessionDuration)
				if d.Action == Ask || m.rng.Float64() < 0.7 { // not every answer brings a cookie
					v.vis.LeaseEnd = l.end.Add(at.skew)
				}
			}
			m.browse(n, v, l, until)
		default:
			v.state = gone
			m.trace("the session of visitor %d is over", v.number)
			if h := v.habits; h.queuesNew > 0 {
				h.queuesNew--
				m.visit(v.home, 0, h)
			}
		}
	})
}
