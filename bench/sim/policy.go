package sim

import (
	"errors"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// How operators switch the limit off and on, by the policy. While some node does not go by
// rights, the limit is not promised; and who was let in until then is inside by no right, as
// docs/limit.md says: they are counted apart for as long as their sessions last.

// switchTo has operators give the room another policy at the nodes of a fault. It is in the
// settings that these start with from now on.
func (s *sim) switchTo(i int32, policy room.Policy) {
	for _, m := range s.hit(s.cfg.Faults[i]) {
		m.policy = policy
	}
	s.countSwitched()
	s.say(i)
}

// conform has nodes told of the policy that operators want there, and reports whether all
// that run have been.
func (s *sim) conform(nodes []*machine) bool {
	done := true
	for _, m := range nodes {
		if m.brain == nil || m.goesBy == m.policy {
			continue
		}
		if !m.answers() {
			done = false
			continue
		}
		settings := s.room
		settings.Policy = m.policy
		s.driven = m
		if err := m.brain.Configure(settings, m.clock.at(s.now)); errors.Is(err, node.ErrLeaving) {
			done = false
			continue
		} else if err != nil {
			s.fail(err)
			return true
		}
		m.goesBy = m.policy
		s.store(m)
		s.limited(m, limitsOf(&settings))
		s.trace(m, "goes by the policy %s", m.policy)
	}
	s.countSwitched()
	return done
}

func (s *sim) countSwitched() {
	s.switched = 0
	for _, m := range s.machines {
		if own := s.cfg.Room.Policy; m.policy != own || m.brain != nil && m.goesBy != own {
			s.switched++
		}
	}
	if s.switched > 0 {
		s.freeUntil = s.now + lingers
	}
}

// unbound reports whether the limit does not bind everywhere.
func (s *sim) unbound() bool { return s.switched > 0 || s.now < s.freeUntil }
