//go:build unix && !race

package socket

import "testing"

func TestAllocsOfReadsAndWrites(t *testing.T) {
	here, there := pair(t)
	p := []byte("hello")
	if n := testing.AllocsPerRun(1000, func() {
		must(here.Write(p))
		must(there.Read(p))
		must(there.Write(p))
		must(here.Read(p))
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
