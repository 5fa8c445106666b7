package ticket

import (
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	isAway = iota
	isWaiting
	isIn
)

// traveller is one visitor, who asks any node.
type traveller struct {
	home, left int
	next       int64
	state      int
	since      int64 // waiting
	session    int
	pass       *pass // nil: has none
	old        []*pass
}

// visit has a visitor ask a node.
func (w *world) visit(v *traveller) {
	if w.now >= worldHome {
		v.next = worldEnd
		return
	}
	m := w.machines[v.home]
	if w.Float64() < .25 || !m.up {
		m = w.machines[w.IntN(len(w.machines))]
	}
	if w.Float64() < .01 {
		v.home = w.IntN(len(w.machines))
	}
	p := v.pass
	if len(v.old) > 0 && w.Float64() < .04 {
		p = v.old[w.IntN(len(v.old))]
	}
	switch {
	case !m.up:
		v.next = w.now + 500
		return
	case m.paused: // it may be answered when the browser has long given up
		if w.IntN(2) == 0 && len(m.waiting) < 5 {
			session := v.session
			m.waiting = append(m.waiting, func() { w.request(m, &session, p) })
		}
		v.home = w.IntN(len(w.machines))
		v.next = w.now + 300 + w.Int64N(700)
		return
	}
	got := w.request(m, &v.session, p)
	w.write(m)
	if w.Float64() < .08 { // the answer is lost
		v.next = w.now + 200 + w.Int64N(1500)
		return
	}
	w.answered(v, got)
}

func (w *world) answered(v *traveller, got *pass) {
	if got == nil {
		if v.state != isWaiting {
			v.state, v.since = isWaiting, w.now
		}
		v.pass = nil
		v.next = w.now + 200 + w.Int64N(300)
		return
	}
	if v.pass != nil && *v.pass != *got {
		v.old = append(v.old, v.pass)
		v.old = v.old[max(0, len(v.old)-3):]
	}
	v.pass = got
	if v.state != isIn {
		v.state, v.left = isIn, 1+w.IntN(10)
	}
	v.next = w.now + 100 + int64(w.ExpFloat64()*2000)
	if v.left--; v.left <= 0 {
		v.state = isAway
		v.next = w.now + 500 + int64(w.ExpFloat64()*4000)
		if w.IntN(2) == 0 { // comes back just when the session ends
			v.next = w.now + worldSession.Milliseconds() - 500 + w.Int64N(1000)
			v.home = w.IntN(len(w.machines))
		}
	}
}

// request decides about one request, and returns the pass of who is let in.
func (w *world) request(m *machine, session *int, p *pass) *pass {
	now := w.clock(m)
	if p != nil {
		if got := w.returning(m, *p, now); got != nil {
			return got
		}
		*session = 0
	}
	if *session == 0 {
		w.sessions++
		*session = w.sessions
	}
	if t, ok := m.passes[*session]; ok && now.Before(t.end) { // the answer was lost
		return w.returning(m, t, now)
	}
	if m.leaving {
		return nil
	}
	m.queue[*session] = w.now
	if w.opt.Counter && w.leader(m) != m {
		return nil
	}
	if w.opt.Counter {
		if g := m.stock.Take(nil, 1, m.inc.Node, now); len(g) > 0 {
			return w.admit(m, *session, g[0].Ticket(0))
		}
	}
	return w.own(m, *session, now)
}

// own admits a visitor with a right of the node.
func (w *world) own(m *machine, session int, now time.Time) *pass {
	if m.rights.Tokens() == 0 && m.rights.Open(1, now) == 0 {
		return nil
	}
	t := Ticket{Anchor: m.inc.Node, Boot: m.inc.Boot, Seq: m.rights.cfg.Seqs(1)}
	if _, _, err := m.rights.Enter(t, now, now, now); err != nil {
		panic(err)
	}
	return w.admit(m, session, t)
}

// admit lets a visitor in with a ticket.
func (w *world) admit(m *machine, session int, t Ticket) *pass {
	now := w.clock(m)
	w.truth.ticket(t, w.now)
	w.truth.admit(w.now)
	w.truth.checkedIn(session, w.now)
	p := pass{session, t, now.Add(worldSession)}
	m.passes[session] = p
	delete(m.queue, session)
	delete(m.calls, session)
	if t.Anchor != m.inc.Node {
		m.renews[session] = &renewal1{pass: p, at: w.now, first: w.now, sent: w.now}
		w.renew(m, m.renews[session])
	}
	return &p
}

// returning lets in who has been let in before.
func (w *world) returning(m *machine, p pass, now time.Time) *pass {
	if t, ok := m.passes[p.session]; ok && !t.end.Before(p.end) {
		p = t
	}
	if m.facts.heir(p.ticket.Anchor) == m.inc.Node && !m.leaving {
		if end, _, err := m.rights.CheckIn(p.ticket, p.end, now, now); err == nil {
			p.end = end
			m.passes[p.session] = p
			w.checkedIn(m, p, w.now)
			return &p
		}
		if !now.Before(p.end) {
			return nil
		}
		return w.reanchor(m, p, now)
	}
	if !now.Before(p.end) {
		return nil
	}
	x := m.renews[p.session]
	if x == nil || x.ticket != p.ticket {
		x = &renewal1{pass: p, first: w.now}
		m.renews[p.session] = x
	}
	x.pass, x.at, x.sent = p, w.now, w.now
	w.renew(m, x)
	if (x.refused || w.now-x.first > 1000) && !m.leaving {
		if got := w.reanchor(m, p, now); got != nil {
			return got
		}
	}
	if !p.ticket.Borrowed() {
		w.truth.passed(p.session, w.now)
	}
	return &p
}

