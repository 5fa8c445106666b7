package node

import (
	"testing"
	"time"
)

// TestFirstRequestsAfterAdmission has a browser load what belongs to its first
// page, at the node that let it in and at another, before that node's loop has
// come round.
func TestFirstRequestsAfterAdmission(t *testing.T) {
	const visitors = 200
	w := newWorld(t, testSettings(4*visitors), "a", "a")
	here, there := w.nodes[0], w.nodes[1]
	people := w.crowd(visitors, func(int) *machine { return here })
	for i, p := range people {
		w.ask(p)
		if i%2 == 1 {
			p.at = there
		}
		w.ask(p)
	}
	for _, m := range there.core.Tick(w.now) {
		if m.To == here.id {
			w.receive(there, here, m)
		}
	}
	w.run(2 * time.Second)
	for _, m := range w.nodes {
		if got := m.core.order[0].status().Active; got != visitors {
			t.Errorf("active at node %d = %d, want %d: each counts once", m.id[0], got, visitors)
		}
	}
}
