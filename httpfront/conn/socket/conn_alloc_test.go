//go:build unix && !race

package socket

import (
	"testing"

	"github.com/ropeline/ropeline/bench/must"
)

func TestAllocsOfReadsAndWrites(t *testing.T) {
	here, there := pair(t)
	p := []byte("hello")
	if n := testing.AllocsPerRun(1000, func() {
		must.Do(here.Write(p))
		must.Do(there.Read(p))
		must.Do(there.Write(p))
		must.Do(here.Read(p))
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
