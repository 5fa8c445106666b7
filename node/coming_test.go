package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// join starts another node, which the mesh does not know yet.
func (w *world) join(site string) *machine {
	m := &machine{id: crdt.NodeID{0x77, 0xbb}, site: site}
	w.nodes = append(w.nodes, m)
	w.start(m, escrowSettings(50))
	return m
}

// TestWhoIsReadyIsKnownOnADisk has the one node crash that a joiner could ask, just when that is ready.
func TestWhoIsReadyIsKnownOnADisk(t *testing.T) {
	for _, slow := range []time.Duration{0, 700 * time.Millisecond} {
		w := newWorld(t, escrowSettings(50), "a")
		host := w.nodes[0]
		host.disk.delay = slow
		x := w.join("b")
		for begun := w.now; !x.core.Ready(); w.run(10 * time.Millisecond) {
			if w.now.Sub(begun) > slow+300*time.Millisecond {
				t.Fatalf("with a disk that takes %v it is not ready after %v", slow, w.now.Sub(begun))
			}
		}
		w.cutOff = func(_, _ *machine) bool { return true }
		w.kill(host)
		w.start(host, escrowSettings(50))
		if _, exists := host.core.existing()[x.id]; !exists {
			t.Errorf("with a disk that takes %v the mesh does not know of a node that is ready", slow)
		}
	}
}

// TestWhoHasMetAMeshDoesNotBeginWithoutIt has a node be cut off while it joins.
func TestWhoHasMetAMeshDoesNotBeginWithoutIt(t *testing.T) {
	for _, site := range []string{"a", "b"} {
		w := newWorld(t, escrowSettings(50), "a", "a")
		deaf := true
		w.lose = func(l letter) bool { return deaf && l.to == crdt.NodeID{0x77, 0xbb} }
		x := w.join(site)
		w.run(500 * time.Millisecond)
		w.cutOff = func(a, b *machine) bool { return a == x || b == x }
		w.members()
		w.run(30 * time.Second)
		if x.core.Ready() {
			t.Errorf("site %s: it is ready, and knows nothing of the mesh", site)
		}
		deaf, w.cutOff = false, nil
		w.members()
		if w.run(2 * time.Second); !x.core.Ready() {
			t.Errorf("site %s: it is not ready once it is in reach again", site)
		}
	}
}

// TestWhoWasNeverReadyBeginsOnceMore has a node be told of facts before anybody knows it, and start again.
func TestWhoWasNeverReadyBeginsOnceMore(t *testing.T) {
	w := newStoppedWorld(t)
	w.keys = true
	w.begin(escrowSettings(50), "a")
	w.nodes[0].disk.delay = time.Hour
	x := w.join("a")
	w.run(2 * time.Second)
	if x.core.Ready() || len(x.disk.content()) == 0 {
		t.Fatalf("ready: %v, and %d entries on disk; want to be told of some", x.core.Ready(), len(x.disk.content()))
	}
	w.kill(x)
	w.lose = func(l letter) bool { return l.to == x.id }
	w.start(x, escrowSettings(50))
	w.run(time.Second)
	if n := x.core.replica.MapLen(); n > 0 || len(x.disk.content()) > 0 {
		t.Errorf("it knows %d facts, and has %d entries on disk, want none", n, len(x.disk.content()))
	}
}
