package node

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// BenchmarkIdleRooms measures a tick of a node whose rooms have rights and nobody who
// wants them.
func BenchmarkIdleRooms(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("rooms=%d", n), func(b *testing.B) {
			rooms := openRooms(n)
			for i := range rooms {
				rooms[i].Policy = room.Escrow
			}
			c, err := NewCore(CoreConfig{
				Self: crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 1}, Site: "a", Rooms: rooms,
				OwnerKey: []byte("key"), Rand: rand.New(rand.NewPCG(1, 1)), Found: true,
			})
			if err != nil {
				b.Fatal(err)
			}
			now := noon
			tick := func() {
				now = now.Add(tickInterval)
				c.Tick(now)
				for c.Writes() != nil {
					c.Written(nil, now)
				}
			}
			c.SetPeers(nil, now)
			for range 60 {
				tick()
			}
			if held := c.order[n-1].rights.Held().Places; held == 0 {
				b.Fatal("nobody has made the rights of a room")
			}
			b.ReportAllocs()
			for b.Loop() {
				tick()
			}
		})
	}
}
