package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/transport"
)

// timedMesh knows of everybody how their clock stands.
type timedMesh struct{ alone }

func (timedMesh) Offset(transport.PeerID) (time.Duration, bool) { return 0, true }

// TestNodesCompareClocksBeforeAnythingElse: a peer whose clock is not known is waited for, and not for ever.
func TestNodesCompareClocksBeforeAnythingElse(t *testing.T) {
	a, mate := awaiting{site: "a", since: noon}, []transport.Peer{{Site: "a", State: transport.Alive}}
	for at, want := range map[time.Duration]bool{0: true, timing - time.Millisecond: true, timing: false} {
		if a.named = noon; a.on(mate, alone{}, noon.Add(at)) != want {
			t.Errorf("after %v the node waits: %v, want %v", at, !want, want)
		}
	}
	if a.on(mate, timedMesh{}, noon) {
		t.Error("a node whose clock was compared waits")
	}
}

// TestAwaiting: a starting node waits until somebody is named, and a moment longer if
// none of its own site is.
func TestAwaiting(t *testing.T) {
	far := transport.Peer{Site: "b", State: transport.Alive}
	mate := transport.Peer{Site: "a", State: transport.Alive}
	dead := transport.Peer{Site: "a", State: transport.Failed}
	for name, c := range map[string]struct {
		patience time.Duration
		news     [][]transport.Peer // one every 100 ms
		want     int                // which of them ends it
	}{
		"who waits for nobody":        {0, [][]transport.Peer{nil}, 0},
		"nobody comes":                {200 * time.Millisecond, [][]transport.Peer{nil, nil, nil}, 2},
		"a mate is there":             {time.Second, [][]transport.Peer{nil, {far, mate}}, 1},
		"a mate is named last":        {time.Second, [][]transport.Peer{{far}, {far}, {far, mate}}, 2},
		"others only":                 {time.Second, [][]transport.Peer{{far}, {far}, {far, dead}, {far}, {far}}, 3},
		"others, when patience is up": {100 * time.Millisecond, [][]transport.Peer{{far}, {far}, {far}, {far}}, 3},
	} {
		a := awaiting{site: "a", patience: c.patience, since: noon}
		ended := -1
		for i, members := range c.news {
			if !a.on(members, timedMesh{}, noon.Add(time.Duration(i)*100*time.Millisecond)) {
				ended = i
				break
			}
		}
		if ended != c.want {
			t.Errorf("%s: over with news %d, want %d", name, ended, c.want)
		}
	}
}
