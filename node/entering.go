package node

import (
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// How a visitor who may enter gets a ticket.

// apply takes a ticket of a class for an eligible visitor, and fills in a zero verdict. ok is
// false if there is none, and nothing is filled in; the need says where one has to be applied for.
func (r *Room) apply(v *Verdict, w *view, c class, p *Pass, now time.Time) (n need, ok bool) {
	if r.retired.Load() {
		return nothing, false
	}
	c, is := w.tickets.take(w, c, now)
	if is != refused && !p.Arrival.IsZero() && !r.core.stripes.ofVisitor(p.Visitor).claims(visitKey{r.id, p.Visitor}, r.core.self.Node, now) {
		if is == granted {
			r.giveBack(gotten{class: c})
		}
		v.Pass = *p
		return ownersWord, true
	}
	switch is {
	case granted:
		return r.enterWith(v, &gotten{class: c}, p, now), true
	case asked:
		v.Pass = *p
		return needOf(c), true
	}
	return nothing, false
}

// enterWith lets a visitor in with a ticket that was taken for that, into a zero
// verdict. Any goroutine may call it.
func (r *Room) enterWith(v *Verdict, g *gotten, p *Pass, now time.Time) need {
	var e entered
	is, ok := r.takeUp(&e, g, p, now)
	if ok {
		// The stripe of the session, not of the visitor: the loop then cannot meet
		// the session's first check-in before the lease that it belongs to.
		r.core.stripes.ofSession(sessionKey{r.id, e.pass.Ticket}).enter(&e)
	}
	return r.admitAs(v, &e, is, p, now)
}

// letIn is enterWith for the loop, which needs no note to book it.
func (r *Room) letIn(v *Verdict, g *gotten, p *Pass, now time.Time) need {
	var e entered
	is, ok := r.takeUp(&e, g, p, now)
	if ok {
		r.entered(&e, now)
	}
	return r.admitAs(v, &e, is, p, now)
}

// admitAs answers a visitor of whom takeUp has made e. Nobody can have ended the session
// of somebody new, nor is it past.
func (r *Room) admitAs(v *Verdict, e *entered, is redeemState, p *Pass, now time.Time) (n need) {
	if e.waited {
		*v, n = r.redeemedAs(is, *p, e.pass, now)
		return n
	}
	v.Admit, v.Pass, v.SetPass, v.View = true, e.pass, true, r.view.Load().View
	return nothing
}

// takeUp makes a session of a ticket, in a zero e: passes are large, and are handed on by
// pointer. If somebody with the same waiting pass was faster, or the owner's word was too
// long ago, the ticket is given back: ok is false, and the pass is theirs, if any.
func (r *Room) takeUp(e *entered, g *gotten, p *Pass, now time.Time) (is redeemState, ok bool) {
	e.room, e.gotten, e.waited = r, *g, !p.Arrival.IsZero()
	r.admitted(&e.pass, g, p, now)
	if !e.waited {
		r.counted().given.Add(1)
		return confirmed, true
	}
	id := e.pass.Visitor
	q, ok := r.core.stripes.ofVisitor(id).redeem(visitKey{r.id, id}, r.core.self.Node,
		redeemed{pass: e.pass, is: confirmed, kept: r.redeemedFor()}, now)
	if ok {
		r.counted().given.Add(1)
	} else {
		r.giveBack(*g)
	}
	e.pass = q.pass
	return q.is, ok
}

// admitted makes of a zero q the pass of a visitor who is let in now; without a ticket,
// with a new one of this node.
func (r *Room) admitted(q *Pass, g *gotten, p *Pass, now time.Time) {
	q.Ticket = g.ticket
	if q.Ticket.IsZero() {
		q.Ticket = r.newTicket()
	}
	session := r.Settings().SessionDuration
	if g.session > 0 {
		session = min(session, g.session)
	}
	q.Visitor, q.Room, q.Arrival, q.AcceptedAt, q.LeaseEnd = p.Visitor, r.id, p.Arrival, now, now.Add(session)
	if q.Visitor == (VisitorID{}) {
		q.Visitor = r.core.newVisitor()
	}
	if q.Arrival.IsZero() {
		q.Arrival = now
	}
}

func (r *Room) newTicket() ticket.Ticket {
	self := r.core.self
	return ticket.Ticket{Anchor: self.Node, Boot: self.Boot, Seq: r.core.issued.Add(1)}
}
