package node

import (
	"maps"
	"testing"
	"time"
)

// TestOwnCountsAreRead lets visitors in by and by, and compares what views of their
// nodes are built from with what the rows count: a node reads its own anew only where
// they may have changed.
func TestOwnCountsAreRead(t *testing.T) {
	w := newWorld(t, testSettings(40), "a", "a", "b")
	people := w.crowd(40, w.spread)
	some := 0
	for i, p := range people {
		w.ask(p)
		w.run(time.Duration(300+200*(i%8)) * time.Millisecond)
		for _, n := range w.nodes {
			r := n.core.order[0]
			r.look(w.now)
			var want map[int64]int64
			n.core.replica.OwnAdmitted(&want, r.id, r.mine.tick-mineTicks, r.mine.tick+1)
			if got := r.ours; r.mine.tick > 0 && !maps.Equal(got, want) {
				t.Fatalf("after %d visitors: a view is built from %v, the row counts %v", i+1, got, want)
			}
			some += len(want)
		}
	}
	if some == 0 {
		t.Error("no node has counted anybody")
	}
}
