package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestARoomThatWasRetired ends a room with visitors inside, at a node that did not make
// its rights: nobody is let in any more, what is inside runs out, and neither a restart
// of nodes that found nothing nor other limits bring it back.
func TestARoomThatWasRetired(t *testing.T) {
	w := newWorld(t, escrowSettings(60), "a", "a", "b")
	w.run(20 * time.Second)
	people := w.crowd(40, w.spread)
	if in := w.askAll(people); in != 40 {
		t.Fatalf("%d of 40 were let in", in)
	}
	w.run(time.Second)
	if err := w.nodes[2].core.Retire(roomID, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Second)
	late := w.crowd(10, w.spread)
	if in := w.askAll(late); in != 0 {
		t.Errorf("%d were let into a retired room", in)
	}
	w.run(70 * time.Second)
	if n := w.active(people); n != 0 {
		t.Errorf("%d are inside a session after the room was retired", n)
	}
	for _, m := range w.nodes[1:] {
		w.kill(m)
		w.start(m, escrowSettings(80))
	}
	w.run(3 * time.Minute)
	for _, m := range w.nodes {
		if err := m.core.Configure(escrowSettings(100), w.now); err != nil {
			t.Fatal(err)
		}
	}
	w.run(30 * time.Second)
	if in := w.askAll(w.crowd(10, w.spread)); in != 0 {
		t.Errorf("%d were let into a retired room", in)
	}
	for _, m := range w.nodes {
		r := m.core.order[0]
		if is := r.Rights(); is.Free != (ticket.Amount{}) || len(m.core.order) != 1 {
			t.Errorf("node %d: %+v, want nothing free", m.id[0], is)
		}
		if got := m.core.facts.minted(roomID); got != (ticket.Amount{Places: 60, Rate: 10_000}) || m.core.facts.minted(r.id) != got.Sub(got) && r.id != roomID {
			t.Errorf("node %d: %+v are minted, want no more than before", m.id[0], got)
		}
	}
}

// TestARoomInPlaceOfARetiredOne: a new id on the same path is a new room.
func TestARoomInPlaceOfARetiredOne(t *testing.T) {
	old := escrowSettings(60)
	w := newWorld(t, old, "a", "b")
	w.run(10 * time.Second)
	if err := w.nodes[1].core.Retire(roomID, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Second)
	next := escrowSettings(30)
	next.ID[0]++
	for _, m := range w.nodes {
		w.kill(m)
		w.start(m, next)
	}
	w.run(ticket.NewFor)
	if peak := w.press(w.crowd(50, w.spread), 20*time.Second); peak != 30 {
		t.Errorf("%d were inside at most, want 30", peak)
	}
	w.holds(30, 10_000, "in the new room")
}

// TestSessionsOfARoomThatIsMadeAgain: a node that hears of a room before it hears how long
// its sessions are, and has the one before in its file, goes by the file from the
// beginning. The default would be remembered as a session that leases may last, and keep
// places aside for that long after a restart.
func TestSessionsOfARoomThatIsMadeAgain(t *testing.T) {
	s := escrowSettings(60)
	s.SessionDuration = 20 * time.Second
	w := newWorld(t, s, "a")
	w.run(10 * time.Second)
	c := w.nodes[0].core
	r := newRoom(c, restingSettings(successor(roomID), noFacts))
	r.succeed(c.order[0])
	r.open(w.now)
	if longest := r.rights.Longest(); longest != s.SessionDuration {
		t.Errorf("leases may last %v, want %v", longest, s.SessionDuration)
	}
}

// TestTwoFounders: two meshes were founded apart, and meet while both are full. Each
// had the limit for itself; from then on nobody is let in beyond one, and one of them
// burns what is too much once it is free.
func TestTwoFounders(t *testing.T) {
	w := newWorld(t, escrowSettings(50), "a", "a")
	w.cutOff = func(a, b *machine) bool { return a.id[0] < 10 != (b.id[0] < 10) }
	second := &machine{id: [16]byte{0x11, 0xaa}, site: "b", found: true}
	w.nodes = append(w.nodes, second)
	w.start(second, escrowSettings(50))
	w.run(20 * time.Second)
	w.holds(100, 20_000, "in two meshes")
	people := w.crowd(150, w.spread)
	if peak := w.press(people, 10*time.Second); peak != 100 {
		t.Errorf("%d were inside both, want 100", peak)
	}
	w.cutOff = nil
	w.members()
	w.run(3 * time.Second)
	if in := w.askAll(w.crowd(20, w.spread)); in != 0 {
		t.Errorf("%d were let in after they met, with 100 inside and a limit of 50", in)
	}
	w.run(time.Minute) // who is inside leaves
	if peak := w.press(people, 30*time.Second); peak > 50 || peak < 49 {
		t.Errorf("%d were inside at most once all had left, want 50", peak)
	}
	w.run(2 * time.Minute)
	w.holds(50, 10_000, "in the end")
	minter := w.nodes[0].core.order[0].Rights().Minter
	for _, m := range w.nodes {
		if is := m.core.order[0].Rights(); is.Minter != minter || is.MintedByAll.Places != 50 {
			t.Errorf("node %d: %+v, want one minter of 50", m.id[0], is)
		}
	}
}

// minted returns what was minted in a room, as far as is known.
func (f *facts) minted(id crdt.RoomID) (sum ticket.Amount) {
	for _, a := range f.room(id).mintedByEach() {
		sum = sum.Add(a)
	}
	return sum
}
