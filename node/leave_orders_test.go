package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// TestNobodyTellsANodeThatHasLeft: an operator who says something at a node that leaves is either
// refused, or all others hear of it, whatever the moment.
func TestNobodyTellsANodeThatHasLeft(t *testing.T) {
	orders := map[string]struct {
		give func(c *Core, w *world) error
		held func(c *Core) bool
	}{
		"a limit": {
			func(c *Core, w *world) error { return c.Configure(escrowSettings(77), w.now) },
			func(c *Core) bool { return c.facts.room(roomID).limits.Places == 77 },
		},
		"a death": {
			func(c *Core, w *world) error { return c.DeclareDead(w.nodes[3].id, w.now) },
			func(c *Core) bool { _, dead := c.facts.dead[crdt.NodeID{4, 0xaa}]; return dead },
		},
		"the end of the room": {
			func(c *Core, w *world) error { return c.Retire(roomID, w.now) },
			func(c *Core) bool { return c.facts.room(roomID).retired },
		},
	}
	for name, order := range orders {
		accepted, refused := 0, 0
		for moment := time.Duration(0); moment < 4*time.Second; moment += 200 * time.Millisecond {
			w := newWorld(t, escrowSettings(60), "a", "b", "b", "b")
			w.run(5 * time.Second)
			w.kill(w.nodes[3])
			w.members()
			leaver := w.nodes[0]
			if err := leaver.core.Leave(w.now); err != nil {
				t.Fatal(err)
			}
			for end := w.now.Add(moment); w.now.Before(end) && !leaver.core.Left(); {
				w.run(10 * time.Millisecond)
			}
			if leaver.core.Left() {
				break
			}
			if order.give(leaver.core, w) != nil {
				refused++
				continue
			}
			accepted++
			for range 1000 {
				if w.run(10 * time.Millisecond); leaver.core.Left() {
					break
				}
			}
			w.kill(leaver)
			w.run(5 * time.Second)
			if !order.held(w.nodes[1].core) || !order.held(w.nodes[2].core) {
				t.Errorf("%s, said %v after the node began to leave, is not known to all others", name, moment)
			}
		}
		if accepted == 0 || refused == 0 {
			t.Errorf("%s: accepted %d times and refused %d times, want some of both", name, accepted, refused)
		}
	}
}
