package packed

import (
	"maps"
	"runtime"
	"testing"
)

// TestDeleteGivesMemoryBack: a map that had tens of thousands of entries and has a hundred takes what a hundred take.
func TestDeleteGivesMemoryBack(t *testing.T) {
	const most = 50_000
	m, want := map[int]int{}, map[int]int{}
	before := kept()
	for i := range most {
		m[i] = i
		if i%500 == 0 {
			want[i] = i
		}
	}
	full := kept() - before
	for i := range m { // also while it is gone through
		if _, stays := want[i]; !stays {
			Delete(&m, i)
			Delete(&m, i)
		}
	}
	if !maps.Equal(m, want) {
		t.Fatalf("%d entries are left, want %d", len(m), len(want))
	}
	if is := kept() - before; is > full/50 {
		t.Errorf("%d entries take %d bytes, and %d took %d", len(m), is, most, full)
	}
	runtime.KeepAlive(m)
}
