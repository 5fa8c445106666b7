package node

import (
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// What becomes of a leaver whose heir is lost, or leaves in turn, before it has all.

func (w *world) lostFor(m *machine) {
	w.kill(m)
	m.disk, m.snapshot = disk{}, nil
}

func (w *world) until(what string, d time.Duration, done func() bool) {
	w.t.Helper()
	for end := w.now.Add(d); !done(); w.run(10 * time.Millisecond) {
		if w.now.After(end) {
			w.t.Fatalf("not in %v: %s", d, what)
		}
	}
}

// heldAll returns what those who are up hold.
func (w *world) heldAll(id crdt.RoomID) (sum ticket.Amount) {
	for _, m := range w.nodes {
		if m.core != nil && m.core.rooms[id] != nil {
			sum = sum.Add(m.core.rooms[id].Rights().Held)
		}
	}
	return sum
}

// TestALeaverWhoseHeirIsLostGetsAway: a node leaves, and its heir is lost before it has taken over, and
// declared dead. The leaver gets away in the end, and somebody mints for the mesh.
func TestALeaverWhoseHeirIsLostGetsAway(t *testing.T) {
	for _, who := range []int{0, 1} { // the minter of the mesh, and another one
		w := newMeshWorld(t, true, "a", "a", "a", "a")
		w.run(10 * time.Second)
		leaver, heir, other := w.nodes[who], w.nodes[2], w.nodes[3]
		w.lose = func(l letter) bool { return l.m.Kind == kindHandover }
		w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
		w.run(time.Second)
		w.kill(heir)
		heir.disk, heir.snapshot = disk{}, nil
		w.run(time.Second)
		if err := other.core.DeclareDead(heir.id, w.now); err != nil {
			t.Fatal(err)
		}
		w.lose = nil
		for end := w.now.Add(2 * time.Minute); !leaver.core.Left() && w.now.Before(end); {
			w.run(100 * time.Millisecond)
		}
		if !leaver.core.Left() {
			t.Errorf("leaver %d does not get away in two minutes", who)
		}
		w.run(3 * time.Minute)
		founders := 0
		for _, m := range w.nodes {
			if m.core != nil && m.core.foundsNow(w.now) {
				founders++
			}
		}
		if founders != 1 {
			t.Errorf("leaver %d: %d nodes mint for the mesh", who, founders)
		}
	}
}

// TestALeaverWithABusyRoom: a node leaves while a write or a request is under way in one room, and its heir is lost
// and declared dead meanwhile. It passes that room on to another one.
func TestALeaverWithABusyRoom(t *testing.T) {
	other := escrowSettings(60)
	other.ID, other.Path = crdt.RoomID{8}, "/other"
	w := newWorldOf(t, []room.Settings{escrowSettings(90), other}, "a", "a", "a", "a")
	w.run(10 * time.Second)
	leaver, heir := w.nodes[1], w.nodes[2]
	r := leaver.core.rooms[other.ID]
	r.mu.Lock()
	r.rights.Open(1, w.now) // a request is under way that may take a place
	r.mu.Unlock()
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.lose = func(l letter) bool { return l.m.Kind == kindHandover }
	w.run(50 * time.Millisecond)
	w.lostFor(heir)
	w.run(time.Second)
	if err := w.nodes[0].core.DeclareDead(heir.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.lose = nil
	w.run(2 * time.Second)
	r.mu.Lock()
	r.rights.Close(1)
	r.mu.Unlock()
	for end := w.now.Add(time.Minute); w.now.Before(end) && !leaver.core.Left(); {
		w.run(10 * time.Millisecond)
	}
	if !leaver.core.Left() {
		t.Error("it has not left within a minute")
	}
	w.kill(leaver)
	w.run(3 * time.Minute)
	if got := w.heldAll(roomID); got.Places != 90 {
		t.Errorf("first room: %v", got)
	}
	if got := w.heldAll(other.ID); got.Places != 60 {
		t.Errorf("other room: %v", got)
	}
}

// TestALeaverWhoseHeirLeftHalfWay: a node leaves to one that leaves in turn and has passed on one
// room of two, to a third, which is slow to write that down and has not told it yet, when it is lost
// and declared dead. The first one's last ledger is for the third to take over by, whether or not it
// still hears it from the first.
func TestALeaverWhoseHeirLeftHalfWay(t *testing.T) {
	other := escrowSettings(60)
	other.ID, other.Path = crdt.RoomID{8}, "/other"
	w := newWorldOf(t, []room.Settings{escrowSettings(90), other}, "a", "a", "a", "a")
	w.run(10 * time.Second)
	stays, leaver, heir, third := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	w.lose = func(l letter) bool {
		h, err := ticket.DecodeHandover(l.m.Payload)
		return l.m.Kind == kindHandover && (err != nil || l.from == leaver.id || h.Room != roomID)
	}
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.run(heirStays + 100*time.Millisecond)
	third.disk.delay = 10 * time.Second
	w.post(heir, heir.core.leaveTo(third.id, w.now))
	took := func() bool {
		_, known := third.core.facts.room(roomID).finals[heir.id]
		return known
	}
	for end := w.now.Add(5 * time.Second); !took(); w.run(10 * time.Millisecond) {
		if w.now.After(end) {
			t.Fatal("the first room is not handed over in 5 s")
		}
	}
	w.kill(heir)
	heir.disk, heir.snapshot = disk{}, nil
	w.run(500 * time.Millisecond)
	if err := stays.core.DeclareDead(heir.id, w.now); err != nil {
		t.Fatal(err)
	}
	for end := w.now.Add(time.Minute); w.now.Before(end) && !leaver.core.Left(); {
		w.run(10 * time.Millisecond)
	}
	if !leaver.core.Left() {
		t.Fatal("it has not left in a minute")
	}
	w.kill(leaver)
	w.lose = nil
	third.disk.delay = 0
	for range 240 {
		w.run(time.Second)
	}
	if err := stays.core.DeclareDead(leaver.id, w.now); err == nil {
		t.Error("who has left all rooms is declared dead")
	}
	if got := w.heldAll(roomID); got.Places != 90 {
		t.Errorf("%v are held, want 90", got)
	}
	if got := w.heldAll(other.ID); got.Places != 60 {
		t.Errorf("%v are held, want 60", got)
	}
}

// TestALeaverHasOneHeirInEachRoom: a node leaves to another one, which has taken over one room of two,
// passed that on to a third and not the other one, when it is lost and declared dead. What others give
// to the first in the other room is recovered with it.
func TestALeaverHasOneHeirInEachRoom(t *testing.T) {
	other := escrowSettings(60)
	other.ID, other.Path = crdt.RoomID{8}, "/other"
	w := newWorldOf(t, []room.Settings{escrowSettings(90), other}, "a", "a", "a", "a")
	w.run(10 * time.Second)
	g, leaver, heir, third := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	known := func(m *machine, id crdt.RoomID, of *machine) bool {
		_, is := m.core.facts.room(id).finals[of.id]
		return is
	}
	took := false
	w.lose = func(l letter) bool {
		switch l.m.Kind {
		case kindTransfer:
			return l.from == g.id
		case kindReceived:
			return l.to == leaver.id
		case kindHandover:
			h, err := ticket.DecodeHandover(l.m.Payload)
			return err != nil || h.Room != roomID || l.from == leaver.id && took
		}
		return false
	}
	g.core.rooms[other.ID].give(leaver.id, ticket.Amount{Places: 5, Rate: 50}, w.now)
	w.post(g, nil)
	w.run(100 * time.Millisecond)
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.until("heir takes the first room", 5*time.Second, func() bool { return known(third, roomID, leaver) && known(g, roomID, leaver) })
	took = true
	w.run(heirStays)
	w.post(heir, heir.core.leaveTo(third.id, w.now))
	w.until("third takes the first room", 5*time.Second, func() bool {
		return known(third, roomID, heir) && known(g, roomID, heir) && known(leaver, roomID, heir)
	})
	w.run(time.Second)
	w.lostFor(heir)
	w.run(time.Second)
	if err := g.core.DeclareDead(heir.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(10 * time.Second)
	w.lose = nil
	for range 240 {
		w.run(time.Second)
		if leaver.core != nil && leaver.core.Left() {
			w.kill(leaver)
		}
	}
	if got := w.heldAll(roomID); got.Places != 90 {
		t.Errorf("first room: %v", got)
	}
	if got := w.heldAll(other.ID); got.Places != 60 {
		t.Errorf("other room: %v", got)
	}
}

// TestSessionsOfALeaverWhoseHeirIsLost: a node leaves to one that is lost, and an operator says so at
// the leaver itself or at another node. Somebody recovers both, and their visitors go on with that one.
func TestSessionsOfALeaverWhoseHeirIsLost(t *testing.T) {
	for _, by := range []int{0, 3, 1} {
		w := newWorld(t, escrowSettings(90), "a", "a", "a", "a")
		w.run(20 * time.Second)
		leaver, heir := w.nodes[1], w.nodes[2]
		people := w.crowd(90, func(i int) *machine { return w.nodes[i%2*3] })
		for range 100 {
			w.askAll(outside(people))
			w.run(100 * time.Millisecond)
		}
		of := map[crdt.NodeID]int{}
		for _, p := range people {
			if p.in {
				of[p.pass.Ticket.Anchor]++
			}
		}
		before := w.active(people)
		w.lose = func(l letter) bool { return l.m.Kind == kindHandover }
		w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
		w.run(500 * time.Millisecond)
		w.lostFor(heir)
		w.run(time.Second)
		if err := w.nodes[by].core.DeclareDead(heir.id, w.now); err != nil {
			t.Fatal(err)
		}
		w.lose = nil
		least := before
		for range 60 {
			w.askAll(people)
			w.run(2 * time.Second)
			least = min(least, w.active(people))
		}
		f := w.nodes[0].core.facts.room(roomID)
		if least != before {
			t.Errorf("declared at %d: %d of %d go on", by, least, before)
		}
		for _, id := range []crdt.NodeID{leaver.id, heir.id} {
			if got := w.nodes[0].core.heir(roomID, id); got != f.again[id].by {
				t.Errorf("declared at %d: %s is asked about sessions of %s, and %s has them", by, got, id, f.again[id].by)
			}
		}
	}
}

// TestWhatALostLeaversHeirHasIsRecovered: a leaver is lost half way, and so is its heir, and both are
// declared dead. Nobody says that all of the leaver is recovered before it is.
func TestWhatALostLeaversHeirHasIsRecovered(t *testing.T) {
	w := newWorldOf(t, []room.Settings{escrowSettings(90)}, "a", "a", "a", "a")
	w.run(10 * time.Second)
	leaver, heir, asked := w.nodes[1], w.nodes[2], w.nodes[3]
	w.lose = func(l letter) bool { return l.m.Kind == kindReceived && l.to == leaver.id }
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.until("handed over", 5*time.Second, func() bool {
		_, is := asked.core.facts.room(roomID).finals[leaver.id]
		return is
	})
	w.lostFor(leaver)
	w.lostFor(heir)
	w.run(time.Second)
	w.kill(w.nodes[0]) // whose word is needed
	w.run(time.Second)
	for _, m := range []*machine{leaver, heir} {
		if err := asked.core.DeclareDead(m.id, w.now); err != nil {
			t.Fatal(err)
		}
	}
	w.run(10 * time.Second)
	f := asked.core.facts.room(roomID)
	done, err := asked.core.allRecovered(leaver.id)
	if err != nil {
		t.Fatal(err)
	}
	if done && slices.Contains(asked.core.facts.unrecovered(f), leaver.id) {
		t.Errorf("all of %s is said to be recovered, and nobody has it", leaver.id)
	}
	for _, d := range *asked.core.shownDown.Load() {
		for _, r := range d.Rooms {
			if _, dead := asked.core.facts.dead[r.By]; dead {
				t.Errorf("%s is said to have what %s had, and is dead", r.By, d.Node)
			}
		}
	}
}

// TestAGiftToALeaverWhoseHeirLeaves: something is given to a leaver in a room that it never had, and
// does not arrive before the leaver's disk is lost and its heir, which has said that it has left, has
// left in turn. It is the heir's heir's.
func TestAGiftToALeaverWhoseHeirLeaves(t *testing.T) {
	w := newCatalogWorld(t, elsewhere(40), "a", "a", "a", "a")
	w.run(10 * time.Second)
	maker, leaver, heir, third := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	next := shopSettings(40)
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.lose = func(l letter) bool {                      // what is given in the new room arrives nowhere
		x, err := ticket.DecodeTransfer(l.m.Payload)
		return l.m.Kind == kindTransfer && err == nil && x.Room == next.ID
	}
	w.add(maker, next)
	w.until("room made", time.Second, func() bool {
		return maker.core.rooms[next.ID] != nil && maker.core.rooms[next.ID].Rights().Held.Places >= 7
	})
	maker.core.rooms[next.ID].give(leaver.id, ticket.Amount{Places: 7, Rate: 70}, w.now)
	w.post(maker, nil)
	w.until("heir says that it has left", 5*time.Second, func() bool {
		_, left := heir.core.facts.left[leaver.id]
		return left
	})
	w.lostFor(leaver)
	w.run(heirStays + time.Second)
	w.post(heir, heir.core.leaveTo(third.id, w.now))
	w.until("heir has left", 20*time.Second, func() bool { return heir.core.Left() })
	w.kill(heir)
	w.lose = nil
	w.run(2 * time.Minute)
	if got := w.heldAll(next.ID); got.Places != 40 {
		t.Errorf("%v are held, want 40", got)
	}
}
