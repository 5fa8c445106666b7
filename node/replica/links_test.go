package replica

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// TestRelaysRememberLittleOfEachOther holds what a relay keeps of another one
// down to what the two tell each other: with hundreds of sites, all that the
// other has heard of all sites would be most of its memory.
func TestRelaysRememberLittleOfEachOther(t *testing.T) {
	const sites = 8
	m := newMesh(t, 1)
	for n := range sites {
		m.start(n, string(rune('a'+n)))
	}
	m.run(3 * time.Second)
	for _, x := range m.nodes {
		x.Add(crdt.Key{Room: roomID(1), Kind: crdt.Active}, 1, 0, m.now)
	}
	m.run(time.Minute) // time for everybody's pull to reach everybody
	for _, x := range m.nodes {
		if got := len(x.Sites(roomID(1), m.now)); got != sites {
			t.Errorf("node %s knows %d sites, want %d", x.peer.ID, got, sites)
		}
		for _, l := range x.links {
			if len(l.sums.acked) > 2 { // of ours, and of its own
				t.Errorf("node %s remembers what %s has of %d sites", x.peer.ID, l.peer.ID, len(l.sums.acked))
			}
		}
	}
}
