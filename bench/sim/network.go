package sim

import (
	"math"
	"math/rand/v2"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/replica"
)

// letter is a message on its way.
type letter struct {
	from, to int32 // identities
	boot     uint64
	m        node.Message
	news     news // of limits, that it may tell
}

// traffic is what one node has sent.
type traffic struct{ nearMessages, nearBytes, farMessages, farBytes int64 }

// network carries letters. Each takes its own time, so one may overtake another.
type network struct {
	Network
	rng     *rand.Rand
	letters map[int32]letter // on their way, by number
	posted  int32
	links   map[[2]int32]link // by sites
	lost    int
}

// link is what is wrong between two sites, one way.
type link struct {
	slower int64
	loss   float64
}

func newNetwork(cfg Config) *network {
	return &network{Network: cfg.Network, rng: stream(cfg.Seed, forNetwork), letters: map[int32]letter{}, links: map[[2]int32]link{}}
}

// hold keeps a letter until it arrives.
func (n *network) hold(l letter) int32 {
	n.posted++
	n.letters[n.posted] = l
	return n.posted
}

func (n *network) take(i int32) letter {
	l := n.letters[i]
	delete(n.letters, i)
	return l
}

// travel returns how long a message takes, and whether it arrives.
func (n *network) travel(from, to *machine) (d int64, arrives bool) {
	median, loss := n.Near, n.Loss
	var more link
	if from.siteNo != to.siteNo {
		median = n.Delay
		more = n.links[[2]int32{from.siteNo, to.siteNo}]
	}
	if loss > 0 && n.rng.Float64() < loss || more.loss > 0 && n.rng.Float64() < more.loss {
		return 0, false
	}
	delay := float64(median)
	if n.Jitter > 0 {
		delay *= math.Exp(n.Jitter * n.rng.NormFloat64())
	}
	if n.Reorder > 0 && n.rng.Float64() < n.Reorder {
		delay *= 1 + 4*n.rng.Float64()
	}
	return int64(delay) + more.slower, true
}

// post sends what a node says.
func (s *sim) post(m *machine, out []node.Message) {
	for _, msg := range out {
		to := s.registry.of(msg.To)
		if to < 0 {
			continue
		}
		dest := s.machines[s.registry.ids[to].machine]
		s.count(m, dest, len(msg.Payload))
		if !s.mesh.open(m, dest) {
			s.network.lost++
			continue
		}
		l := letter{m.number, to, m.boot, msg, s.tells(m)}
		s.carry(l, m, dest)
		if s.network.Duplicate > 0 && s.network.rng.Float64() < s.network.Duplicate {
			s.carry(l, m, dest)
		}
	}
}

func (s *sim) count(m, dest *machine, size int) {
	if s.now < 0 || s.through >= 0 {
		return
	}
	if m.siteNo == dest.siteNo {
		m.sent.nearMessages++
		m.sent.nearBytes += int64(size)
	} else {
		m.sent.farMessages++
		m.sent.farBytes += int64(size)
	}
}

func (s *sim) carry(l letter, from, to *machine) {
	d, ok := s.network.travel(from, to)
	if !ok {
		s.network.lost++
		return
	}
	s.heap.add(s.now+d, delivered, s.network.hold(l), 0)
}

// deliver brings a letter to whoever has its address now.
func (s *sim) deliver(l letter) {
	m := s.machines[s.registry.ids[l.to].machine]
	switch {
	case m.brain == nil || m.number != l.to:
		s.network.lost++
	case m.paused && len(m.inbox) >= inboxSize:
		s.network.lost++
	case m.paused:
		m.inbox = append(m.inbox, l)
	default:
		s.receive(m, l)
	}
}

func (s *sim) receive(m *machine, l letter) {
	s.driven = m
	if s.follows {
		s.force.heard(m.no, l.news)
	}
	from := s.registry.ids[l.from]
	sender := s.machines[from.machine]
	peer := replica.Peer{ID: from.id, Boot: l.boot, Site: from.site, Ready: sender.brain != nil && sender.brain.Ready()}
	out, err := m.brain.Receive(peer, l.m.Kind, l.m.Payload, m.clock.at(s.now))
	if err != nil {
		s.f.MessagesRefused++
	}
	s.post(m, out)
	s.note(m)
	s.store(m)
}
