//go:build !race

package node

import "testing"

// The race detector allocates on its own account, hence the build tag.
func TestAdmittedRequestsDoNotAllocate(t *testing.T) {
	r, inside, waiting, now := hotRoom(t)
	early := waiting
	early.LastPoll = now
	for name, p := range map[string]Pass{"inside": inside, "early": early} {
		r.Decide(p, true, now) // the first one since the last collection makes its note
		if n := testing.AllocsPerRun(1000, func() { r.Decide(p, true, now) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

// TestRefusalsFromMemoryHardlyAllocate has visitors come to a node that its
// counter has refused. Their polls are collected in a slice that grows.
func TestRefusalsFromMemoryHardlyAllocate(t *testing.T) {
	r, waiting, now := refusingRoom(t)
	for name, p := range map[string]Pass{"new": {}, "waiting": waiting} {
		if n := testing.AllocsPerRun(1000, func() { r.decide(p, p != Pass{}, now) }); n > 1 {
			t.Errorf("%s: %v allocations, want at most 1", name, n)
		}
	}
}
