package node

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// largeMesh is a mesh of up to the documented size: 1,000 rooms that operators change while nodes run, and 100
// nodes that have told of each. Three are of one site, and there as a whole; of the others only the relay of
// their site answers.
type largeMesh struct {
	core     *Core // whose steps are measured: the relay of its site
	cores    []*Core
	counts   counts
	now      time.Time
	peers    []replica.Peer // all nodes
	relay    *replica.Replica
	relayOf  replica.Peer
	facts    crdt.LWW // what the nodes of the other site have written
	told     uint64   // of these changes the relay knows
	clocks   map[crdt.NodeID]*crdt.Clock
	air      []letter
	longest  time.Duration // step of the loop
	counting bool
	most     work // of one step, where that is counted
}

// nodesHere is how many nodes of a large mesh are there as a whole.
const nodesHere = 3

func newLargeMesh(tb testing.TB, rooms, nodes int) *largeMesh {
	tb.Helper()
	m := &largeMesh{counts: newCounts(), now: noon, clocks: map[crdt.NodeID]*crdt.Clock{}}
	all := openRooms(rooms)
	for i := range all {
		all[i].Policy, all[i].Host = room.Escrow, fmt.Sprintf("shop%d.example", i)
	}
	for n := range min(nodes, nodesHere) {
		m.join(tb, byte(n), all)
	}
	if nodes <= nodesHere {
		return m
	}
	for n := nodesHere; n < nodes; n++ {
		m.peers = append(m.peers, replica.Peer{ID: crdt.NodeID{byte(n + 1)}, Boot: 1, Site: "b", Ready: true})
	}
	for i, p := range m.peers[nodesHere:] {
		m.write(tb, p.ID, nodeKey(factNode, p.ID), []byte(p.Site))
		m.write(tb, p.ID, nodeKey(factName, p.ID), fmt.Append(nil, p.Site, i))
		for _, r := range all {
			m.write(tb, p.ID, roomNodeKey(factTold, r.ID, p.ID), said{limits: limitsOf(&r), session: r.SessionDuration}.encode())
		}
	}
	for _, c := range m.cores { // they have heard of all that long ago
		if err := c.replica.RestoreMap(m.facts.Parts(0)); err != nil {
			tb.Fatal(err)
		}
		c.SetPeers(m.peers, m.now)
	}
	m.findRelays(tb)
	m.run(15 * time.Second)
	m.longest = 0
	return m
}

// join has a node be there.
func (m *largeMesh) join(tb testing.TB, n byte, rooms []room.Settings) {
	tb.Helper()
	p := replica.Peer{ID: crdt.NodeID{n + 1}, Boot: 1, Site: "a", Ready: true}
	c, err := NewCore(CoreConfig{
		Self: crdt.Incarnation{Node: p.ID, Boot: 1}, Site: p.Site, Rooms: rooms, Catalog: &Cataloging{},
		OwnerKey: []byte("key"), Rand: rand.New(rand.NewPCG(1, uint64(n))), Found: n == 0,
	})
	if err != nil {
		tb.Fatal(err)
	}
	m.cores, m.peers = append(m.cores, c), append(m.peers, p)
	for _, o := range m.cores {
		o.SetPeers(m.peers, m.now)
	}
	m.core = m.cores[0]
	m.run(3 * time.Second)
}

// findRelays has the core be the one that leads its site, and the relay of the other one answer.
func (m *largeMesh) findRelays(tb testing.TB) {
	tb.Helper()
	for range 20 {
		m.now = m.now.Add(tickInterval)
		for _, c := range m.cores {
			for _, msg := range c.Tick(m.now) {
				p, ok := c.peers.Find(msg.To)
				if !ok || p.Site == c.site {
					continue
				}
				r, err := replica.New(replica.Config{Self: crdt.Incarnation{Node: p.ID, Boot: p.Boot}, Site: p.Site, Rand: rand.New(rand.NewPCG(2, 2))})
				if err != nil {
					tb.Fatal(err)
				}
				r.SetPeers(replica.NewMembers(m.peers[:nodesHere]), m.now)
				m.core, m.relay, m.relayOf = c, r, p
				return
			}
		}
	}
	tb.Fatal("nobody has written to the other site")
}

// write has a node of the other site write a fact.
func (m *largeMesh) write(tb testing.TB, from crdt.NodeID, key string, value []byte) {
	tb.Helper()
	if m.clocks[from] == nil {
		m.clocks[from] = new(crdt.Clock)
	}
	if err := m.facts.Set(key, value, m.clocks[from].Now(m.now, from)); err != nil {
		tb.Fatal(err)
	}
}

// run lets time pass.
func (m *largeMesh) run(d time.Duration) {
	for end := m.now.Add(d); m.now.Before(end); {
		m.now = m.now.Add(tickInterval)
		if m.relay != nil {
			if err := m.relay.RestoreMap(m.facts.Parts(m.told)); err != nil {
				panic(err)
			}
			m.told = m.facts.Changes()
			m.post(m.relayOf.ID, m.core.replicate(m.relay.Tick(m.now)))
		}
		for _, c := range m.cores {
			m.step(c, func() []Message {
				out := c.Tick(m.now)
				if c == m.core && m.now.Equal(m.now.Truncate(persistInterval)) {
					if _, _, err := m.counts.record(c.replica, nil, m.now); err != nil {
						panic(err)
					}
					m.counts.written(nil)
				}
				return out
			})
		}
		m.deliver()
	}
}

