//go:build !race

package node

import "testing"

func TestLimitsDoNotAllocate(t *testing.T) {
	m, now := liveMeter(t, 2, 0)
	var a addresses
	i := 0
	if n := testing.AllocsPerRun(10_000, func() {
		i++
		m.Take(m.Key(a.of(i)), now)
		m.Peek(m.Key(a.of(0)), now)
		m.Take(m.Key(a.of(0)), now)
		m.Count(m.Key(a.of(i)), now)
	}); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}
