package sim

import (
	"fmt"
	"time"
)

// When a run is over, and what must hold then.

// stuckAfter is how long nobody may be let in, with everything in order and
// somebody waiting, before that counts as never.
func (s *sim) stuckAfter() int64 {
	return int64(max(15*time.Minute, 3*s.cfg.Room.SessionDuration+2*time.Minute))
}

// fading is how long counts may outlive what they count: those of dead nodes last
// for a session after these were last heard of, and a node that starts again
// takes them over for one more. Of a room that it does not keep, such as one that was
// made again, a node knows no session, and takes that of crdt.Fading.
func (s *sim) fading() int64 {
	session := s.longestSession()
	for _, f := range s.cfg.Faults {
		if f.Kind == Remake {
			session = max(session, unknownSession)
		}
	}
	return int64(3*session + 3*s.cfg.Room.RefreshInterval + 2*time.Minute)
}

// unknownSession is the default of crdt.Fading.
const unknownSession = 5 * time.Minute

func (s *sim) longestSession() time.Duration {
	longest := s.cfg.Room.SessionDuration
	for _, e := range s.cfg.Room.Events {
		if e.SessionDuration != nil {
			longest = max(longest, *e.SessionDuration)
		}
	}
	for _, f := range s.cfg.Faults {
		longest = max(longest, f.Session)
	}
	return longest
}

// checkEnd ends the run if all is done, or if it cannot be.
func (s *sim) checkEnd() {
	if s.arrivalsLeft {
		return
	}
	if s.people.here == 0 {
		if s.through < 0 {
			s.through = s.now
		}
		s.checkCounts()
		return
	}
	s.checkStuck()
	if s.cfg.Drain > 0 && s.now >= int64(s.cfg.Length+s.cfg.Drain) {
		s.through, s.ended = s.now, true
	}
}

// checkStuck ends a run in which nobody is let in any more.
func (s *sim) checkStuck() {
	o := s.oracle
	since := max(o.lastIn, int64(s.cfg.Length), s.quietFrom)
	if s.now-since < s.stuckAfter() || len(o.turns) > 0 || o.waiting+s.people.asking() == 0 {
		return
	}
	up := false
	for _, m := range s.machines {
		up = up || m.answers()
	}
	if up && o.limits.open {
		if s.now-o.lastClosed < s.stuckAfter() {
			return
		}
		s.violate(NeverLetIn, nil, fmt.Sprintf("%d visitors wait, %d have never had an answer, %d are active, and nobody has been let in for %v", o.waiting, s.people.asking(), o.active, time.Duration(s.now-o.lastIn).Round(time.Second)))
	}
	s.through, s.ended = s.now, true
}

// checkCounts ends the run once every node counts nobody any more, or should.
func (s *sim) checkCounts() {
	if s.oracle.active > 0 || s.now < s.quietFrom {
		return
	}
	clear := true
	for _, m := range s.machines {
		if m.runs() && m.brain.Ready() {
			active, waits := m.brain.seen()
			clear = clear && active == 0 && waits == 0
		} else if m.runs() {
			clear = false
		}
	}
	kind, text := s.unsettled()
	clear = clear && kind == ""
	s.ended = clear
	if s.quiet == 0 {
		s.quiet = s.now
	}
	if clear || s.now-s.quiet < s.fading() {
		return
	}
	s.ended = true
	if kind != "" {
		s.violate(kind, nil, text)
	}
	for _, m := range s.machines {
		switch {
		case !m.runs():
		case !m.brain.Ready():
			s.violate(NeverReady, m, "started and did not get ready")
		default:
			if active, waits := m.brain.seen(); active != 0 || waits != 0 {
				s.violate(CountsRemain, m, fmt.Sprintf("counts %d active and %d waiting %v after the last one left", active, waits, time.Duration(s.now-s.quiet).Round(time.Second)))
			}
		}
	}
}

// endEvery is how often it is looked whether a run is over.
const endEvery = 10 * time.Second

// look sees whether the run is over.
func (s *sim) look() {
	if s.watch != nil {
		s.watch(s)
	}
	s.checkEnd()
	s.heap.add(s.now+int64(endEvery), looks, 0, 0)
}
