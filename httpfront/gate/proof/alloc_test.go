//go:build !race

package proof_test

import (
	"testing"
	"time"
)

func TestATokenThatIsKeptCostsNoAllocation(t *testing.T) {
	s := signer()
	now := time.Now()
	sub := visitor(1)
	token(s, sub, now)
	if n := testing.AllocsPerRun(1000, func() { token(s, sub, now) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
