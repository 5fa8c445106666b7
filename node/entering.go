package node

import (
	"math"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// How a visitor who may enter gets a ticket.

// apply takes a ticket for an eligible visitor, if one may be taken here.
func (r *Room) apply(w *view, c class, p Pass, now time.Time) (Verdict, bool) {
	if !r.take(w, c, now) {
		return Verdict{}, false
	}
	q := r.admitted(p, now)
	waited := !p.Arrival.IsZero()
	if waited {
		first, ok := r.core.stripes.ofVisitor(q.Visitor).redeem(visitKey{r.id, q.Visitor}, redeemed{q, now})
		if !ok {
			r.used[c].Add(-1)
			return r.admit(first), true
		}
	}
	// The stripe of the session, not of the visitor: the loop then cannot meet
	// the session's first check-in before the lease that it belongs to.
	r.core.stripes.ofSession(sessionKey{r.id, q.Ticket}).enter(entered{room: r, pass: q, class: c, waited: waited})
	return r.admit(q), true
}

// take counts one ticket of a class, if the view allows another. A process that
// was stopped and goes on finds a view that is long past, before its loop has
// come round; nothing is taken from that.
func (r *Room) take(w *view, c class, now time.Time) bool {
	if now.Sub(w.BuiltAt) > viewKept && w.upTo[c] != math.MaxInt64 {
		return false
	}
	for {
		used := r.used[c].Load()
		if used >= w.upTo[c] {
			return false
		}
		if r.used[c].CompareAndSwap(used, used+1) {
			return true
		}
	}
}

// admitted returns the pass of a visitor who is let in now, with a new ticket of
// this node.
func (r *Room) admitted(p Pass, now time.Time) Pass {
	q := Pass{
		Visitor:    p.Visitor,
		Room:       r.id,
		Arrival:    p.Arrival,
		AcceptedAt: now,
		LeaseEnd:   now.Add(r.Settings().SessionDuration),
		Ticket:     r.newTicket(),
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
