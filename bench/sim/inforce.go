package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// What the limits in force follow from in a run.

// newLimits begins with those of the room. Where nobody changes any, there is nothing to
// keep book of.
func (s *sim) newLimits() {
	s.follows = changesOf(s.cfg.Faults) > 0
	n := 1
	if s.follows {
		n = len(s.machines)
	}
	s.force = newForce(n, &s.cfg.Room, -int64(warmUp))
	s.force.takes += repeats(s.cfg.Network)
	s.parted = s.force.takes > spreads
	if !s.follows {
		s.force.meet([]int32{0}, func(int32) bool { return false })
	}
}

// changesOf returns how many changes of limits faults are at most.
func changesOf(faults []Fault) (n int) {
	for _, f := range faults {
		switch f.Kind {
		case Limits, Remake:
			n++
		case Policy: // each of a site says the limits when it is switched back
			n += 4
		}
	}
	return n
}

// repeats is how much longer news takes where messages are lost or late: nodes say again
// after a second what was not acknowledged, until it is next to certain to have come.
func repeats(n Network) int64 {
	const sure = 1e-6
	in := func(median time.Duration) float64 {
		switch {
		case median <= 0:
			return 1
		case n.Jitter == 0 && median < time.Second:
			return 1
		case n.Jitter == 0:
			return 0
		}
		x := math.Log(float64(time.Second)/float64(median)) / n.Jitter
		return 0.5 * math.Erfc(-x/math.Sqrt2)
	}
	median := max(n.Delay, n.Near)
	late := 1 - (1-n.Loss)*((1-n.Reorder)*in(median)+n.Reorder*in(3*median))
	if late < sure {
		return 0
	}
	return int64(time.Second) * int64(math.Ceil(math.Log(sure)/math.Log(min(late, 0.999)))-1)
}

// reaches reports whether news passes between two groups as it should, in both directions.
func (s *sim) reaches(a, b int, siteOf []int32) bool {
	x, y := siteOf[a], siteOf[b]
	if !s.mesh.both(a, b) || x == y {
		return s.mesh.both(a, b)
	}
	there, back := s.network.links[[2]int32{x, y}], s.network.links[[2]int32{y, x}]
	return there == link{} && back == link{}
}

// regroup tells who reaches whom from now on.
func (s *sim) regroup() {
	if !s.follows {
		return
	}
	of := make([]int32, len(s.mesh.ways))
	for g := range of {
		of[g] = -1
	}
	lives, siteOf := make([]bool, len(of)), make([]int32, len(of))
	for _, m := range s.machines {
		g := s.mesh.group[m.no]
		lives[g], siteOf[g] = lives[g] || m.answers(), m.siteNo
	}
	n := int32(0)
	for g := range of {
		if !lives[g] || of[g] >= 0 {
			continue
		}
		of[g] = n
		for reached := []int{g}; len(reached) > 0; {
			at := reached[0]
			reached = reached[1:]
			for o := range of {
				if lives[o] && of[o] < 0 && s.reaches(at, o, siteOf) {
					of[o] = n
					reached = append(reached, o)
				}
			}
		}
		n++
	}
	s.parted = s.parted || n > 1
	islands := make([]int32, len(s.machines))
	for k, m := range s.machines {
		islands[k] = -1
		if s.parted = s.parted || m.paused; m.answers() {
			islands[k] = of[s.mesh.group[m.no]]
		}
	}
	s.force.meet(islands, func(k int32) bool { return s.machines[k].seen.left })
}

// limited notes that an operator has given the room limits at a node.
func (s *sim) limited(m *machine, limit ticket.Amount) {
	if s.follows && m.goesBy == room.Escrow {
		m.unsaid = append(m.unsaid, s.force.say(m.no, s.registry.room(m.brain.rights().room), limit))
	}
}

// forgets notes that a node begins without having heard of anything.
func (s *sim) forgets(m *machine) {
	if s.follows {
		s.force.forgets(m.no)
	}
}

// tells returns what a message of a node may tell of limits.
func (s *sim) tells(m *machine) news {
	if !s.follows {
		return 0
	}
	return s.force.carries(m.no)
}

// ail begins a fault of a disk (by is 1), or ends it.
func (s *sim) ail(m *machine, f Fault, by int) {
	m.disk.worse(f, by)
	if s.follows {
		s.force.ails(m.no, m.disk.full+m.disk.failing > 0 || m.disk.slower > 0)
	}
}

// confirm has operators told of what is on the disk of a node.
func (s *sim) confirm(m *machine) {
	if len(m.unsaid) == 0 || !m.brain.noted() {
		return
	}
	for _, c := range m.unsaid {
		s.force.confirm(m.no, c)
	}
	m.unsaid = nil
}

// checkKnown sees to it that a node goes by the limits that it has to know. What it goes
// by is asked for that alone, and for nothing else.
func (s *sim) checkKnown(m *machine) {
	if !s.rights.strict || !s.follows || s.unbound() || !m.answers() || int(m.number) >= len(s.rights.last) {
		return
	}
	is := &s.rights.last[m.number]
	if is.limit.IsZero() || is.retired {
		return
	}
	ok, may := s.force.allows(m.no, s.registry.room(is.room), is.limit)
	if ok {
		m.stale = 0
		return
	}
	// With the tick after a pause it looks at what an event says first.
	if m.stale++; m.stale == 2 {
		s.violate(LimitUnknown, m, fmt.Sprintf("goes by limits of %v, but has to know one of %v by now", is.limit, may))
	}
}

// made notes that a room is made, by a node that was started for that and goes by the
// limits that it was configured with. It mints later, if the room before was deleted just now.
// If the disks of all who had heard of it are lost, another node may make it once more.
func (s *sim) made(m *machine, room uint8) {
	if !s.follows || room == 0 || s.rights.account(room).made && !s.force.forgotten(room) {
		return
	}
	s.rights.account(room).made = true
	m.unsaid = append(m.unsaid, s.force.creates(m.no, room, limitsOf(&s.cfg.Room)))
}

// bound are the greatest limits in force in a room at any time from some time on.
func (s *sim) bound(room uint8, from int64) ticket.Amount {
	if !s.follows {
		room = 0
	}
	return s.force.most(room, from)
}
