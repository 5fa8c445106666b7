package node

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

// meshOf returns the members of a mesh of sites × nodes, by id. Those who share
// the list share its memory.
func meshOf(sites, nodes int) []replica.Peer {
	peers := make([]replica.Peer, 0, sites*nodes)
	for s := range sites {
		name := fmt.Sprintf("site-%03d", s)
		for n := range nodes {
			peers = append(peers, replica.Peer{ID: crdt.NodeID{1, byte(s >> 8), byte(s), byte(n)}, Boot: 1, Site: name, Ready: true})
		}
	}
	return peers
}

// memberOf returns a ready node of a mesh.
func memberOf(tb testing.TB, peers []replica.Peer, i int, s room.Settings) *Core {
	tb.Helper()
	c, err := NewCore(CoreConfig{
		Self: crdt.Incarnation{Node: peers[i].ID, Boot: 1}, Site: peers[i].Site,
		Rooms: []room.Settings{s}, OwnerKey: []byte("key"), Rand: rand.New(rand.NewPCG(1, uint64(i))),
	})
	if err != nil {
		tb.Fatal(err)
	}
	c.SetPeers(peers, noon)
	return c
}

// BenchmarkIdle measures a node of a large mesh that nobody asks: what it costs
// to hold, and what the loop costs, per tick.
func BenchmarkIdle(b *testing.B) {
	for _, size := range [][2]int{{1, 1}, {5, 3}, {300, 10}} {
		b.Run(fmt.Sprintf("sites=%d/nodes=%d", size[0], size[1]), func(b *testing.B) {
			peers := meshOf(size[0], size[1])
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			const cores = 10
			var all []*Core
			now := noon
			for i := range cores {
				all = append(all, memberOf(b, peers, i%len(peers), testSettings(10)))
			}
			for range 15 * 20 { // until the nodes of a silent site go ahead
				now = now.Add(tickInterval)
				for _, c := range all {
					c.Tick(now)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if !all[0].Ready() {
				b.Fatal("not ready")
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				if i%cores == 0 {
					now = now.Add(tickInterval)
				}
				all[i%cores].Tick(now)
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/cores, "B/node")
			runtime.KeepAlive(all)
		})
	}
}
