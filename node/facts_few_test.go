package node

import (
	"maps"
	"testing"

	"github.com/ropeline/ropeline/crdt"
)

// TestPerNodeIsAMap holds perNode against a map, from none over few to many, and back.
func TestPerNodeIsAMap(t *testing.T) {
	var is perNode[int]
	want := map[crdt.NodeID]int{}
	for i := range 4 * fewNodes {
		id := crdt.NodeID{byte(i % (2 * fewNodes))} // each is set twice
		if is.has(id) != (i >= 2*fewNodes) {
			t.Fatalf("has %d before entry %d: %v", id, i, is.has(id))
		}
		is.set(id, i)
		want[id] = i
		if got := maps.Collect(is.all()); !maps.Equal(got, want) {
			t.Fatalf("after entry %d: %v, want %v", i, got, want)
		}
		if got, known := is.get(id); !known || got != i || is.of(id) != i {
			t.Fatalf("entry %d is %d, %v", i, got, known)
		}
	}
	for i := range 2 * fewNodes {
		id := crdt.NodeID{byte(i)}
		is.keep(id, 0, false)
		is.keep(id, 0, false)
		delete(want, id)
		if got := maps.Collect(is.all()); !maps.Equal(got, want) || is.has(id) || is.any() != (len(want) > 0) {
			t.Fatalf("without %d: %v, want %v", i, got, want)
		}
		if len(want) <= fewNodes/2 && is.many != nil {
			t.Fatalf("%d are in a map", len(want))
		}
	}
	if n, known := is.get(crdt.NodeID{99}); known || n != 0 {
		t.Errorf("of a node that was never set: %d, %v", n, known)
	}
}
