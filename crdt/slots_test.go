package crdt

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestSlotsAreAMap holds slots against a map while they become many and few again.
func TestSlotsAreAMap(t *testing.T) {
	var is slots[int]
	want := map[slot]int{}
	rng := rand.New(rand.NewPCG(1, 2))
	most := 0
	for i := range 10_000 {
		s := slot{Kind(rng.IntN(3)), rng.Int64N(int64(1 + i/100%8))}
		switch rng.IntN(10) {
		case 0:
			old := func(s slot, v int) bool { return v < i-20 }
			is.deleteFunc(old)
			maps.DeleteFunc(want, old)
		case 1, 2:
			is.delete(s)
			delete(want, s)
		default:
			is.set(s, i)
			want[s] = i
		}
		most = max(most, is.len())
		got, known := is.get(s)
		if w, ok := want[s]; known != ok || got != w || is.of(s) != w {
			t.Fatalf("step %d: %v is %d, %v, want %d, %v", i, s, got, known, w, ok)
		}
		if all := maps.Collect(is.all()); !maps.Equal(all, want) || is.len() != len(want) {
			t.Fatalf("step %d: %v, want %v", i, all, want)
		}
		copied := is.clone()
		copied.set(slot{9, 9}, 1)
		if is.len() != len(want) {
			t.Fatalf("step %d: a copy shares memory", i)
		}
	}
	if most <= fewSlots {
		t.Errorf("never more than %d", most)
	}
}
