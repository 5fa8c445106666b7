package node

import (
	"math/rand/v2"
	"testing"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

// TestRoomsTakeTurns has something concern all of a thousand rooms at once, and counts at how many of them each
// tick looks: never at all, and soon at each. So it is with nodes that are down.
func TestRoomsTakeTurns(t *testing.T) {
	const rooms, down = 1000, 5
	all := openRooms(rooms)
	for i := range all {
		all[i].Policy = room.Escrow
	}
	c, err := NewCore(CoreConfig{
		Self: crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 1}, Site: "a", Rooms: all,
		OwnerKey: []byte("key"), Rand: rand.New(rand.NewPCG(1, 1)), Found: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	now := noon
	c.SetPeers(nil, now)
	run := func(ticks int, seen func()) {
		for range ticks {
			now = now.Add(tickInterval)
			c.Tick(now)
			for c.Writes() != nil {
				c.Written(nil, now)
			}
			seen()
		}
	}
	run(60, func() {})
	mate := crdt.NodeID{2}
	var clock crdt.Clock
	for i := range byte(down) {
		id := crdt.NodeID{3, i}
		c.replica.Take(nodeKey(factNode, id), []byte("b"), clock.Now(now, id), now)
	}
	for _, there := range []bool{true, false} {
		var peers []replica.Peer
		if there {
			peers = append(peers, replica.Peer{ID: mate, Boot: 1, Site: "a", Ready: true})
		}
		c.SetPeers(peers, now)
		since := briefOf(now)
		ledBy := 0 // the mate: they do not wait for their turn once it is gone
		for _, r := range c.order {
			if r.counters.Load().lost() {
				ledBy++
			}
		}
		tick, left := 0, 0
		run(100, func() {
			views, moves, late := 0, 0, 0
			for _, r := range c.order {
				if r.viewed == briefOf(now) {
					views++
				}
				if r.counters.Load().loop.supply.moved == briefOf(now) {
					moves++
				}
				if r.viewed < since {
					late++
				}
			}
			if tick++; tick == 1 {
				views -= ledBy
			}
			if views > rooms/turnsWithin || moves > rooms/turnsWithin {
				t.Errorf("tick %d looked at %d views and %d times at who has rights, want %d at most", tick, views, moves, rooms/turnsWithin)
			}
			if tick > turnsWithin+1 && late > 0 {
				t.Errorf("%d rooms have not been looked at in %d ticks", late, tick)
			}
			if looked := left - len(c.downs.next); left > 0 && looked > 1 {
				t.Errorf("tick %d looked at %d nodes that are down, want 1", tick, looked)
			}
			left = len(c.downs.next)
		})
	}
	if is := len(*c.shownDown.Load()); is != down+1 { // the mate was given some
		t.Errorf("%d nodes are down, want %d", is, down+1)
	}
}
