package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
)

// What operators say to nodes, and what nodes hear of their clocks.

const (
	// sayAgain is when an operator tries again whom no node has answered.
	sayAgain = time.Second
	// clockEvery is how often a node learns how its clock stands to others: often
	// enough that a jump is known within 2 s.
	clockEvery = time.Second
	// clockBound is how far from the others' a clock may be.
	clockBound = 400 * time.Millisecond
)

// say has an operator do what a fault says, or try again later.
func (s *sim) say(i int32) {
	f := s.cfg.Faults[i]
	done := true
	switch f.Kind {
	case Limits:
		done = s.relimit(f)
	case Remake:
		done = s.remake(i, f)
	case Policy:
		done = s.conform(s.hit(f))
	case Declare:
		for _, m := range s.hit(f) {
			done = s.declare(i, m) && done
		}
	}
	if !done {
		s.heap.add(s.now+int64(sayAgain), says, i, 0)
	}
}

// relimit gives the room other limits at the first node of those named that runs.
func (s *sim) relimit(f Fault) bool {
	settings := s.room
	if f.Active > 0 {
		settings.TotalActiveUsers = f.Active
	}
	if f.Rate > 0 {
		settings.NewUsersPerMinute = f.Rate
	}
	if f.Session > 0 {
		settings.SessionDuration = f.Session
	}
	for _, m := range s.hit(f) {
		if !m.answers() {
			continue
		}
		s.driven = m
		settings.Policy = m.goesBy
		if err := m.brain.Configure(settings, m.clock.at(s.now)); errors.Is(err, node.ErrLeaving) {
			continue
		} else if err != nil {
			s.fail(err)
			return true
		}
		s.store(m)
		s.limited(m, limitsOf(&settings))
		settings.Policy = s.cfg.Room.Policy
		s.room = settings
		s.oracle.relimit(&s.room)
		return true
	}
	return false
}

// declare says at one node, at times at two, that what a machine was before its
// disk was lost is dead for good. Of who handed over and is gone it says so, too,
// where that node has not heard of it: the heir may have been lost meanwhile, with
// all who knew. An operator says nothing at a node that has not heard of all that run:
// a mesh in which one joined while it was cut is to be healed first.
func (s *sim) declare(i int32, m *machine) bool {
	draw := keyed(s.cfg.Seed, forOperator, uint64(i), uint64(m.no))
	for len(m.lost) > 0 {
		told, noted := 0, false
		for k := range s.machines {
			o := s.machines[(int(draw%uint64(len(s.machines)))+k)%len(s.machines)]
			if told < 1+int(draw>>32%3/2) && o.answers() && s.hasHeardOfAll(o) && s.declareAt(o, m.lost[0]) {
				o.told = append(o.told, burial{i, m, m.lost[0]})
				s.declareGone(o)
				told++
				noted = noted || o.brain.noted()
			}
		}
		if !noted { // said again later: a crash might undo it
			return false
		}
		m.lost = m.lost[1:]
	}
	return true
}

// burial is what a node was told: that a machine, as it was named, is dead.
type burial struct {
	fault int32 // by which the operator said so
	of    *machine
	name  crdt.NodeID
}

// tellOthers has operators say to others what they have told a node whose disk is lost:
// it may have been the only one to know.
func (s *sim) tellOthers(m *machine) {
	for _, b := range m.told {
		if !slices.Contains(b.of.lost, b.name) {
			b.of.lost = append(b.of.lost, b.name)
			s.heap.add(s.now+int64(sayAgain), says, b.fault, 0)
		}
	}
	m.told = nil
}

// hasHeardOfAll reports whether a node knows all others that have started and are not
// lost.
func (s *sim) hasHeardOfAll(m *machine) bool {
	return !slices.ContainsFunc(s.machines, func(o *machine) bool {
		return o.boot > 0 && !o.wiped && !m.brain.HeardOf(o.id)
	})
}

func (s *sim) declareAt(m *machine, id crdt.NodeID) bool {
	return s.tell(m, fmt.Sprintf("%s is dead", id), func(now time.Time) error { return m.brain.DeclareDead(id, now) })
}

// tell gives a node an operator's order, and reports whether it took it.
func (s *sim) tell(m *machine, what string, order func(now time.Time) error) bool {
	s.driven = m
	err := order(m.clock.at(s.now))
	s.store(m)
	if err == nil {
		s.trace(m, "is told that %s", what)
	}
	return err == nil
}

// declareGone has a node told of those who left for good. It refuses if it knows.
func (s *sim) declareGone(m *machine) {
	for _, o := range s.machines {
		if o.away && o.boot > 0 {
			s.declareAt(m, o.id)
		}
	}
}

// checkClock tells a node how its clock stands to those of the others that run.
func (s *sim) checkClock(m *machine) {
	s.heap.add(s.now+int64(clockEvery), checks, m.no, m.started)
	if !m.runs() {
		return
	}
	var others []int64
	for _, o := range s.machines {
		if o.runs() && o != m && s.mesh.both(int(s.mesh.group[m.no]), int(s.mesh.group[o.no])) {
			others = append(others, o.clock.at(s.now).Sub(m.clock.at(s.now)).Nanoseconds())
		}
	}
	if len(others) == 0 {
		return
	}
	sortTimes(others)
	ahead := -time.Duration(others[len(others)/2])
	s.driven = m
	s.post(m, m.brain.SetClock(ahead.Abs() <= clockBound, ahead, m.clock.at(s.now)))
	s.hand()
	s.store(m)
}