// reanchor gives a session a place here.
func (w *world) reanchor(m *machine, p pass, now time.Time) *pass {
	t := Ticket{Anchor: m.inc.Node, Boot: m.inc.Boot, Seq: m.rights.cfg.Seqs(1)}
	got, end, _, ok := m.rights.Reanchor(t, now, now, w.opt.Open)
	if !ok {
		return nil
	}
	p.ticket, p.end = got, end
	m.passes[p.session] = p
	delete(m.renews, p.session)
	w.truth.ticket(got, w.now)
	w.checkedIn(m, p, w.now)
	return &p
}

// checkedIn tells the oracle of a session that its anchor keeps. Without a place it
// is not one of those that are limited: it is shown apart.
func (w *world) checkedIn(anchor *machine, p pass, at int64) {
	if _, on := anchor.rights.debts.ends[p.ticket]; !on {
		w.truth.checkedIn(p.session, at)
	}
}

// renew tells a session's anchor that its visitor was here.
func (w *world) renew(m *machine, x *renewal1) {
	p, at, from := x.pass, x.at, m.inc.Node
	w.send(m, m.facts.heir(p.ticket.Anchor), func(o *machine) {
		now := w.clock(o)
		end, _, err := o.rights.CheckIn(p.ticket, p.end, now.Add(-time.Duration(w.now-at)*time.Millisecond), now)
		if err == nil {
			w.checkedIn(o, p, at)
		}
		w.send(o, from, func(m *machine) { w.renewed(m, p, end, err) })
	})
}

func (w *world) renewed(m *machine, p pass, end time.Time, err error) {
	x := m.renews[p.session]
	if x == nil || x.ticket != p.ticket {
		return
	}
	if err != nil {
		x.refused = true
		return
	}
	delete(m.renews, p.session)
	if t := m.passes[p.session]; t.ticket != p.ticket || t.end.Before(end) {
		p.end = end
		m.passes[p.session] = p
	}
}

// resend sends renewals again and forgets what is of no use.
func (w *world) resend(m *machine) {
	now := w.clock(m)
	for _, s := range slices.Sorted(maps.Keys(m.renews)) {
		x := m.renews[s]
		if now.After(x.end) {
			delete(m.renews, s)
		} else if w.now-x.sent > 500 {
			x.sent = w.now
			w.renew(m, x)
		}
	}
	for s, at := range m.queue {
		if w.now-at > 1500 {
			delete(m.queue, s)
			delete(m.calls, s)
		}
	}
	for s, at := range m.asked {
		if w.now-at > 1000 {
			delete(m.asked, s)
		}
	}
	for s, p := range m.passes {
		if now.Sub(p.end) > 3*worldSession {
			delete(m.passes, s)
		}
	}
}

// serveLine asks the leader of the site for those who wait here, and uses the
// node's own rights if it does not answer.
func (w *world) serveLine(m *machine) {
	leader := w.leader(m)
	if len(m.queue) == 0 {
		m.rights.Close(m.rights.Tokens())
	} else if m.rights.Tokens() == 0 && !w.opt.Counter {
		m.rights.Open(int64(w.IntN(3)), w.clock(m))
	}
	if !w.opt.Counter || leader == m || m.leaving {
		return
	}
	for _, s := range slices.Sorted(maps.Keys(m.queue)) {
		c := m.calls[s]
		if c == nil {
			m.numbers++
			c = &grantCall{number: m.numbers, began: w.now}
			m.calls[s] = c
		} else if w.now-c.began >= CallTimeout.Milliseconds() {
			delete(m.calls, s) // gives up: a grant that comes now is cancelled
			if w.Float64() < .5 {
				w.own(m, s, w.clock(m))
			}
			continue
		}
		w.ask(m, leader.inc.Node, s, *c)
	}
}

// ask applies for one ticket. The same call gets the same answer.
func (w *world) ask(m *machine, to crdt.NodeID, session int, c grantCall) {
	key := answerKey{m.inc, c.number}
	w.send(m, to, func(o *machine) {
		now := w.clock(o)
		if w.leader(o) != o || o.leaving {
			return
		}
		o.asked[session] = w.now
		g, known := o.answers[key]
		if !known {
			got := o.stock.Take(nil, 1, key.from.Node, now)
			if len(got) == 0 {
				got, _ = o.rights.Issue(1, now)
			}
			if len(got) == 0 {
				return
			}
			g = got[0]
			o.answers[key] = g
			delete(o.asked, session)
		}
		w.send(o, key.from.Node, func(m *machine) { w.granted(m, session, key, g) })
	})
}

func (w *world) granted(m *machine, session int, key answerKey, g Range) {
	if m.inc != key.from || m.done[key.number] {
		return
	}
	m.done[key.number] = true
	c := m.calls[session]
	_, waits := m.queue[session]
	if c == nil || c.number != key.number || w.now-c.began >= CallTimeout.Milliseconds() || !waits || m.leaving {
		w.send(m, g.Anchor, func(o *machine) { o.rights.Cancel([]Range{g}, w.clock(o)) })
		return
	}
	w.admit(m, session, g.Ticket(0))
}
