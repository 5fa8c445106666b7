package packed

import (
	"maps"
	"runtime"
	"testing"
)

// TestFitGivesMemoryBack: a map that had tens of thousands of entries and has a hundred takes what a hundred take.
func TestFitGivesMemoryBack(t *testing.T) {
	const most = 50_000
	m, peak, want := map[int]int{}, 0, map[int]int{}
	before := kept()
	for i := range most {
		m[i] = i
		m = Fit(m, &peak)
	}
	full := kept() - before
	for i := range most {
		if i%500 == 0 {
			want[i] = i
			continue
		}
		delete(m, i)
		m = Fit(m, &peak)
	}
	if !maps.Equal(m, want) {
		t.Fatalf("%d entries are left, want %d", len(m), len(want))
	}
	if is := kept() - before; is > full/50 {
		t.Errorf("%d entries take %d bytes, and %d took %d", len(m), is, most, full)
	}
	runtime.KeepAlive(m)
}
