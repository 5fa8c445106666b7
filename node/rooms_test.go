package node

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

// loneCore returns a node without peers that is ready for requests.
func loneCore(tb testing.TB, rooms []room.Settings) (*Core, time.Time) {
	tb.Helper()
	c, err := NewCore(CoreConfig{
		Self: crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 1}, Site: "a", Rooms: rooms,
		OwnerKey: []byte("key"), Rand: rand.New(rand.NewPCG(1, 1)),
	})
	if err != nil {
		tb.Fatal(err)
	}
	c.SetPeers(nil, noon)
	c.Tick(noon)
	if !c.Ready() {
		tb.Fatal("a node without peers is not ready at once")
	}
	return c, noon
}

// TestNewsOfOneRoomLeavesTheOthers has one of many rooms change, here and at a
// peer, and expects work for that one alone.
func TestNewsOfOneRoomLeavesTheOthers(t *testing.T) {
	c, now := loneCore(t, openRooms(20))
	from := replica.Peer{ID: crdt.NodeID{2}, Boot: 1, Site: "a", Ready: true}
	other, err := replica.New(replica.Config{Self: crdt.Incarnation{Node: from.ID, Boot: from.Boot}, Site: from.Site, Rand: rand.New(rand.NewPCG(2, 2))})
	if err != nil {
		t.Fatal(err)
	}
	other.SetPeers([]replica.Peer{{ID: c.self.Node, Boot: c.self.Boot, Site: c.site, Ready: true}}, now)
	changes := map[string]func(r *Room){
		"here": func(r *Room) { r.Decide(Pass{}, false, now) },
		"at a peer": func(r *Room) {
			other.Add(crdt.Key{Room: r.id, Kind: crdt.Active}, 1, 0, now)
			for _, m := range other.Tick(now) {
				if _, err := c.Receive(from, kindReplica, m.Payload, now); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
	for where, change := range changes {
		for _, r := range c.order {
			r.look(now) // none is due for itself
		}
		before := make(map[*Room]*view)
		for _, r := range c.order {
			before[r] = r.view.Load()
		}
		busy := c.order[7]
		change(busy)
		now = now.Add(tickInterval)
		c.Tick(now)
		for i, r := range c.order {
			if looked := r.view.Load() != before[r]; looked != (r == busy) {
				t.Errorf("news %s: view of room %d built anew = %v", where, i, looked)
			}
		}
		now = now.Add(viewInterval)
		c.Tick(now)
		for i, r := range c.order {
			if looked := r.view.Load() != before[r]; r == busy && !looked {
				t.Errorf("view of the busy room %d is older than %v", i, viewInterval)
			} else if r != busy && looked {
				t.Errorf("news %s: empty room %d was looked at within %v", where, i, viewInterval)
			}
		}
		now = now.Add(idleInterval - viewInterval)
		c.Tick(now)
		for i, r := range c.order {
			if r.view.Load() == before[r] {
				t.Errorf("view of room %d is older than %v", i, idleInterval)
			}
		}
	}
}

// BenchmarkTick measures the loop's work, which is due twenty times a second.
func BenchmarkTick(b *testing.B) {
	for _, rooms := range []int{1, 100, 10_000} {
		for _, busy := range []int{0, 100} {
			if busy > rooms {
				continue
			}
			b.Run(fmt.Sprintf("rooms=%d/busy=%d", rooms, busy), func(b *testing.B) {
				c, now := loneCore(b, openRooms(rooms))
				b.ReportAllocs()
				for b.Loop() {
					for _, r := range c.order[:busy] {
						r.Decide(Pass{}, false, now)
					}
					now = now.Add(tickInterval)
					c.Tick(now)
				}
			})
		}
	}
}
