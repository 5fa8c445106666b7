package node

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// TestANewMeshIsFurnishedSoon starts all nodes of a mesh at once: each site has rights
// within a second and a half, and they stay where they are.
func TestANewMeshIsFurnishedSoon(t *testing.T) {
	for _, each := range []int{1, 3, 10} {
		t.Run(fmt.Sprint(each, " sites of ", each), func(t *testing.T) {
			w := &world{t: t, now: time.Unix(1_700_000_000, 0), rng: rand.New(rand.NewPCG(1, 2)), delay: 20 * time.Millisecond}
			for i := range each * each {
				m := &machine{id: crdt.NodeID{byte(i + 1), 0xaa}, site: fmt.Sprint(i / each), found: i == 0}
				m.disk.delay = 10 * time.Millisecond
				w.nodes = append(w.nodes, m)
				w.start(m, escrowSettings(1000))
			}
			w.run(1500 * time.Millisecond)
			for _, m := range w.nodes {
				if !m.core.Ready() || !m.core.Furnished() {
					t.Errorf("node %d: ready %v, furnished %v", m.id[0], m.core.Ready(), m.core.Furnished())
				}
			}
			w.run(8600 * time.Millisecond)
			sites := map[string]int64{}
			for _, m := range w.nodes {
				sites[m.site] += m.core.order[0].Rights().Held.Places
			}
			for site, held := range sites {
				if part := int64(1000 / each); held < part || held > part+1 {
					t.Errorf("site %s holds %d places, want %d", site, held, part)
				}
			}
		})
	}
}
