package node

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
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
	w.members()
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
func (w *world) idle(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(500 * time.Millisecond) {
		w.run(10 * time.Millisecond)
	}
}

// names returns all that a node knows and has in memory and on its disk of another one.
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
	return append(slices.Sorted(slices.Values(all)), m.inMemory(id)...)
}

// lookAll has all nodes look for what they may forget.
func (w *world) lookAll() {
	for _, m := range w.nodes {
		if m.core != nil && m.core.open.Load() {
			m.core.lookForSettled(w.now)
			for m.core.stepGone(w.now) {
			}
		}
	}
}

// TestWhatOthersForgetStopsAnOldDirectory brings back a copy of a node's data directory after others have forgotten what that
// had given to one that has left: nobody has a receipt of it any more.
func TestWhatOthersForgetStopsAnOldDirectory(t *testing.T) {
	for name, late := range map[string]bool{"from before the gift": false, "from before its account was closed": true} {
		t.Run(name, func(t *testing.T) {
			s := escrowSettings(90)
			w := newStoppedWorld(t)
			w.keys = true
			w.begin(s, "a", "a", "a", "b")
			w.run(10 * time.Second)
			heir, giver, leaver := w.nodes[0], w.nodes[1], w.nodes[2]
			old := giver.backup(t)
			giver.core.rooms[roomID].give(leaver.id, ticket.Amount{Places: 9, Rate: 50}, w.now)
			w.post(giver, nil)
			w.run(5 * time.Second)
			if late {
				old = giver.backup(t)
			}
			w.post(leaver, leaver.core.leaveTo(heir.id, w.now))
			w.until("the leaver gets away", 10*time.Second, leaver.core.Left)
			w.kill(leaver)
			w.until("the heir keeps for good what it has", 3*time.Minute, func() bool {
				w.lookAll()
				w.run(time.Second)
				return giver.core.facts.room(roomID).keptForGood(leaver.id)
			})
			w.kill(giver)
			w.run(time.Second)
			newest := giver.boot
			now := backup{giver.disk.keys, newest, giver.snapshot}
			giver.disk.keys, giver.boot, giver.snapshot = old.keys, old.boot, old.snapshot
			w.start(giver, s)
			if err := w.conflict(giver, 5*time.Second); !errors.Is(err, ErrCopied) || !strings.Contains(err.Error(), "has closed") {
				t.Errorf("conflict: %v", err)
			}
			w.kill(giver)
			giver.disk.keys, giver.boot, giver.snapshot = now.keys, now.boot, now.snapshot
			w.start(giver, s)
			w.run(5 * time.Second)
			if err := giver.core.Conflict(); err != nil || !giver.core.Ready() {
				t.Errorf("with the newest data directory: ready %v, conflict: %v", giver.core.Ready(), err)
			}
		})
	}
}

// BenchmarkMayForget is a step of the least node that exists, of a hundred that are gone.
func BenchmarkMayForget(b *testing.B) {
	const gone = 100
	f, keeper := newFacts(nil, 0), crdt.NodeID{gone, 1}
	r := &roomFacts{minter: keeper}
	for i := range byte(gone) {
		id := crdt.NodeID{i, 1}
		if f.sites[id] = "a"; i%2 == 0 {
			f.dead[id] = keeper
			noteFact(&r.again, id, recovered{by: keeper})
		} else {
			f.left[id] = keeper
			final := ticket.Final{Node: id, Heir: keeper}
			for j := range byte(gone) {
				final.Accounts = append(final.Accounts, ticket.Account{Node: crdt.NodeID{j, 1}, Gave: ticket.Amount{Places: 1}})
			}
			noteFact(&r.finals, id, final)
		}
		noteFact(&r.forGood, id, keeper)
	}
	f.sites[keeper] = "a"
	for b.Loop() {
		for range goneAtOnce / gone {
			may := f.mayForgetIn(r)
			for i := range byte(gone) {
				if !may(crdt.NodeID{i, 1}) {
					b.Fatal("it may not be forgotten")
				}
			}
		}
	}
}
