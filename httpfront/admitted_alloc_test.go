//go:build !race

package httpfront

import (
	"testing"

	"github.com/ropeline/ropeline/node/room"
)

// The race detector allocates on its own account, hence the build tag.
func TestAdmittedRequestsDoNotAllocate(t *testing.T) {
	for _, policy := range []room.Policy{room.Escrow, room.Even} {
		o := newOnSite(t, policy)
		if n := testing.AllocsPerRun(1000, o.ask); n != 0 {
			t.Errorf("%s: %v allocations, want 0", policy, n)
		}
	}
	o := newOnSite(t, room.Escrow, manyRequests()...)
	if n := testing.AllocsPerRun(1000, o.ask); n != 0 {
		t.Errorf("with rate limits: %v allocations, want 0", n)
	}
}
