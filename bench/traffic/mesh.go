package traffic

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ropeline/ropeline/bench/virtual"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// shape says what a mesh is like, and what goes on in it.
type shape struct {
	Sites  int
	Nodes  int         // in each site
	Rooms  int         // kept by all
	Policy room.Policy // of all rooms

	// Visitors is how many come to each room in each site, per second, and are let in; they
	// leave a session later. They come at random times to random nodes.
	Visitors float64
	Full     bool // rooms are so small and full that all news goes out at once

	// Before and Span are how long the mesh runs before and while bytes are counted. Counts of
	// ticks are kept for ten minutes: before that a mesh says less than later.
	Before, Span time.Duration
}

const (
	session = time.Minute      // visitors stay for so long
	again   = 20 * time.Second // after which a visitor who waits asks again
)

// fullAt and fullLimit make a room of which all is told at once: nine tenths full, and so
// small that each visitor is a part of it worth telling.
const (
	fullAt    = 0.9
	fullLimit = 99
)

// traffic is what one node sends, per second: messages, and the bytes of their payloads.
type traffic struct {
	Messages, Near, Far float64 // bytes to nodes of its site, and of others
	Counts              float64 // bytes of both, what it says of counts
}

// plus adds what another node sends, by times as much.
func (t traffic) plus(by float64, o traffic) traffic {
	return traffic{t.Messages + by*o.Messages, t.Near + by*o.Near, t.Far + by*o.Far, t.Counts + by*o.Counts}
}

// countsKind is the kind of messages of counts, by the number that goes over the wire.
const countsKind = 1

// mesh is nodes in virtual time, and their visitors.
type mesh struct {
	*virtual.Mesh
	shape shape
	rng   *rand.Rand
	sent  []traffic // by each node
}

// newMesh returns a mesh whose nodes have found each other.
func newMesh(s shape, seed uint64) (*mesh, error) {
	m := &mesh{shape: s, Mesh: virtual.New(), rng: rand.New(rand.NewPCG(seed, 1)), sent: make([]traffic, s.Sites*s.Nodes)}
	m.Sent = func(from, to *virtual.Node, msg node.Message) {
		t, size := &m.sent[from.No], float64(len(msg.Payload))
		t.Messages++
		if from.Site == to.Site {
			t.Near += size
		} else {
			t.Far += size
		}
		if msg.Kind == countsKind {
			t.Counts += size
		}
	}
	for i := range m.sent {
		self := crdt.Incarnation{Boot: 1}
		binary.BigEndian.PutUint64(self.Node[:], m.rng.Uint64())
		binary.BigEndian.PutUint64(self.Node[8:], m.rng.Uint64())
		site, rng := fmt.Sprintf("site-%03d", i/s.Nodes), rand.New(rand.NewPCG(seed, uint64(i)+2))
		core, err := node.NewCore(node.CoreConfig{
			Self: self, Site: site, Rooms: rooms(s), OwnerKey: []byte("key"), Rand: rng,
			Entropy: rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), byte(seed)}), Found: i == 0,
		})
		if err != nil {
			return nil, err
		}
		m.Add(self, site, core, time.Duration(m.rng.Float64()*float64(time.Second))) // so that no two keep time
	}
	return m, m.Settle()
}

// rooms returns the rooms of a mesh.
func rooms(s shape) []room.Settings {
	all := make([]room.Settings, s.Rooms)
	for i := range all {
		all[i] = room.Settings{
			ID: crdt.RoomID{1, byte(i >> 8), byte(i)}, Name: fmt.Sprint("room-", i), Path: roomPath(i), Policy: s.Policy,
			TotalActiveUsers: 1 << 20, NewUsersPerMinute: 1 << 20, SessionDuration: session, DisableSessionRenewal: true,
		}
		if s.Full {
			all[i].TotalActiveUsers = fullLimit
		}
		all[i] = all[i].WithDefaults()
	}
	return all
}

func roomPath(i int) string { return fmt.Sprintf("/%d", i) }

// pause returns how long it takes until the next visitor comes.
func (m *mesh) pause() time.Duration {
	rate := m.shape.Visitors * float64(m.shape.Rooms*m.shape.Sites)
	return time.Duration(m.rng.ExpFloat64() / rate * float64(time.Second))
}

// come has a visitor ask a node, and the next one later.
func (m *mesh) come() {
	m.After(m.pause(), m.come)
	m.ask(m.Nodes[m.rng.IntN(len(m.Nodes))], m.rng.IntN(m.shape.Rooms), node.Pass{}, false)
}

// ask has a node decide about a request, and about the next one of who has to wait.
func (m *mesh) ask(n *virtual.Node, room int, pass node.Pass, known bool) {
	answered := func(v node.Verdict) {
		if !v.Admit {
			m.After(again, func() { m.ask(n, room, v.Pass, true) })
		}
	}
	if v, ok := n.Core.Route("any", roomPath(room)).Begin(pass, known, m.Now, answered); ok {
		answered(v)
		return
	}
	m.Flush(n)
}

// result is what nodes of a mesh send.
type result struct {
	Mean  traffic // of all nodes
	Relay traffic // of those that say most to other sites, one in each
}

// simulate runs a mesh and counts what its nodes send.
func simulate(s shape, seed uint64) (r result, err error) {
	m, err := newMesh(s, seed)
	if err != nil {
		return r, err
	}
	if s.Visitors > 0 {
		m.After(m.pause(), m.come)
	}
	m.Run(s.Before)
	clear(m.sent)
	m.Run(s.Span)
	per := 1 / s.Span.Seconds()
	for site := range s.Sites {
		most := traffic{Far: -1}
		for _, sent := range m.sent[site*s.Nodes : (site+1)*s.Nodes] {
			r.Mean = r.Mean.plus(per/float64(len(m.sent)), sent)
			if sent.Far > most.Far {
				most = sent
			}
		}
		r.Relay = r.Relay.plus(per/float64(s.Sites), most)
	}
	return r, nil
}
