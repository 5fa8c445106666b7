package node

import (
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestTwoHeirsOfWhomOneLeaves has a node declared dead on both sides of a cut. The
// one who was named last leaves before it has heard of the other: its own heir
// steps back in its place, or nobody would ever recover.
func TestTwoHeirsOfWhomOneLeaves(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "b", "b", "b")
	w.run(20 * time.Second)
	lost := w.nodes[4]
	w.kill(lost)
	w.run(time.Second)
	w.cut = true
	w.members()
	w.run(5 * time.Second)
	first, leaver := w.nodes[0], w.nodes[2]
	for _, m := range []*machine{first, leaver} {
		if err := m.core.DeclareDead(lost.id, w.now); err != nil {
			t.Fatal(err)
		}
	}
	w.run(3 * time.Second)
	w.leaves(leaver)
	w.cut = false
	w.members()
	w.run(4 * time.Minute)
	if held, _ := w.rights(); held.Places != 90 || held.Rate != 10_000 {
		t.Errorf("those who live hold %+v, want all: %s has to recover", held, first.id)
	}
	for _, m := range w.nodes {
		if m.core != nil && m.core.facts.room(roomID).again[lost.id].by != first.id {
			t.Errorf("%s has it that %s recovered, want %s", m.id, m.core.facts.room(roomID).again[lost.id].by, first.id)
		}
	}
}

// leaves has a node leave and end.
func (w *world) leaves(m *machine) {
	w.t.Helper()
	if err := m.core.Leave(w.now); err != nil {
		w.t.Fatal(err)
	}
	for range 100 {
		if w.run(100 * time.Millisecond); m.core.Left() {
			w.kill(m)
			return
		}
	}
	w.t.Fatalf("node %s has not left within 10 s", m.id)
}

// TestWhoHasLeftIsNotDead has an operator declare a node dead that has left, at a
// node that has not heard of it. Its rights are with its heir, and nowhere else.
func TestWhoHasLeftIsNotDead(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "b", "c")
	w.run(20 * time.Second)
	leaver, giver, far := w.nodes[0], w.nodes[2], w.nodes[3]
	w.cutOff = func(a, b *machine) bool { return a == far || b == far }
	w.members()
	w.run(5 * time.Second)
	// A gift to it is still on its way, and comes to its heir.
	w.lose = func(l letter) bool { return l.m.Kind == kindTransfer && l.from == giver.id }
	giver.core.order[0].give(leaver.id, ticket.Amount{Places: 4}, w.now)
	w.leaves(leaver)
	w.lose = nil
	w.run(10 * time.Second)
	if held, _ := w.rights(); held.Places != 90 {
		t.Fatalf("%d places are held after a node has left, want 90", held.Places)
	}
	if err := far.core.DeclareDead(leaver.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Second)
	w.cutOff = nil
	w.members()
	for range 8 {
		w.run(30 * time.Second)
		if held, _ := w.rights(); held.Places > 90 || held.Rate > 10_000 {
			t.Fatalf("%+v are held, more than were ever made", held)
		}
	}
	if heir := far.core.heir(roomID, leaver.id); heir != w.nodes[1].id {
		t.Errorf("%s is said to be its heir, want %s", heir, w.nodes[1].id)
	}
	if err := far.core.DeclareDead(leaver.id, w.now); err == nil {
		t.Error("it was declared dead again though it is known to have left")
	}
}

// TestHeirsWhoNameEachOther has two nodes declare each other dead on the two sides
// of a cut, and end. A third has to be able to step in.
func TestHeirsWhoNameEachOther(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "b", "c")
	w.run(20 * time.Second)
	one, two, third := w.nodes[0], w.nodes[1], w.nodes[2]
	w.cutOff = func(a, b *machine) bool { return a != third && b != third }
	w.members()
	w.run(2 * time.Second)
	if err := one.core.DeclareDead(two.id, w.now); err != nil {
		t.Fatal(err)
	}
	if err := two.core.DeclareDead(one.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(time.Second)
	w.kill(one)
	w.kill(two)
	w.run(time.Second)
	for _, m := range []*machine{one, two} {
		if err := third.core.DeclareDead(m.id, w.now); err != nil {
			t.Fatal(err)
		}
	}
	w.run(4 * time.Minute)
	if held, _ := w.rights(); held.Places != 90 || held.Rate != 10_000 {
		t.Errorf("who lives holds %+v, want all", held)
	}
}

