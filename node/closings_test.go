package node

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// look has some nodes look for what they may forget, far more often than they do.
func (w *leaveWalk) look() {
	for _, m := range w.up() {
		if m.core.open.Load() && w.IntN(6) == 0 {
			m.core.lookForSettled(w.now)
			for m.core.stepGone(w.now) {
			}
		}
	}
}

// TestForgettingKeepsTheLimit: whole nodes leave, are lost and recovered, stop and start, while the others forget those that
// are gone. At no moment more is held than the limits, in the end all of it is, and nothing names a node that is gone.
func TestForgettingKeepsTheLimit(t *testing.T) {
	walks := uint64(12)
	if testing.Short() {
		walks /= 4
	}
	forgotten := 0
	for seed := range walks {
		w := &leaveWalk{Rand: rand.New(rand.NewPCG(seed+1, 79)), lost: map[*machine]bool{}, left: map[*machine]bool{}, forget: true}
		if w.walk(t); w.wrong == "" {
			forgotten += w.forgetAll()
		}
		if w.wrong != "" {
			t.Errorf("seed %d: %s\n%s", seed+1, w.wrong, strings.Join(w.events, "\n"))
		}
	}
	t.Logf("in the end %d nodes were forgotten", forgotten)
}

// forgetAll lets an hour pass, looks whether all that are gone are forgotten, and returns how many.
func (w *leaveWalk) forgetAll() (forgotten int) {
	for range 60 {
		w.idle(time.Minute)
		if w.wait(50 * time.Millisecond); w.wrong != "" {
			return forgotten
		}
	}
	for _, gone := range w.nodes {
		if !w.lost[gone] && !w.left[gone] {
			continue
		}
		forgotten++
		for _, m := range w.staying() {
			if names := m.names(gone.id); len(names) > 0 {
				w.wrong = "a node that is gone is named: " + gone.id.String() + "\n" + strings.Join(names, "\n")
				return forgotten
			}
		}
	}
	return forgotten
}

// idle lets time pass in large steps.
func (w *leaveWalk) idle(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(500 * time.Millisecond) {
		w.run(10 * time.Millisecond)
	}
}

// names returns all that a node knows and has on its disk of another one.
func (m *machine) names(id crdt.NodeID) (all []string) {
	for key := range m.core.replica.Keys() {
		if strings.Contains(key, id.String()) {
			all = append(all, key)
		}
	}
	for key := range m.disk.keys {
		if key[0] != factsObject && strings.Contains(key[1], id.String()) {
			all = append(all, "ledger "+key[0]+": "+key[1])
		}
	}
	if _, named := m.core.facts.forgot[m.core.self.Node].steps[id]; named {
		all = append(all, "steps")
	}
	return slices.Sorted(slices.Values(all))
}

// TestChurnLeavesNothing: nodes come and go, and leave nothing to keep.
func TestChurnLeavesNothing(t *testing.T) {
	comings := 40
	if testing.Short() {
		comings = 20
	}
	rooms := []room.Settings{escrowSettings(90), escrowSettings(60)}
	rooms[1].ID, rooms[1].Path = crdt.RoomID{8}, "/other"
	w := newWorldOf(t, rooms, "a", "a", "b")
	w.run(10 * time.Second)
	size := func() (keys, ledgers int) {
		for _, m := range w.nodes[:3] {
			keys += m.core.replica.MapLen()
			for key := range m.disk.keys {
				if key[0] != factsObject {
					ledgers++
				}
			}
		}
		return keys, ledgers
	}
	cycle := func(n int) {
		for i := range n {
			m := &machine{id: crdt.NodeID{byte(10 + i%200), byte(len(w.nodes)), 0xcc}, site: []string{"a", "b"}[i%2]}
			w.nodes = append(w.nodes, m)
			w.start(m, rooms[0])
			w.run(8 * time.Second)
			w.leaves(m)
		}
		l := leaveWalk{world: w, Rand: rand.New(rand.NewPCG(1, 1))}
		l.idle(70 * time.Minute)
	}
	cycle(6)
	keys, ledgers := size()
	cycle(comings)
	moreKeys, moreLedgers := size()
	t.Logf("%d keys and %d entries of ledgers before %d nodes came and left, %d and %d after", keys, ledgers, comings, moreKeys, moreLedgers)
	if moreKeys > keys+keys/10 || moreLedgers > ledgers+ledgers/10 {
		t.Error("nodes that came and left have left something")
	}
	for _, room := range rooms {
		if sum := w.heldAll(room.ID); sum.Places != int64(room.TotalActiveUsers) {
			t.Errorf("room %s: %d places are held, want %d", room.ID, sum.Places, room.TotalActiveUsers)
		}
	}
}
