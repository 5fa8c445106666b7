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
	s := r.core.stripes.ofSession(k)
	next, ok := s.last(k)
	if !ok || r.over(next.ticket) {
		return Verdict{}, false // nothing is noted: of a session that is over it would take a place
	}
	if next = r.grown(next, now); !next.end.After(now) {
		return Verdict{}, false
	}
	s.checkIn(k, p.LeaseEnd, now)
	p.carry(next)
	return r.admit(p), true
}

// answered goes on when the anchor of a session was asked.
func (r *Room) answered(p Pass, end time.Time, a answer, now time.Time) (Verdict, need) {
	switch a {
	case goesOn:
		p.LeaseEnd = r.credible(end, now)
		// Should the answer be lost, the anchor need not be asked again.
		k := sessionKey{r.id, p.Ticket}
		r.core.stripes.ofSession(k).renewed(k, renewal{ticket: p.Ticket, end: p.LeaseEnd})
		return r.admit(p), nothing
	case over:
		return r.decide(Pass{}, true, now)
	}
	if v, ok := r.known(p, now); ok {
		return v, nothing // re-anchored while the old anchor was asked
	}
	if now.Sub(p.LeaseEnd) <= r.Settings().SessionDuration {
		if v, n, ok := r.keep(p, now); ok {
			return v, n
		}
	}
	if now.Sub(p.LeaseEnd) >= askedFor*r.Settings().SessionDuration {
		return r.decide(Pass{}, true, now) // more likely over than lost: such a pass is no reason to stand first
	}
	// A fault of ours: the visitor keeps the arrival, and so stands first.
	p.Visitor = p.Visitor.after(p.AcceptedAt)
	p.AcceptedAt, p.LeaseEnd, p.Ticket, p.Borrowed = time.Time{}, time.Time{}, ticket.Ticket{}, false
	p.Refresh = r.Settings().RefreshInterval
	p.LastPoll = now.Add(-p.Refresh)
	return r.decide(p, true, now)
}

// keep re-anchors a session here whose anchor is silent. Its pass may be behind
// by what is not worth a cookie, so the lease may well run; the old anchor counts
// it for a session in any case. It may even be behind by a session, if the last
// request was let pass just before its end: then a place that is free is enough of a
// reason, and without one, or where nothing but the anchor's word keeps to the limit,
// ok is false.
func (r *Room) keep(p Pass, now time.Time) (v Verdict, n need, ok bool) {
	old, session := p.Ticket, r.Settings().SessionDuration
	likely := now.Sub(p.LeaseEnd) <= session/renewAt
	next := renewal{end: now.Add(session)}
	note := reanchored{room: r, old: old, at: now}
	switch {
	case r.limited():
		if next, ok = r.takeOver(now, now, likely); !ok {
			return v, nothing, false
		}
		note.end = next.end
	case likely:
		next.ticket = r.newTicket()
	default:
		return v, nothing, false
	}
	note.new = next.ticket
	k := sessionKey{r.id, old}
	holds := r.core.stripes.ofSession(k).reanchor(k, next, note)
	if holds.ticket != next.ticket && !note.end.IsZero() {
		r.letGo(next.ticket, now)
	}
	if holds.over || r.over(holds.ticket) {
		v, n = r.decide(Pass{}, true, now)
		return v, n, true
	}
	p.carry(holds)
	return r.admit(p), nothing, true
}
