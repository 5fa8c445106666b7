package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// BenchmarkRecoverAfterMany: what a second costs in recoverTheDead when many nodes have left.
func BenchmarkRecoverAfterMany(b *testing.B) {
	for _, gone := range []int{1, 10, 40} {
		b.Run(fmt.Sprint(gone, " have left"), func(b *testing.B) {
			w := &world{t: b, now: time.Unix(1_700_000_000, 0), rng: newStoppedWorld(&testing.T{}).rng, delay: 2 * time.Millisecond}
			rooms := []room.Settings{escrowSettings(90)}
			for i := range 499 {
				s := escrowSettings(60)
				s.ID, s.Path = crdt.RoomID{8, byte(i), byte(i >> 8)}, fmt.Sprintf("/other%d", i)
				rooms = append(rooms, s)
			}
			w.more = rooms[1:]
			w.begin(rooms[0], "a", "a")
			c := w.nodes[0].core
			prev := w.nodes[0].id
			for i := range gone {
				id := crdt.NodeID{0xf0, byte(i)}
				c.setFact(nodeKey(factNode, id), []byte("a"), w.now)
				c.setFact(nodeKey(factLeft, id), prev[:], w.now)
				for _, s := range rooms {
					c.setFact(roomNodeKey(factTold, s.ID, id), said{}.encode(), w.now)
					f := ticket.Final{Node: id, Heir: prev, Minting: ticket.Minting{Known: true}}
					c.setFact(roomNodeKey(factFinal, s.ID, id), ticket.AppendFinal(nil, f), w.now)
				}
				prev = id // a chain: each left to the one before
			}
			w.run(2 * time.Second)
			b.ResetTimer()
			for b.Loop() {
				c.recovered = time.Time{}
				c.recoverTheDead(w.now)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/500, "µs/room")
		})
	}
}
