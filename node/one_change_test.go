package node

import (
	"testing"
	"time"
)

// TestOneChangeIsLittleWork counts what the step of the loop takes that has most to do after one thing has changed: some for
// each room and each node, and nothing for each room at each node. How long the longest step is at the documented size is
// what BenchmarkOneChange measures.
func TestOneChangeIsLittleWork(t *testing.T) {
	for _, size := range []struct{ rooms, nodes uint64 }{{30, 6}, {60, 6}, {30, 60}} {
		m := newLargeMesh(t, int(size.rooms), int(size.nodes))
		m.counting = true
		most := work{objects: 300 + 40*(size.rooms+size.nodes), bytes: 64<<10 + 3<<10*(size.rooms+size.nodes)}
		for _, c := range oneChanges {
			m.most = work{}
			for i := range 2 {
				c.change(t, m, i)
				m.run(time.Second)
			}
			if m.most.max(most) != most {
				t.Errorf("%d rooms, %d nodes, %s: %+v in one step, want %+v at most", size.rooms, size.nodes, c.name, m.most, most)
			}
		}
	}
}
