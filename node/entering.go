package node

import (
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// How a visitor who may enter gets a ticket.

// apply takes a ticket of a class for an eligible visitor. ok is false if there
// is none; the need says where one has to be applied for.
func (r *Room) apply(w *view, c class, p Pass, now time.Time) (v Verdict, n need, ok bool) {
	if r.retired.Load() {
		return Verdict{}, nothing, false
	}
	c, is := w.tickets.take(w, c, now)
	if is != refused && !p.Arrival.IsZero() && !r.core.stripes.ofVisitor(p.Visitor).claims(visitKey{r.id, p.Visitor}, r.core.self.Node, now) {
		if is == granted {
			r.giveBack(gotten{class: c})
		}
		return Verdict{Pass: p}, ownersWord, true
	}
	switch is {
	case granted:
		v, n = r.enterWith(gotten{class: c}, p, now)
		return v, n, true
	case asked:
		return Verdict{Pass: p}, needOf(c), true
	}
	return Verdict{}, nothing, false
}

// enterWith lets a visitor in with a ticket that was taken for that. Any goroutine
// may call it.
func (r *Room) enterWith(g gotten, p Pass, now time.Time) (Verdict, need) {
	e, is, ok := r.takeUp(g, p, now)
	if ok {
		// The stripe of the session, not of the visitor: the loop then cannot meet
		// the session's first check-in before the lease that it belongs to.
		r.core.stripes.ofSession(sessionKey{r.id, e.pass.Ticket}).enter(e)
	}
	return r.redeemedAs(is, p, e.pass, now)
}

// letIn is enterWith for the loop, which needs no note to book it.
func (r *Room) letIn(g gotten, p Pass, now time.Time) (Verdict, need) {
	e, is, ok := r.takeUp(g, p, now)
	if ok {
		r.entered(e, now)
	}
	return r.redeemedAs(is, p, e.pass, now)
}

// takeUp makes a session of a ticket. If somebody with the same waiting pass was
// faster, or the owner's word was too long ago, the ticket is given back: ok is false, and
// the pass is theirs, if any.
func (r *Room) takeUp(g gotten, p Pass, now time.Time) (e entered, is redeemState, ok bool) {
	e = entered{room: r, pass: r.admitted(g, p, now), gotten: g, waited: !p.Arrival.IsZero()}
	if !e.waited {
		r.tally.given.Add(1)
		return e, confirmed, true
	}
	id := e.pass.Visitor
	q, ok := r.core.stripes.ofVisitor(id).redeem(visitKey{r.id, id}, r.core.self.Node,
		redeemed{pass: e.pass, is: confirmed, kept: r.redeemedFor()}, now)
	if ok {
		r.tally.given.Add(1)
	} else {
		r.giveBack(g)
	}
	e.pass = q.pass
	return e, q.is, ok
}

// admitted returns the pass of a visitor who is let in now; without a ticket, with
// a new one of this node.
func (r *Room) admitted(g gotten, p Pass, now time.Time) Pass {
	if g.ticket.IsZero() {
		g.ticket = r.newTicket()
	}
	session := r.Settings().SessionDuration
	if g.session > 0 {
		session = min(session, g.session)
	}
	q := Pass{
		Visitor:    p.Visitor,
		Room:       r.id,
		Arrival:    p.Arrival,
		AcceptedAt: now,
		LeaseEnd:   now.Add(session),
		Ticket:     g.ticket,
	}
	if q.Visitor == (VisitorID{}) {
		q.Visitor = r.core.newVisitor()
	}
	if q.Arrival.IsZero() {
		q.Arrival = now
	}
	return q
}

func (r *Room) newTicket() ticket.Ticket {
	self := r.core.self
	return ticket.Ticket{Anchor: self.Node, Boot: self.Boot, Seq: r.seq.Add(1)}
}
