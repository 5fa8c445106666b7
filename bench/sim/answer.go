package sim

import (
	"fmt"
	"time"

	"github.com/ropeline/ropeline/node"
)

// answer takes a node's answer to the visitor's request: first what it means in
// truth, then, if it arrives, what the visitor makes of it.
func (s *sim) answer(i int32, m *machine, a *node.Verdict) {
	v := &s.people.all[i]
	if s.cfg.Trace != nil {
		s.traceAnswer(v, m, a)
	}
	if v.phase == asking && v.first {
		s.oracle.arrived(!a.Admit)
		if !a.Admit {
			s.f.Queued++
		}
	}
	if v.stale && !a.Admit {
		// Whatever it says is about a pass that the browser has a newer one for.
		v.due = s.now + retryAfter
		s.plan(i)
		return
	}
	if a.Admit {
		s.inFact(v, m, a)
	} else {
		s.outInFact(v, m, a)
	}
	if s.cfg.Lost > 0 && v.dice.unit() < s.cfg.Lost {
		s.f.Unanswered++
		if s.cfg.Trace != nil {
			s.trace(m, "visitor %d never sees that answer", v.no)
		}
		v.due = s.now + retryAfter
		s.plan(i)
		return
	}
	s.estimated(v, m, a)
	if a.SetPass {
		s.outdate(i)
		v.pass = s.registry.pack(a.Pass)
		if v.pass.accepted == v.accepted {
			v.own = max(v.own, v.pass.ends())
		}
	}
	if a.ClearPass {
		v.pass = pass{}
	}
	if a.Admit {
		s.browse(v)
	} else {
		s.queue(v, a)
	}
	s.plan(i)
}

// inFact is what it means that a visitor is let pass.
func (s *sim) inFact(v *visitor, m *machine, a *node.Verdict) {
	told := s.registry.pack(a.Pass)
	accepted, anchor := told.accepted, told.anchor
	fresh, since := s.checkTicket(&told, m)
	comes := true
	switch {
	case v.phase == asking || v.phase == waiting:
		s.letIn(v, m, &told, fresh) // or let back in, by a session of before
	case accepted != v.accepted && !v.active, told.room != v.room:
		// The session was over, or the room was made again, and a place is free at once.
		s.f.Requeued++
		v.rest = max(1, v.until-s.now)
		v.came, v.queued, v.first = s.now, false, false
		s.letIn(v, m, &told, fresh)
	case accepted < v.accepted && v.behind:
		fresh, comes = false, false // an earlier session, whose place is taken still
	case accepted != v.accepted:
		s.twice(v, m, accepted, anchor, fresh)
	default:
		fresh, comes = false, anchor != v.anchor || !v.active
		if anchor != v.anchor {
			s.f.Reanchored++
			s.anchor(v, anchor)
		}
		if !v.active {
			s.comeIn(v)
			s.oracle.enter()
		}
	}
	if !v.busy {
		v.busy = true
		s.oracle.use(1)
	}
	s.lend(v, a.Pass.Borrowed)
	v.ends = max(v.ends, s.now, told.ends())
	if accepted == v.accepted && v.by == m.no {
		v.own = max(v.own, told.ends())
	}
	if !s.oracle.limits.fixed || v.lasts < s.now {
		v.lasts = s.now + int64(s.oracle.limits.session)
	}
	if comes {
		s.entered(v.room, m, since)
	}
	s.passed(v.room, m)
	if fresh && since == s.now {
		s.admitted(v.room, m)
	}
}

// comeIn and goOut keep count of who is inside.
func (s *sim) comeIn(v *visitor) {
	v.active = true
	if a := s.rights.account(v.room); v.free {
		a.free++
	} else {
		a.inside++
	}
}

func (s *sim) goOut(v *visitor) {
	v.active = false
	if a := s.rights.account(v.room); v.free {
		a.free--
	} else {
		a.inside--
	}
	s.oracle.leave()
	s.lend(v, false)
}

// frees returns until when a visitor uses a place.
func (v *visitor) frees() int64 { return max(v.ends, v.lasts) }

// free notes that a visitor uses no place any more.
func (s *sim) free(v *visitor) {
	if v.busy {
		v.busy = false
		s.oracle.use(-1)
	}
}

