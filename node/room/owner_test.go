package room

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ropeline/ropeline/crdt"
)

func TestOwnerSpreadsEvenly(t *testing.T) {
	const visitors, nodes = 100_000, 10
	counts := map[crdt.NodeID]int{}
	for n := range visitors {
		counts[Owner([]byte("key"), crdt.RoomID{1}, visitorID(n), nodeIDs(nodes))]++
	}
	// The count at a node is binomial; five deviations either way.
	mean := float64(visitors) / nodes
	slack := 5 * math.Sqrt(mean*(1-1.0/nodes))
	for id, n := range counts {
		if math.Abs(float64(n)-mean) > slack {
			t.Errorf("node %s owns %d, want %.0f ± %.0f", id, n, mean, slack)
		}
	}
	if len(counts) != nodes {
		t.Errorf("%d nodes own somebody, want %d", len(counts), nodes)
	}
}

// TestChooserChoosesLikeOwner compares the two for rooms as a whole.
func TestChooserChoosesLikeOwner(t *testing.T) {
	for n := range 100 {
		id, nodes := crdt.RoomID{byte(n)}, nodeIDs(n%7)
		if got, want := NewChooser([]byte("key"), id).Of(nodes), Owner([]byte("key"), id, [16]byte{}, nodes); got != want {
			t.Fatalf("of %d nodes: chose %s, want %s", len(nodes), got, want)
		}
	}
}

func TestOwnerMovesFew(t *testing.T) {
	const visitors = 10_000
	all := nodeIDs(10)
	gone := all[3]
	less := append(append([]crdt.NodeID{}, all[:3]...), all[4:]...)
	moved := 0
	for n := range visitors {
		before := Owner([]byte("key"), crdt.RoomID{}, visitorID(n), all)
		after := Owner([]byte("key"), crdt.RoomID{}, visitorID(n), less)
		if before != gone && before != after {
			t.Fatalf("visitor %d moved although its owner stayed", n)
		}
		if before != after {
			moved++
		}
	}
	if moved == 0 || moved > visitors/5 {
		t.Errorf("%d of %d moved when one node of ten went", moved, visitors)
	}
}

func TestOwnerDependsOnAllItIsGiven(t *testing.T) {
	nodes := nodeIDs(10)
	shuffled := nodeIDs(10)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	otherKey, otherRoom := 0, 0
	for n := range 1000 {
		owner := Owner([]byte("key"), crdt.RoomID{1}, visitorID(n), nodes)
		if owner != Owner([]byte("key"), crdt.RoomID{1}, visitorID(n), shuffled) {
			t.Fatal("the order of nodes matters")
		}
		if owner != Owner([]byte("another"), crdt.RoomID{1}, visitorID(n), nodes) {
			otherKey++
		}
		if owner != Owner([]byte("key"), crdt.RoomID{2}, visitorID(n), nodes) {
			otherRoom++
		}
	}
	// Nine in ten have another owner if the choices are independent.
	if otherKey < 800 || otherRoom < 800 {
		t.Errorf("another key moved %d, another room %d of 1000", otherKey, otherRoom)
	}
	if got := Owner([]byte("key"), crdt.RoomID{}, visitorID(1), nil); got != (crdt.NodeID{}) {
		t.Errorf("no nodes: got %s", got)
	}
}

func BenchmarkOwner(b *testing.B) {
	key, nodes := make([]byte, 32), nodeIDs(10)
	b.ReportAllocs()
	for b.Loop() {
		Owner(key, crdt.RoomID{}, visitorID(1), nodes)
	}
}
