package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestAGiftOfARecoveredLeaverIsTakenOnce: a gives something to b, which never arrives, and leaves to h,
// which is lost; both are recovered, and what a gave is among it, since nobody has got it. Meanwhile b,
// which had begun to leave to c, was down: c takes over from it now. A node joins that was not there
// when a was refused, and c leaves to it. It must not take the gift to b, neither from the last ledger
// of a nor from a itself, whose process was killed before it ended and is started again.
func TestAGiftOfARecoveredLeaverIsTakenOnce(t *testing.T) {
	for _, back := range []bool{false, true} {
		giftOfARecoveredLeaver(t, back)
	}
}

func giftOfARecoveredLeaver(t *testing.T, back bool) {
	w := newWorld(t, escrowSettings(60), "a", "a", "a", "a", "a")
	w.run(10 * time.Second)
	r, a, b, c, h := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3], w.nodes[4]
	w.lose = func(l letter) bool {
		return l.from == a.id && l.to == b.id && l.m.Kind == kindTransfer || l.from == b.id && l.m.Kind == kindHandover && b.boot == 1
	}
	a.core.order[0].give(b.id, ticket.Amount{Places: 7, Rate: 70}, w.now)
	w.post(a, nil)
	w.run(100 * time.Millisecond)
	w.post(b, b.core.leaveTo(c.id, w.now)) // after c has agreed
	w.run(200 * time.Millisecond)
	if !b.core.order[0].leaving() {
		t.Fatal("b does not leave")
	}
	w.kill(b)
	w.run(time.Second)
	w.post(a, a.core.leaveTo(h.id, w.now))
	for !a.core.Left() {
		w.run(10 * time.Millisecond)
	}
	w.kill(a)
	w.kill(h)
	w.run(5 * time.Second)
	if err := r.core.DeclareDead(h.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Second)
	w.start(b, escrowSettings(60))
	w.run(30 * time.Second)
	held := func() (sum int64) {
		for _, m := range w.nodes {
			if m.core != nil {
				sum += m.core.order[0].Rights().Held.Places
			}
		}
		return sum
	}
	if n := held(); n != 60 {
		t.Errorf("%d are held when the lost are recovered, want 60", n)
	}
	if b.core.Left() {
		w.kill(b)
	}
	n := &machine{id: crdt.NodeID{9, 0xaa}, site: "a"}
	w.nodes = append(w.nodes, n)
	w.start(n, escrowSettings(60))
	w.run(10 * time.Second)
	w.post(c, c.core.leaveTo(n.id, w.now))
	for end := w.now.Add(20 * time.Second); w.now.Before(end) && !c.core.Left(); {
		w.run(10 * time.Millisecond)
	}
	w.kill(c)
	if back { // the leaver's process was killed before it ended by itself, and is started again
		w.start(a, escrowSettings(60))
	}
	w.run(20 * time.Second)
	if n := held(); n != 60 {
		t.Errorf("a starts again: %v; %d are held in the end, want 60", back, n)
	}
}

// TestNothingIsGivenToWhomNobodyCanDeclareDead: a node joins whose disk is slow, and is lost before it
// has told anybody that it may own rights. What it was given meanwhile can be recovered.
func TestNothingIsGivenToWhomNobodyCanDeclareDead(t *testing.T) {
	w := newWorld(t, escrowSettings(60), "a", "a", "a")
	w.run(10 * time.Second)
	n := &machine{id: crdt.NodeID{9, 0xaa}, site: "a"}
	n.disk.delay = 5 * time.Second
	w.nodes = append(w.nodes, n)
	w.start(n, escrowSettings(60))
	w.until("ready", 20*time.Second, func() bool { return n.core.Ready() })
	w.nodes[1].core.order[0].give(n.id, ticket.Amount{Places: 5, Rate: 50}, w.now)
	w.post(w.nodes[1], nil)
	w.run(2 * time.Second)
	w.lostFor(n)
	w.run(10 * time.Second)
	err := w.nodes[0].core.DeclareDead(n.id, w.now)
	w.run(3 * time.Minute)
	if got := w.heldAll(roomID); got.Places != 60 {
		t.Errorf("%v are held, want 60; declared dead: %v", got, err)
	}
}