// lend notes whether the session of somebody inside goes on without a right.
func (s *sim) lend(v *visitor, lent bool) {
	switch {
	case lent && !v.lent:
		s.rights.account(v.room).borrowed++
		s.f.Borrowed++
	case v.lent && !lent:
		s.rights.account(v.room).borrowed--
	}
	v.lent = lent
}

// letIn counts a visitor who has been let in from outside; fresh says that it is by
// a session that has not been seen before.
func (s *sim) letIn(v *visitor, m *machine, told *pass, fresh bool) {
	if v.active {
		s.goOut(v) // was inside by another ticket, since the last turn
	}
	v.room = told.room
	if fresh {
		v.free = s.unbound()
	}
	if v.phase == waiting {
		s.oracle.wait(-1)
	}
	if v.first {
		s.f.LetIn++
		s.waited(v)
	}
	if p := &v.pass; p.known() && p.accepted == 0 && v.spent != p.place() {
		v.spent, v.spentBy = p.place(), told.accepted
	}
	v.phase, v.until = inside, 0
	v.accepted, v.by, v.started, v.site = told.accepted, m.no, m.started, m.siteNo
	s.anchor(v, told.anchor)
	v.ends, v.own, v.lasts = s.now, 0, 0
	if fresh {
		s.oracle.admit()
		if _, counted := s.rights.unheard[told.session()]; !counted && !s.unbound() {
			s.rights.admitted(v.room, s.now)
		}
	} else {
		s.oracle.enter()
	}
	s.comeIn(v)
}

// twice counts a second ticket for a place that had one. A node can only know by
// the pass: of a visitor who never got one it cannot, nor of one whose pass is worth
// nothing any more, be it that the lease went on and only the anchor knew.
func (s *sim) twice(v *visitor, m *machine, accepted int64, anchor int32, fresh bool) {
	s.f.Doubled++
	if fresh { // else it was counted when it was first shown
		s.oracle.again()
		if !s.unbound() {
			s.rights.admitted(v.room, s.now)
		}
	}
	ends := v.own
	if v.pass.accepted != 0 { // another node, at which sessions are shorter, may have given it
		ends = min(ends, v.pass.ends())
	}
	over := ends-s.now < int64(clockBound) // by the clock of that node it may be
	if !over && v.pass.known() && !v.behind && !v.outlived() && v.by == m.no && v.started == m.started && s.remembered(v) {
		s.violate(LetInTwice, m, fmt.Sprintf("visitor %d has a second ticket %v after the first", v.no, time.Duration(accepted-v.accepted)*time.Millisecond))
	}
	v.accepted, v.by, v.started, v.own = accepted, m.no, m.started, 0
	s.anchor(v, anchor)
}

// anchor notes whose ticket the session of a visitor has.
func (s *sim) anchor(v *visitor, anchor int32) {
	v.anchor = anchor
	if anchor == 0 {
		return
	}
	m := s.machines[s.registry.ids[anchor-1].machine]
	v.anchored = m.started
	if s.follows {
		v.under = uint8(s.force.largest(m.no, v.room))
	}
}

// remembered reports whether the anchor of a visitor's session still has its lease. One
// that has started again or left knows of it, as its heir does, only what the pass says.
func (s *sim) remembered(v *visitor) bool {
	if v.anchor == 0 {
		return true
	}
	id := &s.registry.ids[v.anchor-1]
	m := s.machines[id.machine]
	return m.id == id.id && m.started == v.anchored && !m.leaving && !m.away
}

// outInFact is what it means that a visitor is not let pass.
func (s *sim) outInFact(v *visitor, m *machine, a *node.Verdict) {
	switch v.phase {
	case asking:
		s.oracle.wait(1)
		v.phase, v.queued = waiting, true
	case waiting:
		if s.lostPlace(v, a) {
			s.f.PlacesLost++
			if !s.wildClocks && !v.behind {
				s.violate(PlaceLost, m, fmt.Sprintf("visitor %d came %v ago and has to begin again", v.no, time.Duration(s.now-v.came)))
			}
		}
	case inside:
		if v.lasts > s.now {
			s.f.SessionsLost++
		}
		if v.active {
			s.goOut(v)
		}
		s.free(v)
		s.f.Requeued++
		s.oracle.wait(1)
		v.phase, v.queued, v.first, v.known = waiting, true, false, false
		v.rest = max(1, v.until-s.now)
		v.came, v.until = s.now, 0
	}
}

