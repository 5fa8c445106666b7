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
