package replica

import (
	"testing"
	"time"
)

// TestOnlyRelaysRememberWhoHasSummaries holds down what a node keeps of its
// mates. With hundreds of sites, all that each of them has heard of all others
// would be most of its memory.
func TestOnlyRelaysRememberWhoHasSummaries(t *testing.T) {
	m := newMesh(t, 1)
	m.sites(3, "a", "b", "c", "d", "e", "f")
	for _, x := range m.nodes {
		m.active(x, roomID(1), 1, 0)
	}
	m.run(2 * time.Minute) // time for every node's pull to reach every mate
	for _, x := range m.nodes {
		if got := len(x.Sites(roomID(1), m.now)); got != 6 {
			t.Errorf("node %s knows %d sites, want 6", x.peer.ID, got)
		}
		for _, l := range x.links {
			// One who follows knows what the relay has: it heard it from there.
			followed := l.peer.Site == x.peer.Site && l.sums.acked != nil && len(l.sums.sent) == 0
			if n := len(l.sums.acked); !x.lead.on && n > 0 && !(followed && m.node(l.peer.ID).lead.on) {
				t.Errorf("node %s, which leads nothing, remembers what %s has of %d sites", x.peer.ID, l.peer.ID, n)
			}
		}
	}
	m.noErrors()
}
