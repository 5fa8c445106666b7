package node

import (
	"time"

	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// Which node's right a session uses, where rights are the limit.

// openSession starts the lease of somebody who was let in, here or at the anchor.
func (r *Room) openSession(e *entered, now time.Time) {
	t, self := e.pass.Ticket, r.core.self
	switch {
	case t.Anchor != self.Node:
		r.noteRenewal(t, e.pass.LeaseEnd, e.pass.AcceptedAt) // the anchor shall hear of it
	case t.Block == 0 && (!e.gotten.lent || e.gotten.ticket.IsZero()): // used first here
		r.openLease(t, e.pass.LeaseEnd, e.pass.AcceptedAt, now)
	default: // the right has given it out already, here or as a loan
		if _, ok := r.extend(t, e.pass.LeaseEnd, e.pass.AcceptedAt, now); !ok {
			r.reanchor(t, e.pass.LeaseEnd, e.pass.AcceptedAt, now)
		}
	}
}

// limited reports whether rights are the limit of the room at the moment.
func (r *Room) limited() bool { return byRights(r.Settings()) }

// byRights reports whether rights are the limit under settings that hold. Where
// everybody is let in, nothing is.
func byRights(s *room.Settings) bool {
	return s.Policy == room.Escrow && s.QueueingMethod != room.Passthrough
}

// takeOver gives a session whose anchor is out of reach a place of this node, if
// one is free; if none is, and it is likely that the session runs, it is borrowed
// where the room would rather be open. Any goroutine may call it.
func (r *Room) takeOver(at, now time.Time, likely bool) (renewal, bool) {
	mayBorrow := likely && r.Settings().OnPartition == room.PartitionOpen
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rights == nil {
		return renewal{}, false
	}
	t, end, d, ok := r.rights.Reanchor(r.newTicket(), at, now, mayBorrow)
	r.delta = r.delta.Add(d)
	return renewal{ticket: t, end: end}, ok
}

// letGo gives up a place that takeOver has taken and nobody needs.
func (r *Room) letGo(t ticket.Ticket, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delta = r.delta.Add(r.rights.End(t, now))
}

// grown returns what a pass shall become, with the end that a request at now gives it
// if this node is the anchor. The loop does the same a moment later, but the visitor
// may be gone by then, to a node where the pass is all that counts.
func (r *Room) grown(next renewal, now time.Time) renewal {
	if next.ticket.Anchor == r.core.self.Node {
		if end, ok := r.extend(next.ticket, next.end, now, now); ok {
			next.end = end
		}
	}
	return next
}

// carry gives a pass another ticket and end.
func (p *Pass) carry(n renewal) {
	p.Ticket, p.LeaseEnd, p.Borrowed = n.ticket, n.end, n.ticket.Borrowed()
}
