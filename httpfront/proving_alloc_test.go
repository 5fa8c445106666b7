//go:build !race

package httpfront

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

func TestAProofThatIsKeptCostsNoAllocation(t *testing.T) {
	f := judges(t, fakeRooms{}, func(c *Config) { c.Proof = newSigner(t) })
	r, s, p, now := newRequest(), newRoom(nil).Settings(), inside(node.Pass{}, true, time.Time{}).Pass, time.Now()
	r.proofName = f.cfg.ProofHeader
	f.prove(r, s, &p, now)
	head := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(1000, func() {
		f.prove(r, s, &p, now)
		head = r.appendProof(head[:0])
	}); n != 0 || len(head) == 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