// TestHeirWhoLeavesToTheDead has an operator say that a node is dead at the one that
// was passing its rights on to it. Both are gone then, and each was to be the other's
// heir: a third has to step in.
func TestHeirWhoLeavesToTheDead(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "b", "b")
	w.run(20 * time.Second)
	lost, leaver := w.nodes[1], w.nodes[2]
	w.lose = func(l letter) bool { return l.m.Kind == kindHandover }
	if err := leaver.core.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	w.run(2 * time.Second)
	if heir := leaver.core.leave.heir; heir != lost.id {
		t.Fatalf("it leaves to %s, want %s", heir, lost.id)
	}
	w.kill(lost)
	w.lose = nil
	w.run(time.Second)
	if err := leaver.core.DeclareDead(lost.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(10 * time.Second)
	if !leaver.core.Left() {
		t.Fatal("it has not left")
	}
	w.kill(leaver)
	w.run(4 * time.Minute)
	if held, _ := w.rights(); held.Places != 90 || held.Rate != 10_000 {
		t.Errorf("who lives holds %+v, want all", held)
	}
}

// TestLeavingGoesOnAfterACrash stops a node that has frozen its rights before its
// heir has them. It starts again, and they get there without anybody's help.
func TestLeavingGoesOnAfterACrash(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "b")
	w.run(20 * time.Second)
	leaver := w.nodes[1]
	w.lose = func(l letter) bool { return l.m.Kind == kindHandover }
	if err := leaver.core.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	w.run(2 * time.Second)
	if leaver.core.Left() {
		t.Fatal("it has left though nothing arrived")
	}
	heir := leaver.core.leave.heir
	w.kill(leaver)
	w.lose = nil
	w.run(time.Second)
	w.start(leaver, escrowSettings(90))
	w.run(20 * time.Second)
	if !leaver.core.Left() {
		t.Fatal("it has not left")
	}
	if got := w.nodes[2].core.heir(roomID, leaver.id); got != heir {
		t.Errorf("%s is said to be its heir, want %s", got, heir)
	}
	w.kill(leaver)
	w.run(time.Minute)
	if held, _ := w.rights(); held.Places != 90 || held.Rate != 10_000 {
		t.Errorf("those who stay hold %+v, want all", held)
	}
}

// TestNoWordIsLeftOutWhileRoomsAreHandedOver looks at who has to speak of a dead
// node while another one has left one room of two.
func TestNoWordIsLeftOutWhileRoomsAreHandedOver(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "b")
	w.run(20 * time.Second)
	leaver := w.nodes[1].id
	f := &w.nodes[0].core.facts
	speaks := func(r *roomFacts) bool {
		return slices.Contains(f.speakers(r), leaver)
	}
	other := &roomFacts{}
	if !speaks(f.room(roomID)) || !speaks(other) {
		t.Error("a node that lives has no word")
	}
	f.left[leaver] = w.nodes[0].id
	if !speaks(f.room(roomID)) {
		t.Error("a node has no word though its last ledger is missing")
	}
	if speaks(other) {
		t.Error("the word of who never kept a ledger is waited for")
	}
	if f.handedOver(leaver) {
		t.Error("all is handed over though a ledger is missing")
	}
}

// TestWhoseHeirLeftHasLeft: of a dead node's last ledger a node has not heard, and of that of its heir,
// which had taken over. So it is not recovered, but with whoever has its rights by now.
func TestWhoseHeirLeftHasLeft(t *testing.T) {
	leaver, heir, next := crdt.NodeID{1}, crdt.NodeID{2}, crdt.NodeID{3}
	r := &roomFacts{finals: map[crdt.NodeID]ticket.Final{heir: {Node: heir, Heir: next, Inherited: []ticket.Inherited{{Leaver: leaver}}}}}
	r.takeFinals()
	f := &facts{dead: map[crdt.NodeID]crdt.NodeID{leaver: {4}}}
	if got := f.unrecovered(r); len(got) > 0 {
		t.Errorf("%v are to be recovered", got)
	}
	f.dead[next] = crdt.NodeID{4}
	if got := f.unrecovered(r); !slices.Equal(got, []crdt.NodeID{leaver, heir, next}) {
		t.Errorf("%v are to be recovered, want all three", got)
	}
}
