package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestLostHalfWay: of a node that leaves the heir has the rights to one room and not those to the other
// one. Then the node is lost, or the heir is, or a third one, one after the other, each declared dead at
// any node that runs. In the end those who run have all rights to both rooms, and never more.
func TestLostHalfWay(t *testing.T) {
	for i, lost := range [][]int{{1}, {2}, {1, 2}, {2, 1}, {1, 3}, {3, 1}, {2, 3}, {1, 2, 3}, {3, 2, 1}, {2, 1, 3}} {
		for _, giftTo := range []int{-1, 1} {
			for by := range 4 {
				if testing.Short() && (i+by)%4 != 0 {
					continue
				}
				if !slices.Contains(lost, by) && (by != 1 || !slices.Contains(lost, 2)) { // who leaves to a lost node has left soon
					t.Run(fmt.Sprintf("lost %v, gift to %d, declared at %d", lost, giftTo, by), func(t *testing.T) { lostHalfWay(t, lost, giftTo, by) })
				}
			}
		}
	}
}

func lostHalfWay(t *testing.T, lost []int, giftTo, by int) {
	other := escrowSettings(60)
	other.ID, other.Path = crdt.RoomID{8}, "/other"
	w := newWorldOf(t, []room.Settings{escrowSettings(90), other}, "a", "a", "a", "a")
	w.run(10 * time.Second)
	leaver, heir := w.nodes[1], w.nodes[2]
	if giftTo >= 0 {
		w.lose = func(l letter) bool { return l.m.Kind == kindTransfer }
		w.nodes[0].core.rooms[roomID].give(w.nodes[giftTo].id, ticket.Amount{Places: 3, Rate: 30}, w.now)
		w.post(w.nodes[0], nil)
		w.run(100 * time.Millisecond)
	}
	w.lose = func(l letter) bool {
		if l.m.Kind == kindTransfer {
			return giftTo >= 0 && l.from == w.nodes[0].id
		}
		h, err := ticket.DecodeHandover(l.m.Payload)
		return l.m.Kind == kindHandover && (err != nil || h.Room != roomID)
	}
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	handed := func(m *machine) bool {
		_, known := m.core.facts.room(roomID).finals[leaver.id]
		return known
	}
	for end := w.now.Add(5 * time.Second); !handed(w.nodes[0]) || !handed(w.nodes[3]); w.run(10 * time.Millisecond) {
		if w.now.After(end) {
			t.Fatal("the first room is not handed over in 5 s")
		}
	}
	for _, i := range lost {
		m := w.nodes[i]
		w.kill(m)
		m.disk, m.snapshot = disk{}, nil
		w.run(time.Second)
		if err := w.nodes[by].core.DeclareDead(m.id, w.now); err != nil && !w.nodes[by].core.facts.hasLeft(m.id) {
			t.Fatal(err)
		}
		w.run(5 * time.Second)
	}
	w.lose = nil
	rooms, limits := []crdt.RoomID{roomID, other.ID}, []ticket.Amount{{Places: 90, Rate: 10_000}, {Places: 60, Rate: 10_000}}
	var held [2]ticket.Amount
	for range 240 {
		w.run(time.Second)
		for i, id := range rooms {
			held[i] = ticket.Amount{}
			for _, m := range w.nodes {
				if m.core != nil {
					held[i] = held[i].Add(m.core.rooms[id].Rights().Held)
				}
			}
			if held[i].Max(limits[i]) != limits[i] {
				t.Fatalf("room %d: %v are held, and there are %v", i, held[i], limits[i])
			}
		}
	}
	if !slices.Equal(held[:], limits) {
		t.Errorf("%v are held in the end, want %v", held, limits)
	}
}
