package node

import (
	"testing"
	"time"
)

// TestAFailedDiskRecallsLoans has visitors come to a node that has lent to its site's
// counter when its disk fails: the counter hands out nothing more of that, although the
// loans would be valid for seconds, and although the first word of it is lost.
func TestAFailedDiskRecallsLoans(t *testing.T) {
	w := newWorld(t, escrowSettings(3000), "a", "a", "a")
	w.run(20 * time.Second)
	lead := w.counterOf("a")
	m := w.other(lead)
	for range 30 {
		w.askAll(w.crowd(20, w.spread))
		w.run(100 * time.Millisecond)
	}
	room, stock := m.core.order[0], lead.core.order[0].counters.Load().loop.stock
	lent := func() (n int64) {
		for _, l := range w.nodes {
			if l != lead {
				n += l.core.order[0].rights.Lent()
			}
		}
		return n
	}
	if room.rights.Lent() == 0 || stock.Rest(w.now) == 0 {
		t.Fatalf("%d are lent and %d in stock, want some", room.rights.Lent(), stock.Rest(w.now))
	}
	failed := w.now
	w.lose = func(l letter) bool {
		return l.from == m.id && l.m.Kind == kindLoanAnswer && w.now.Sub(failed) < 150*time.Millisecond
	}
	m.disk.fails = true
	for m.core.fit() {
		if w.now.Sub(failed) > time.Second {
			t.Fatal("the node has not noticed that its disk is full")
		}
		w.askAll(w.crowd(20, w.spread))
		w.run(10 * time.Millisecond)
	}
	failed = w.now
	w.run(400 * time.Millisecond)
	later := w.crowd(60, w.spread)
	if in := w.askAll(later); in != 60 {
		t.Errorf("%d of 60 were let in on what the others have, want all", in)
	}
	for _, p := range later {
		if p.in && p.pass.Ticket.Anchor == m.id {
			t.Errorf("a ticket of the node was given %v after its disk had failed", w.now.Sub(failed))
			break
		}
	}
	w.run(time.Second)
	if n := room.rights.Lent(); n != 0 {
		t.Errorf("%d of the node's tickets are lent still", n)
	}
	w.lose = nil
	w.mend(m)
	for range 20 {
		w.someoneWaits(lead) // while nobody does, the node needs no counter
		w.askAll(w.crowd(20, at(m)))
		w.run(100 * time.Millisecond)
	}
	if room.rights.Lent() == 0 {
		t.Error("the node does not lend any more although its disk is well")
	}
	w.run(3 * time.Minute)
	if n := lent(); n != 0 {
		t.Errorf("%d tickets are lent when nobody comes any more", n)
	}
	w.holds(3000, 10_000, "at the end")
}
