package replica

import (
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// BenchmarkTraffic reports what a node sends per second, in payload alone: at
// rest, and while some rooms change all the time at all nodes.
func BenchmarkTraffic(b *testing.B) {
	for _, nodes := range []int{3, 6, 12} {
		for _, rooms := range []int{0, 100} {
			b.Run(fmt.Sprintf("nodes=%d/rooms=%d", nodes, rooms), func(b *testing.B) {
				for b.Loop() {
					benchTraffic(b, nodes, rooms)
				}
			})
		}
	}
}

func benchTraffic(b *testing.B, nodes, rooms int) {
	m := newMesh(b, 1)
	for n := range nodes {
		m.add(n, []string{"east", "west", "north"}[n*3/nodes])
	}
	m.refresh()
	const warm, span = 120, 30 // seconds
	for sec := range warm + span {
		if sec == warm {
			m.bytes, m.sent = 0, 0
		}
		for range 4 {
			for room := range rooms {
				m.visit(m.nodes[m.rng.IntN(nodes)], roomID(room))
			}
			m.run(250 * time.Millisecond)
		}
	}
	b.ReportMetric(float64(m.bytes)/float64(nodes)/span, "B/node/s")
	b.ReportMetric(float64(m.sent)/float64(nodes)/span, "msgs/node/s")
	b.ReportMetric(0, "ns/op")
}

// visit is one visitor who arrives, and one who arrived within the last two
// minutes and is let in.
func (m *mesh) visit(x *member, room crdt.RoomID) {
	tick, arrival := crdt.TickOf(m.now), m.now.Unix()/5*5
	x.Add(crdt.Key{Room: room, Kind: crdt.Active}, 1, 0, m.now)
	x.Add(crdt.Key{Room: room, Kind: crdt.Waiting, Tick: arrival - 5*m.rng.Int64N(24)}, 0, 1, m.now)
	x.Add(crdt.Key{Room: room, Kind: crdt.Waiting, Tick: arrival}, 1, 0, m.now)
	x.Add(crdt.Key{Room: room, Kind: crdt.Seen, Tick: tick}, 1, 0, m.now)
	x.Add(crdt.Key{Room: room, Kind: crdt.Admitted, Tick: tick}, 1, 0, m.now)
}

// BenchmarkSecond is one second of a mesh of twelve nodes in which a hundred
// rooms change four times; the figure is for all nodes and their test network.
func BenchmarkSecond(b *testing.B) {
	m := newMesh(b, 1)
	nodes := m.sites(4, "east", "west", "north")
	b.ReportAllocs()
	for b.Loop() {
		for range 4 {
			for room := range 100 {
				m.visit(nodes[m.rng.IntN(len(nodes))], roomID(room))
			}
			m.run(250 * time.Millisecond)
		}
	}
}

func BenchmarkSites(b *testing.B) {
	m := newMesh(b, 1)
	nodes := m.sites(4, "east", "west", "north")
	for range 400 {
		for _, x := range nodes {
			m.visit(x, roomID(0))
		}
		m.run(250 * time.Millisecond)
	}
	b.ReportAllocs()
	for b.Loop() {
		nodes[0].Sites(roomID(0), m.now)
	}
}

// BenchmarkRelayAtRest is that tick of each second in which summaries are due, of the relay of one of 300 sites of ten nodes, all of which
// have written into the map, while nothing happens.
func BenchmarkRelayAtRest(b *testing.B) {
	const sites, nodes = 300, 10
	m := newMesh(b, 1)
	x := m.add(0, "site-0")
	var peers []Peer
	for i := range sites * nodes {
		peers = append(peers, Peer{ID: crdt.NodeID{1, byte(i >> 8), byte(i)}, Boot: 1, Site: fmt.Sprint("site-", i/nodes+1), Ready: true})
	}
	x.SetPeers(peers, m.now)
	for range 20 { // until it goes ahead
		m.now = m.now.Add(time.Second)
		x.Tick(m.now)
	}
	for _, p := range peers {
		if err := x.lww.Set("node/"+p.ID.String(), []byte(p.Site), crdt.Stamp{Wall: m.now.UnixMilli(), Node: p.ID}); err != nil {
			b.Fatal(err)
		}
	}
	all := &frame{kind: push, haveLWW: x.lww.Digest(), haveSums: x.sums.Digest()}
	for _, p := range peers {
		if x.relays[p.Site] == p.ID {
			if _, err := x.Receive(p, all.encode(), m.now); err != nil {
				b.Fatal(err)
			}
		}
	}
	if !x.lead.on || len(x.sorted()) != sites {
		b.Fatalf("leads: %v, links: %d", x.lead.on, len(x.order))
	}
	b.ReportAllocs()
	for b.Loop() {
		m.now = m.now.Add(time.Millisecond) // no tick of ten seconds is over
		x.timers.push, x.timers.publish = m.now, m.now
		x.Tick(m.now)
	}
}
