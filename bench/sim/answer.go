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
	if v.phase == asking && v.first {
		s.oracle.arrived(!a.Admit)
		if !a.Admit {
			s.f.Queued++
		}
	}
	if a.Admit {
		s.inFact(v, m, a)
	} else {
		s.f.Refused++
		s.outInFact(v, m, a)
	}
	if s.cfg.Lost > 0 && v.dice.unit() < s.cfg.Lost {
		s.f.Unanswered++
		v.due = s.now + retryAfter
		s.plan(i)
		return
	}
	s.estimated(v, m, a)
	if a.SetPass {
		v.pass = s.registry.pack(a.Pass)
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
	accepted, anchor := millis(a.Pass.AcceptedAt), s.registry.of(a.Pass.Ticket.Anchor)+1
	switch {
	case v.phase == asking || v.phase == waiting:
		s.letIn(v, m, accepted, anchor)
	case accepted != v.accepted && !v.active:
		// The session was over, and another place free at once.
		s.f.Requeued++
		v.came, v.queued, v.first = s.now, false, false
		s.letIn(v, m, accepted, anchor)
	case accepted != v.accepted:
		s.twice(v, m, accepted, anchor)
	default:
		if anchor != v.anchor {
			s.f.Reanchored++
			v.anchor = anchor
		}
		if !v.active {
			s.f.Revived++
			v.active = true
			s.oracle.enter()
			s.bySite[v.site]++
		}
	}
	if !s.oracle.limits.fixed || v.ends < s.now {
		v.ends = s.now + int64(s.oracle.limits.session)
	}
}

// letIn counts a visitor who has been let in from outside.
func (s *sim) letIn(v *visitor, m *machine, accepted int64, anchor int32) {
	if v.active {
		// This visitor has been inside by another ticket since the last turn.
		s.oracle.leave()
		s.bySite[v.site]--
	}
	if v.phase == waiting {
		s.oracle.wait(-1)
	}
	if v.first {
		s.f.LetIn++
		s.waited(v)
	}
	v.phase, v.active, v.until = inside, true, 0
	v.accepted, v.anchor, v.by, v.started, v.site = accepted, anchor, m.no, m.started, m.siteNo
	v.ends = s.now + int64(s.oracle.limits.session)
	s.oracle.admit()
	s.bySite[v.site]++
}

// twice counts a second ticket for a place that had one. A node can only know by
// the pass: of a visitor who never got one it cannot.
func (s *sim) twice(v *visitor, m *machine, accepted int64, anchor int32) {
	s.f.Doubled++
	if v.pass.known() && v.by == m.no && v.started == m.started {
		s.violate(LetInTwice, m, fmt.Sprintf("visitor %x has a second ticket %v after the first", v.pass.visitor[:4], time.Duration(accepted-v.accepted)*time.Millisecond))
	}
	v.accepted, v.anchor, v.by, v.started = accepted, anchor, m.no, m.started
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
			if !s.wildClocks {
				s.violate(PlaceLost, m, fmt.Sprintf("visitor %x came %v ago and has to begin again", v.pass.visitor[:4], time.Duration(s.now-v.came)))
			}
		}
	case inside:
		if v.active {
			s.f.SessionsLost++
			v.active = false
			s.oracle.leave()
			s.bySite[v.site]--
		}
		s.f.Requeued++
		s.oracle.wait(1)
		v.phase, v.queued, v.first, v.known = waiting, true, false, false
		v.came, v.until = s.now, 0
	}
}

// lostPlace reports whether a visitor who waits has another place than before,
// and has done nothing to lose the old one. Whoever still has the pass of a
// session that is over, since the answer that said so was lost, has no place yet.
func (s *sim) lostPlace(v *visitor, a *node.Verdict) bool {
	p := &v.pass
	if !p.known() || p.accepted != 0 || !a.SetPass || a.Pass.Visitor == p.visitor && millis(a.Pass.Arrival) == p.arrival {
		return false
	}
	silent := Epoch().Add(time.Duration(s.now)).UnixMilli() - p.lastPoll
	return silent <= int64(p.refresh)+s.cfg.Room.PlaceKept.Milliseconds()
}

// waited books how long somebody has waited who is let in now.
func (s *sim) waited(v *visitor) {
	s.waits = append(s.waits, wait{came: v.came, in: s.now, queued: v.queued})
	if v.known {
		off := float64(v.said) - float64(s.now-v.asked)/float64(minute)
		s.estimates.RecordValue(int64(max(off, -off)*estimateUnit + 0.5))
	}
}

// estimated looks at the wait that a visitor is told.
func (s *sim) estimated(v *visitor, m *machine, a *node.Verdict) {
	if a.Admit || !a.Estimate.Known || v.phase != waiting {
		return
	}
	was, is := v.pass.shown, &a.Estimate
	rose := is.Minutes > int(was.Minutes) || is.P25 > int(was.P25) || is.P75 > int(was.P75)
	// Without events nothing can be an excuse.
	same := was.Terms == a.Pass.Shown.Terms || len(s.cfg.Room.Events) == 0
	if was.Minutes > 0 && same && rose && v.pass.arrival == millis(a.Pass.Arrival) {
		s.violate(EstimateRose, m, fmt.Sprintf("visitor %x was told %d min (%d to %d) and now %d (%d to %d)",
			v.pass.visitor[:4], was.Minutes, was.P25, was.P75, is.Minutes, is.P25, is.P75))
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
		stay := int64(s.cfg.Stay)
		if !s.cfg.FixedStay {
			stay = s.trait(v, theirStay, s.cfg.Stay)
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
