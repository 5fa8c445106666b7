package sim

import (
	"math"
	"slices"
	"time"
)

// What faults do to a running mesh.

// planFaults puts the beginnings of all faults into the heap. The state that a
// crashed node finds on its disk was written at a moment of the second before.
func (s *sim) planFaults() {
	for i, f := range s.cfg.Faults {
		at := int64(f.From)
		s.heap.add(at, begins, int32(i), 0)
		if f.Kind == Crash {
			for _, m := range s.hit(f) {
				before := int64(keyed(s.cfg.Seed, forNodes, uint64(i), uint64(m.no)) % uint64(time.Second))
				s.heap.add(at-before, saves, m.no, 0)
			}
		}
		s.quietFrom = max(s.quietFrom, at+int64(f.For))
	}
}

// hit returns the nodes that a fault is about.
func (s *sim) hit(f Fault) []*machine {
	first := (f.Site - 1) * s.cfg.Nodes
	if f.Node > 0 {
		return s.machines[first+f.Node-1 : first+f.Node]
	}
	return s.machines[first : first+s.cfg.Nodes]
}

func (s *sim) begin(i int32) {
	f := s.cfg.Faults[i]
	s.trace(nil, "begins: %+v", f)
	if f.For > 0 {
		s.heap.add(s.now+int64(f.For), heals, i, 0)
	}
	switch f.Kind {
	case Partition:
		s.partition(f, 1)
	case Link:
		s.slow(f, 1)
	case Limits, Declare, Remake:
		s.say(i)
	case Policy:
		s.switchTo(i, f.To)
	default:
		for _, m := range s.hit(f) {
			s.beginAt(m, f)
		}
	}
	s.changed()
}

func (s *sim) beginAt(m *machine, f Fault) {
	switch f.Kind {
	case Crash, Wipe, Leave:
		if m.brain == nil {
			return
		}
		if f.Kind == Leave {
			s.save(m)
		}
		s.stop(m, f.Kind == Leave)
		if f.Kind == Wipe {
			m.wiped, m.leaving = true, false
			m.lost = append(m.lost, m.id)
			s.tellOthers(m)
		}
	case HandOver:
		m.leaving = !m.away
	case Join:
		if m.away && m.boot == 0 {
			m.away = false
			s.start(m)
		}
	case Pause:
		m.paused = m.brain != nil
		if m.paused {
			m.seen.left = false
			s.standUp(m, false)
		}
	case Skew:
		m.clock.wall += int64(f.By)
	case DiskFull, DiskFail, DiskSlow:
		s.ail(m, f, 1)
	}
}

// stop ends a node's process.
func (s *sim) stop(m *machine, inOrder bool) {
	m.brain, m.inbox, m.paused, m.unsaid = nil, nil, false, nil
	if s.follows {
		s.force.dies(m.no)
	}
	m.disk.cut()
	m.seen.left = inOrder
	s.standUp(m, false)
}

// handOver has a node look for an heir until there is one, and ends it once that
// has everything.
func (s *sim) handOver(m *machine) {
	if !m.leaving || !m.brain.Ready() {
		return
	}
	s.driven = m
	if m.brain.Leave(m.clock.at(s.now)) != nil {
		return // nobody is there: later
	}
	s.store(m)
	if m.brain.Left() {
		s.save(m)
		if s.follows {
			s.force.leaves(m.no)
		}
		s.stop(m, true)
		m.away, m.leaving = true, false
		s.changed()
	}
}

func (s *sim) heal(i int32) {
	f := s.cfg.Faults[i]
	s.trace(nil, "ends: %+v", f)
	switch f.Kind {
	case Partition:
		s.partition(f, -1)
	case Link:
		s.slow(f, -1)
	case Policy:
		s.switchTo(i, s.cfg.Room.Policy)
	default:
		for _, m := range s.hit(f) {
			s.healAt(m, f)
		}
	}
	s.changed()
}

func (s *sim) healAt(m *machine, f Fault) {
	switch f.Kind {
	case Crash, Leave:
		if m.brain == nil && !m.away && !m.wiped {
			s.start(m)
		}
	case Wipe:
		if m.wiped {
			s.wipe(m)
			s.start(m)
		}
	case HandOver:
		if m.leaving && m.brain != nil {
			s.stop(m, false) // and if it starts again it goes on leaving
		}
	case Pause:
		if m.paused {
			s.resume(m)
		}
	case Skew:
		m.clock.wall -= int64(f.By)
	case DiskFull, DiskFail, DiskSlow:
		s.ail(m, f, -1)
	}
}