func (m *largeMesh) post(from crdt.NodeID, all []Message) {
	for _, msg := range all {
		m.air = append(m.air, letter{from: from, to: msg.To, m: msg})
	}
}

func (m *largeMesh) deliver() {
	for ; len(m.air) > 0; m.air = m.air[1:] {
		l := m.air[0]
		from, _ := replica.NewMembers(m.peers).Find(l.from)
		if l.to == m.relayOf.ID && l.m.Kind == kindReplica {
			out, err := m.relay.Receive(from, l.m.Payload, m.now)
			if err != nil {
				panic(err)
			}
			m.post(l.to, m.core.replicate(out))
		}
		for _, c := range m.cores {
			if c.self.Node != l.to {
				continue
			}
			m.step(c, func() []Message {
				out, err := c.Receive(from, l.m.Kind, l.m.Payload, m.now)
				if err != nil {
					panic(err)
				}
				return out
			})
		}
	}
}

// step does what a loop does at one go, and notes how long that took.
func (m *largeMesh) step(c *Core, do func() []Message) {
	start, before := threadTime(), m.worked()
	out := do()
	writes := c.Writes() != nil
	if c == m.core {
		m.longest, m.most = max(m.longest, threadTime()-start), m.most.max(m.worked().since(before))
	}
	m.post(c.self.Node, out)
	if writes {
		m.step(c, func() []Message { return c.Written(nil, m.now) })
	}
}

// work is how much of the heap something has taken: what has to be looked at, put together or copied takes some, however fast the machine is.
type work struct{ objects, bytes uint64 }

func (m *largeMesh) worked() work {
	var is runtime.MemStats
	if m.counting {
		runtime.ReadMemStats(&is)
	}
	return work{is.Mallocs, is.TotalAlloc}
}

func (w work) since(before work) work {
	return work{w.objects - before.objects, w.bytes - before.bytes}
}

func (w work) max(o work) work { return work{max(w.objects, o.objects), max(w.bytes, o.bytes)} }

// oneChange is something that happens in a large mesh, at the i-th time.
type oneChange struct {
	name   string
	change func(tb testing.TB, m *largeMesh, i int)
}

var oneChanges = []oneChange{
	{"nothing", func(testing.TB, *largeMesh, int) {}},
	{"told", func(tb testing.TB, m *largeMesh, i int) {
		r, from := m.core.order[i%len(m.core.order)], m.peers[len(m.peers)-1].ID
		m.write(tb, from, roomNodeKey(factTold, r.id, from), said{session: time.Duration(i+1) * time.Second}.encode())
	}},
	{"minted", func(tb testing.TB, m *largeMesh, i int) {
		r, from := m.core.order[i%len(m.core.order)], m.peers[len(m.peers)-1].ID
		m.write(tb, from, roomNodeKey(factMinted, r.id, from), encodeAmount(ticket.Amount{Places: int64(i + 1), Rate: 1}))
	}},
	{"site", func(tb testing.TB, m *largeMesh, i int) {
		from := m.peers[len(m.peers)-1].ID
		m.write(tb, from, nodeKey(factNode, from), fmt.Append(nil, "b", i))
	}},
	{"node", func(tb testing.TB, m *largeMesh, i int) {
		id := crdt.NodeID{3, byte(i >> 8), byte(i) + 1}
		m.write(tb, id, nodeKey(factNode, id), []byte("b"))
		for _, r := range m.core.order {
			m.write(tb, id, roomNodeKey(factTold, r.id, id), said{session: time.Minute}.encode())
		}
	}},
	{"member", func(_ testing.TB, m *largeMesh, i int) {
		m.step(m.core, func() []Message { m.core.SetPeers(m.peers[:len(m.peers)-1+i%2], m.now); return nil })
	}},
	{"mate", func(_ testing.TB, m *largeMesh, i int) {
		peers := slices.Clone(m.peers)
		if i%2 == 0 {
			mate := slices.IndexFunc(peers, func(p replica.Peer) bool { return p.ID != m.core.self.Node })
			peers = slices.Delete(peers, mate, mate+1)
		}
		m.step(m.core, func() []Message { m.core.SetPeers(peers, m.now); return nil })
	}},
	{"patch", func(tb testing.TB, m *largeMesh, i int) {
		id := m.core.order[i%len(m.core.order)].id
		m.step(m.core, func() []Message {
			err := m.core.Edit(func(c *catalog.Catalog) ([]catalog.Write, error) {
				is := c.Room(id).Clone()
				is.Settings.TotalActiveUsers = 1<<20 - 1 - i
				return c.Writes(c.Room(id), is), c.Check(is, nil)
			}, m.now)
			if err != nil {
				tb.Fatal(err)
			}
			return nil
		})
	}},
}

// BenchmarkOneChange measures the longest step of the loop, in time of the processor, within a second after
// one thing has changed in a large mesh. Garbage is collected between these seconds: elsewhere other threads do that.
func BenchmarkOneChange(b *testing.B) {
	m := newLargeMesh(b, 1000, 100)
	for _, c := range oneChanges {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			m.longest = 0
			i := 0
			for b.Loop() {
				runtime.GC()
				c.change(b, m, i)
				m.run(time.Second)
				i++
			}
			b.ReportMetric(float64(m.longest.Microseconds())/1e3, "ms/longest-step")
			b.ReportMetric(0, "ns/op")
		})
	}
}
