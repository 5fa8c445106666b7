//go:build linux

package scaling

import (
	"testing"
	"time"
)

// TestRatiosAreOfTheSameRound compares each size with one node as it was in the same round.
func TestRatiosAreOfTheSameRound(t *testing.T) {
	one := figure{decision: map[string]time.Duration{inside: 10 * time.Microsecond}}
	three := figure{idle: time.Millisecond, decision: map[string]time.Duration{inside: 12 * time.Microsecond}, asked: map[string]float64{inside: 300}}
	got := three.values(one, inside)
	for unit, want := range map[string]float64{"of-one-node": 1.2, "cpu-sec/decision": 12e-6, "idle-sec/s": 1e-3, "req/s": 300} {
		if got[unit] != want {
			t.Errorf("%s: got %v, want %v", unit, got[unit], want)
		}
	}
}