// partition closes the ways that a fault is about (by is 1), or opens them.
func (s *sim) partition(f Fault, by int) {
	from := s.groupsOf(int32(f.Site - 1))
	if f.Node > 0 {
		from = []int32{s.mesh.alone(s.hit(f)[0])}
	}
	for o := range int32(len(s.mesh.ways)) {
		if slices.Contains(from, o) || f.Peer > 0 && !slices.Contains(s.groupsOf(int32(f.Peer-1)), o) {
			continue
		}
		for _, g := range from {
			s.mesh.cut(g, o, by)
			if !f.OneWay {
				s.mesh.cut(o, g, by)
			}
		}
	}
}

// groupsOf returns the group of a site, and those of its nodes that have one of their own.
func (s *sim) groupsOf(site int32) []int32 {
	groups := []int32{site}
	for _, m := range s.machines {
		if g := s.mesh.group[m.no]; m.siteNo == site && g != site {
			groups = append(groups, g)
		}
	}
	return groups
}

func (s *sim) slow(f Fault, by float64) {
	site := int32(f.Site - 1)
	for o := range int32(s.cfg.Sites) {
		if o == site || f.Peer > 0 && o != int32(f.Peer-1) {
			continue
		}
		for _, ends := range [][2]int32{{site, o}, {o, site}} {
			if f.OneWay && ends[0] != site {
				continue
			}
			l := s.network.links[ends]
			l.slower += int64(by) * int64(f.By)
			l.loss = min(1, max(0, l.loss+by*f.Loss))
			s.network.links[ends] = l
		}
	}
}

// start starts a node: at first, after a crash, after a leave.
func (s *sim) start(m *machine) {
	m.boot++
	m.started++
	m.clock.offset = m.clock.wall
	s.driven = m
	configured := s.cfg.Room
	m.goesBy = m.policy
	configured.Policy = m.policy
	b, err := s.newBrain(birth{
		identity: m.identity, room: configured, seed: s.cfg.Seed, state: m.disk.state, stored: m.disk.stored(),
		founds: m.number == 0 || m.founds, leaveOut: s.cfg.LeaveOut,
	}, m.clock.at(s.now))
	if err != nil {
		s.fail(err)
		return
	}
	m.brain, m.joined, m.stale = b, false, 0
	if s.follows {
		s.force.starts(m.no)
	}
	s.trace(m, "starts as %s, its clock is ahead by %v", m.id, time.Duration(m.clock.offset))
	m.seen.booted, m.seen.readyAt = s.now, math.MaxInt64
	s.standUp(m, true)
	if s.farClocks { // first: a node asks nobody before it knows how its clock stands to theirs
		s.heap.add(s.now, checks, m.no, m.started)
	}
	s.heap.add(s.now+s.stagger(m), ticks, m.no, m.started)
	s.store(m)
}

// wipe gives a node that has lost its disk a new name.
func (s *sim) wipe(m *machine) {
	m.wipes++
	m.wiped = false
	s.forgets(m)
	old := m.disk
	m.identity = s.registry.add(s.cfg.Seed, m, m.wipes)
	m.disk = newDisk(s.cfg.Seed, m.number)
	m.disk.full, m.disk.failing, m.disk.slower = old.full, old.failing, old.slower // what ails it does so still
	s.mesh.sort()
}

func (s *sim) standUp(m *machine, up bool) {
	if up != m.seen.up {
		if up {
			m.seen.fell, m.seen.came = m.seen.since, s.now
		}
		m.seen.up, m.seen.since = up, turned(m.seen.since, s.now, up)
	}
}

// resume lets a node go on that was stopped. What has piled up in its inbox comes
// first.
func (s *sim) resume(m *machine) {
	m.paused = false
	s.standUp(m, true)
	inbox := m.inbox
	m.inbox = nil
	if m.disk.step == diskEnded {
		s.written(m)
	}
	for _, l := range inbox {
		s.receive(m, l)
	}
	s.heap.add(s.now, ticks, m.no, m.started)
}

// save writes down the counts that a node would find after a crash. Of one that is paused
// that is what it wrote before, which is what it knows still.
func (s *sim) save(m *machine) {
	if m.brain == nil {
		return
	}
	state, err := m.brain.snapshot()
	if err != nil {
		s.fail(err)
		return
	}
	m.disk.state = state
}
