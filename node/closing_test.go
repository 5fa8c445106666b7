package node

import (
	"sync"
	"testing"
	"testing/synctest"
)

// TestNobodyWaitsAtAClosedNode has requests come to the tables of those who wait
// when Close has emptied them: they looked whether the node was open before it.
func TestNobodyWaitsAtAClosedNode(t *testing.T) {
	c, old, _, now := asker(t)
	c.Close(now)
	if c.asks.add(sessionKey{c.order[0].id, old.Ticket}, &pending{room: c.order[0], pass: old, at: now}) {
		t.Error("a request waits for an anchor, and nobody will answer it")
	}
	w := newWorld(t, counterSettings(10), "a", "a")
	m := w.nodes[0]
	m.core.Close(w.now)
	r := m.core.order[0]
	if r.counters.Load().apply(&pending{room: r, at: w.now}, contested) {
		t.Error("a request waits for a ticket, and nobody will answer it")
	}
	for _, c := range []*Core{c, m.core} {
		if c.pend(anchorWord, &pending{room: c.order[0], pass: old, at: now}) || c.pendings.count.Load() != 0 {
			t.Errorf("%d requests wait at a closed node", c.pendings.count.Load())
		}
	}
}

// TestCloseAnswersAll closes a node while requests come. A request without an
// answer would be a deadlock.
func TestCloseAnswersAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			c, old, _, now := asker(t)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { c.order[0].Decide(old, true, now) })
			}
			c.Close(now)
			wg.Wait()
		}
	})
}