// lostPlace reports whether a visitor who waits has another place than before,
// and has done nothing to lose the old one. Whoever still has the pass of a
// session that is over, since the answer that said so was lost, has no place yet.
// Whoever was let in, and never saw the answer, has none any more: a place is good
// for one session, and that has ended.
func (s *sim) lostPlace(v *visitor, a *node.Verdict) bool {
	p := &v.pass
	if !p.known() || p.accepted != 0 || p.place() == v.spent || !a.SetPass || s.registry.room(a.Pass.Room) != p.room || a.Pass.Visitor == p.Visitor && millis(a.Pass.Arrival) == millis(p.Arrival) {
		return false
	}
	silent := Epoch().Add(time.Duration(s.now)).UnixMilli() - millis(p.LastPoll)
	return silent <= p.Refresh.Milliseconds()+s.cfg.Room.PlaceKept.Milliseconds()
}

// outlived reports whether the pass that the visitor holds is of an earlier session
// than the present one, or of a place that was good for an earlier one, or of the room
// before. All that a node can tell of it is that it is over.
func (v *visitor) outlived() bool {
	if p := &v.pass; p.accepted == 0 && p.room == v.room {
		return p.place() == v.spent && v.spentBy != v.accepted
	}
	return v.pass.accepted != v.accepted
}

// waited books how long somebody has waited who is let in now.
func (s *sim) waited(v *visitor) {
	s.waits = append(s.waits, wait{came: v.came, in: s.now, queued: v.queued})
	if v.known {
		off := float64(v.said) - float64(s.now-v.asked)/float64(minute)
		s.estimates = append(s.estimates, max(off, -off))
	}
}

// estimated looks at the wait that a visitor is told.
func (s *sim) estimated(v *visitor, m *machine, a *node.Verdict) {
	if a.Admit || !a.Estimate.Known || v.phase != waiting {
		return
	}
	was, is := v.pass.Shown, &a.Estimate
	rose := is.Minutes > int(was.Minutes) || is.P25 > int(was.P25) || is.P75 > int(was.P75)
	// Where nobody changes the limits nothing can be an excuse.
	same := was.Terms == a.Pass.Shown.Terms || !s.changes
	if was.Minutes > 0 && same && rose && !v.behind && millis(v.pass.Arrival) == millis(a.Pass.Arrival) {
		s.violate(EstimateRose, m, fmt.Sprintf("visitor %d was told %d min (%d to %d) and now %d (%d to %d)",
			v.no, was.Minutes, was.P25, was.P75, is.Minutes, is.P25, is.P75))
	}
	if !v.known && v.first {
		v.known, v.said, v.asked = true, float32(a.Estimate.Minutes), s.now
	}
}

// browse is what a visitor does next who is inside.
func (s *sim) browse(v *visitor) {
	pause := float64(s.cfg.Think)
	if v.until == 0 { // the first page
		pause = min(pause, float64(firstPause))
		stay := s.trait(v, theirStay, s.cfg.Stay)
		if v.rest > 0 {
			stay = v.rest
		}
		v.until = s.now + max(1, stay)
	}
	most := int64(idleMost * float64(s.oracle.limits.session))
	v.due = s.now + max(1, min(int64(v.dice.exp(pause)), most))
}

// queue is what a visitor does next who has to wait. A room that rejects tells
// nobody to come again.
func (s *sim) queue(v *visitor, a *node.Verdict) {
	if a.Refresh <= 0 {
		s.f.TurnedAway++
		s.oracle.wait(-1)
		s.depart(v)
		return
	}
	if v.until == 0 && !v.patient {
		v.until = s.now + s.trait(v, theirPatience, s.cfg.Patience)
	}
	v.due = s.now + int64(a.Refresh) + int64(v.dice.unit()*float64(lateTimer))
}
