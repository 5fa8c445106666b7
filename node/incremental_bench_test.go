package node

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// largeMesh is one node of a mesh of the documented size: 1,000 rooms that operators change while
// nodes run, and 100 nodes that have a ledger in each.
type largeMesh struct {
	core    *Core
	now     time.Time
	clocks  map[crdt.NodeID]*crdt.Clock
	longest time.Duration // step of the loop
}

func newLargeMesh(tb testing.TB, rooms, nodes int) *largeMesh {
	tb.Helper()
	all := openRooms(rooms)
	for i := range all {
		all[i].Policy, all[i].CookieSuffix = room.Escrow, all[i].Name[4:]
	}
	c, err := NewCore(CoreConfig{
		Self: crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 1}, Site: "a", Rooms: all, Catalog: &Cataloging{},
		OwnerKey: []byte("key"), Rand: rand.New(rand.NewPCG(1, 1)), Found: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	m := &largeMesh{core: c, now: noon, clocks: map[crdt.NodeID]*crdt.Clock{}}
	c.SetPeers(nil, m.now)
	m.run(time.Second)
	for n := 2; n <= nodes; n++ {
		id := crdt.NodeID{byte(n)}
		m.hear(tb, id, nodeKey(factNode, id), []byte("b"))
		m.hear(tb, id, nodeKey(factName, id), fmt.Append(nil, "b", n))
		for _, r := range all {
			m.hear(tb, id, roomNodeKey(factTold, r.ID, id), said{limits: limitsOf(&r), session: r.SessionDuration}.encode())
		}
	}
	var peers []replica.Peer
	for id := range m.clocks {
		peers = append(peers, replica.Peer{ID: id, Boot: 1, Site: "b", Ready: true})
	}
	slices.SortFunc(peers, func(a, b replica.Peer) int { return compareNodes(a.ID, b.ID) })
	c.SetPeers(peers, m.now)
	m.run(5 * time.Second)
	return m
}

// hear has the node hear a fact of another one.
func (m *largeMesh) hear(tb testing.TB, from crdt.NodeID, key string, value []byte) {
	tb.Helper()
	if m.clocks[from] == nil {
		m.clocks[from] = new(crdt.Clock)
	}
	if !m.core.replica.Take(key, value, m.clocks[from].Now(m.now, from), m.now) {
		tb.Fatalf("%s is not taken", key)
	}
}

// run lets time pass, and notes how long the longest step of the loop took.
func (m *largeMesh) run(d time.Duration) {
	for end := m.now.Add(d); m.now.Before(end); {
		m.now = m.now.Add(tickInterval)
		m.step(func() { m.core.Tick(m.now) })
		for written := true; written; {
			m.step(func() {
				if written = m.core.Writes() != nil; written {
					m.core.Written(nil, m.now)
				}
			})
		}
	}
	m.step(func() { m.core.AppendSnapshot(nil) })
}

func (m *largeMesh) step(do func()) {
	start := time.Now()
	do()
	m.longest = max(m.longest, time.Since(start))
}

// BenchmarkOneChange measures the longest step of the loop when one thing has changed in a large mesh.
func BenchmarkOneChange(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(m *largeMesh, i int)
	}{
		{"nothing", func(*largeMesh, int) {}},
		{"told", func(m *largeMesh, i int) {
			r := m.core.order[i%len(m.core.order)]
			m.hear(b, crdt.NodeID{2}, roomNodeKey(factTold, r.id, crdt.NodeID{2}), said{session: time.Duration(i+1) * time.Second}.encode())
		}},
		{"minted", func(m *largeMesh, i int) {
			r := m.core.order[i%len(m.core.order)]
			m.hear(b, crdt.NodeID{2}, roomNodeKey(factMinted, r.id, crdt.NodeID{2}), encodeAmount(ticket.Amount{Places: int64(i + 1), Rate: 1}))
		}},
		{"site", func(m *largeMesh, i int) {
			m.hear(b, crdt.NodeID{2}, nodeKey(factNode, crdt.NodeID{2}), fmt.Append(nil, "b", i))
		}},
		{"node", func(m *largeMesh, i int) {
			id := crdt.NodeID{3, byte(i >> 8), byte(i)}
			m.hear(b, id, nodeKey(factNode, id), []byte("b"))
			for _, r := range m.core.order {
				m.hear(b, id, roomNodeKey(factTold, r.id, id), said{session: time.Minute}.encode())
			}
		}},
		{"patch", func(m *largeMesh, i int) {
			id := m.core.order[i%len(m.core.order)].id
			err := m.core.Edit(func(c *catalog.Catalog) ([]catalog.Write, error) {
				is := c.Room(id).Clone()
				is.Settings.TotalActiveUsers = 1<<20 - 1 - i
				return c.Writes(c.Room(id), is), c.Check(is, nil)
			}, m.now)
			if err != nil {
				b.Fatal(err)
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := newLargeMesh(b, 1000, 100)
			m.longest = 0
			i := 0
			for b.Loop() {
				m.step(func() { c.change(m, i) })
				m.run(time.Second)
				i++
			}
			b.ReportMetric(float64(m.longest.Microseconds())/1e3, "ms/longest-step")
			b.ReportMetric(0, "ns/op")
		})
	}
}
