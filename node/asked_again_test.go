package node

import (
	"testing"
	"time"
)

// TestWhatAnAnchorSaidIsRemembered has a visitor's answer lost that came after the anchor
// was asked. The next request has the old pass again, and the anchor is out of reach: the
// session goes on all the same, and takes no second place.
func TestWhatAnAnchorSaidIsRemembered(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "a")
	w.run(20 * time.Second)
	p := w.crowd(1, func(int) *machine { return w.nodes[0] })[0]
	if w.askAll([]*person{p}) != 1 {
		t.Fatal("not let in")
	}
	old, anchor := p.pass, w.machine(p.pass.Ticket.Anchor)
	others := [2]*machine{}
	for i, k := 0, 0; i < len(w.nodes); i++ {
		if w.nodes[i] != anchor {
			others[k] = w.nodes[i]
			k++
		}
	}
	p.at = others[0]
	for !w.now.After(old.LeaseEnd.Add(time.Second)) {
		w.run(10 * time.Second)
		w.ask(p)
	}
	last := others[1]
	if v := w.decide(last, old, true); !v.Admit || v.Pass.Ticket != old.Ticket {
		t.Fatalf("the anchor is there: let in %t by %+v, want %+v", v.Admit, v.Pass.Ticket, old.Ticket)
	}
	w.cutOff = func(a, b *machine) bool { return a == anchor || b == anchor }
	w.run(2 * time.Second)
	if v := w.decide(last, old, true); !v.Admit || v.Pass.Ticket != old.Ticket {
		t.Errorf("the anchor is silent: let in %t by %+v, want %+v", v.Admit, v.Pass.Ticket, old.Ticket)
	}
}
