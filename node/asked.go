package node

import (
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// What a request does whose pass has run out, once the anchor was asked.

// known lets a visitor pass whose pass has run out when this node knows what it
// shall become.
func (r *Room) known(p Pass, now time.Time) (Verdict, bool) {
	k := sessionKey{r.id, p.Ticket}
	next, ok := r.core.stripes.ofSession(k).checkIn(k, p.LeaseEnd, now)
	if !ok || !next.end.After(now) || r.over(next.ticket) {
		return Verdict{}, false
	}
	p.Ticket, p.LeaseEnd = next.ticket, next.end
	return r.admit(p), true
}

// answered goes on when the anchor of a session was asked.
func (r *Room) answered(p Pass, end time.Time, a answer, now time.Time) (Verdict, need) {
	switch a {
	case goesOn:
		p.LeaseEnd = r.credible(end, now)
		return r.admit(p), nothing
	case over:
		return r.decide(Pass{}, true, now)
	}
	if v, ok := r.known(p, now); ok {
		return v, nothing // re-anchored while the old anchor was asked
	}
	if now.Sub(p.LeaseEnd) <= r.Settings().SessionDuration/renewAt {
		return r.keep(p, now)
	}
	// A fault of ours: the visitor keeps the arrival, and so stands first.
	p.AcceptedAt, p.LeaseEnd, p.Ticket = time.Time{}, time.Time{}, ticket.Ticket{}
	p.Refresh = r.Settings().RefreshInterval
	p.LastPoll = now.Add(-p.Refresh)
	return r.decide(p, true, now)
}

// keep re-anchors a session here whose anchor is silent. Its pass may be behind
// by what is not worth a cookie, so the lease may well run; the old anchor's row
// counts it for a session in any case.
func (r *Room) keep(p Pass, now time.Time) (Verdict, need) {
	old := p.Ticket
	p.Ticket, p.LeaseEnd = r.newTicket(), now.Add(r.Settings().SessionDuration)
	k := sessionKey{r.id, old}
	next := r.core.stripes.ofSession(k).reanchor(k, renewal{ticket: p.Ticket, end: p.LeaseEnd}, reanchored{r, old, p.Ticket, now})
	if next.over || r.over(next.ticket) {
		return r.decide(Pass{}, true, now)
	}
	p.Ticket, p.LeaseEnd = next.ticket, next.end
	return r.admit(p), nothing
}
