package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHeapAgainstSorting adds and takes in any order and compares with a sorted
// list.
func TestHeapAgainstSorting(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var h heap
		var want []event
		for step := range 500 {
			if len(want) == 0 || rng.IntN(5) < 3 {
				at := rng.Int64N(40) // few values, so that many are equal
				h.add(at, kind(rng.IntN(9)), int32(step), 0)
				want = append(want, event{at: at, who: int32(step)})
				continue
			}
			slices.SortStableFunc(want, func(a, b event) int { return cmp.Compare(a.at, b.at) })
			got, ok := h.next()
			if !ok || got.at != want[0].at || got.who != want[0].who {
				t.Fatalf("seed %d, step %d: got %d at %d (%v), want %d at %d", seed, step, got.who, got.at, ok, want[0].who, want[0].at)
			}
			want = want[1:]
		}
	}
	var empty heap
	if _, ok := empty.next(); ok {
		t.Error("an empty heap gives an event")
	}
}

func TestHeapKeepsKind(t *testing.T) {
	var h heap
	h.add(3, looks, -1, 7)
	if e, _ := h.next(); e.kind() != looks || e.who != -1 || e.what != 7 || e.at != 3 {
		t.Errorf("got %+v", e)
	}
}

func BenchmarkHeap(b *testing.B) {
	var h heap
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		h.add(rng.Int64N(20e9), acts, 0, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		e, _ := h.next()
		h.add(e.at+rng.Int64N(20e9), acts, 0, 0)
	}
}
