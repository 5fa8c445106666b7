//go:build !race

package limit

import "testing"

func TestDecisionsDoNotAllocate(t *testing.T) {
	r := &Terms{Period: 1000, Requests: 5}
	table := newTestTable(1<<20, r)
	table.Tell = true
	k, now := Key(1), start
	if n := testing.AllocsPerRun(10_000, func() {
		now++
		k += 0x9e3779b97f4a7c15
		table.Take(k, r, now)
		table.Take(1<<50, r, now)
		table.Peek(k, r, now)
		table.Count(k, r, now)
	}); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}
