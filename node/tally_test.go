package node

import (
	"testing"
	"time"
)

// tallied returns what all nodes have counted of tickets.
func (w *world) tallied() (given, refused uint64) {
	for _, m := range w.nodes {
		s := m.core.shownRoom(roomID).status()
		given, refused = given+s.Tickets, refused+s.TicketsRefused
	}
	return given, refused
}

// TestTicketsAreCountedOnce: each visitor who is let in is one ticket at one node, under
// every policy, and nobody is counted as refused while there is nothing in the way.
func TestTicketsAreCountedOnce(t *testing.T) {
	for _, s := range []struct {
		name string
		w    *world
	}{
		{"escrow", newWorld(t, escrowSettings(20), "a", "a", "b")},
		{"counter", newWorld(t, counterSettings(20), "a", "a", "b")},
		{"even", newWorld(t, testSettings(20), "a", "a", "b")},
	} {
		people := s.w.crowd(60, s.w.spread)
		for range 5 {
			for _, p := range people {
				s.w.ask(p)
			}
			s.w.run(6 * time.Second)
		}
		in := s.w.active(people)
		if given, refused := s.w.tallied(); in == 0 || given != uint64(in) || refused != 0 {
			t.Errorf("%s: %d are in, and %d tickets were counted as given, %d as refused", s.name, in, given, refused)
		}
	}
}

// TestTicketsThatADiskRefuses: a node whose disk fails counts those who would have got in.
func TestTicketsThatADiskRefuses(t *testing.T) {
	w := newWorld(t, escrowSettings(20), "a")
	m := w.nodes[0]
	m.core.storeFailed(errDisk, w.now)
	for _, p := range w.crowd(3, at(m)) {
		if w.ask(p); p.in {
			t.Errorf("%s got in", p.name)
		}
		w.run(time.Second)
	}
	if given, refused := w.tallied(); given != 0 || refused != 3 {
		t.Errorf("%d tickets were counted as given, %d as refused, want none and 3", given, refused)
	}
}

// TestTicketsThatACounterWithholds: a node whose counter does not answer counts those who
// asked for a ticket of it.
func TestTicketsThatACounterWithholds(t *testing.T) {
	w := newWorld(t, counterSettings(20), "a", "a")
	m := w.other(w.counterOf("a"))
	w.lose = func(l letter) bool { return l.m.Kind == kindCall }
	for _, p := range w.crowd(3, at(m)) {
		if w.ask(p); p.in {
			t.Errorf("%s got in", p.name)
		}
		w.run(time.Second)
	}
	if given, refused := w.tallied(); given != 0 || refused != 3 {
		t.Errorf("%d tickets were counted as given, %d as refused, want none and 3", given, refused)
	}
}
