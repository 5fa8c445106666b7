package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
)

// TestANewMeshIsFurnishedSoon starts all nodes of a mesh at once: each site has rights
// within a second and a half, and they stay where they are.
func TestANewMeshIsFurnishedSoon(t *testing.T) {
	for _, each := range []int{1, 3, 10} {
		if testing.Short() && each > 3 {
			continue
		}
		t.Run(fmt.Sprint(each, " sites of ", each), func(t *testing.T) {
			w := newStoppedWorld(t)
			w.delay = 20 * time.Millisecond
			for i := range each * each {
				m := &machine{id: crdt.NodeID{byte(i + 1), 0xaa}, site: fmt.Sprint(i / each), found: i == 0}
				m.disk.delay = 10 * time.Millisecond
				w.nodes = append(w.nodes, m)
				w.start(m, escrowSettings(1000))
			}
			w.run(1500 * time.Millisecond)
			for _, m := range w.nodes {
				if !m.core.Ready() || !m.core.Furnished(w.now) {
					t.Errorf("node %d: ready %v, furnished %v", m.id[0], m.core.Ready(), m.core.Furnished(w.now))
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

// TestANewNodeKnowsTheCounterBeforeItServes has nodes join whom their site sees to be
// ready a moment late. Some take themselves for the counter until they hear of it;
// none serves before, and the first visitor of each gets in.
func TestANewNodeKnowsTheCounterBeforeItServes(t *testing.T) {
	misled := 0
	for i := range 8 {
		w := newWorld(t, escrowSettings(20), "a")
		old := w.nodes[0]
		w.run(2 * time.Second)
		m := &machine{id: crdt.NodeID{byte(i + 2), 0xaa}, site: "a"}
		w.nodes = append(w.nodes, m)
		w.start(m, escrowSettings(20))
		leads := func(m *machine) bool {
			k := m.core.order[0].counters.Load()
			return k != nil && k.leads()
		}
		seen := false
		for end := w.now.Add(3 * time.Second); !m.core.Ready() || !m.core.Furnished(w.now); {
			seen = seen || leads(m)
			if w.run(10 * time.Millisecond); w.now.After(end) {
				t.Fatalf("node %d: not furnished after 3 s", i)
			}
			if late := w.now.Before(end.Add(-2700 * time.Millisecond)); late {
				old.core.SetPeers([]replica.Peer{{ID: m.id, Boot: m.boot, Site: "a"}}, w.now)
			} else {
				w.members()
			}
		}
		if leads(m) || !leads(old) {
			t.Errorf("node %d: leads %v, the counter so far %v", i, leads(m), leads(old))
		}
		if v := w.decide(m, Pass{}, false); !v.Admit {
			t.Errorf("node %d: the first visitor waits", i)
		}
		if seen {
			misled++
		}
	}
	if misled == 0 {
		t.Error("no node took itself for the counter: nothing was shown")
	}
}
