package node

import (
	"testing"
	"time"
)

// TestWhoComesToALateLoopIsLetIn: on a busy machine the loop comes late, and its views are older than is believed. Whoever comes by
// then finds the places that are free, there and at nodes that ask it.
func TestWhoComesToALateLoopIsLetIn(t *testing.T) {
	for _, late := range []time.Duration{viewKept / 2, viewKept + 10*time.Millisecond, 5 * time.Second} {
		for _, at := range []int{0, 1} {
			w := newWorld(t, escrowSettings(20), "a", "a")
			w.run(10 * time.Second)
			for range 20 {
				if w.decide(w.nodes[at], Pass{}, false); w.nodes[at].core.order[0].Rights().Free.Places == 1 {
					break // the other one has the rest
				}
			}
			w.nodes[at].next, w.nodes[0].next = w.now.Add(time.Minute), w.now.Add(time.Minute)
			w.run(late)
			for range 3 {
				if v := w.decide(w.nodes[at], Pass{}, false); !v.Admit {
					t.Errorf("%v late, node %d: a visitor waits", late, at)
				}
			}
		}
	}
}
