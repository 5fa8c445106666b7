//go:build linux

package scaling

import (
	"strings"
	"testing"
	"time"
)

// TestRatiosAreOfTheSameRound compares each size with one node as it was in the same round: a
// machine that is slower in one round is so for all.
func TestRatiosAreOfTheSameRound(t *testing.T) {
	var f figures
	for round := range 3 {
		slow := time.Duration(round + 1)
		for _, size := range sizes {
			d := map[string]time.Duration{}
			for _, kind := range kinds {
				d[kind] = slow * (10*time.Microsecond + time.Duration(size-1)*time.Microsecond)
			}
			f.add(size, figure{Idle: slow * time.Millisecond, Decision: d, Asked: map[string]float64{}})
		}
	}
	if got, want := f.ratio(3, inside), (spread{1.2, 1.2, 1.2}); got != want {
		t.Errorf("three nodes: ratios %v, want %v", got, want)
	}
	if got, want := f.decision(1, fresh), (spread{10, 20, 30}); got != want {
		t.Errorf("one node: %v µs, want %v", got, want)
	}
	table := f.table(config{rounds: 3, rate: 100})
	if want := "| 12 | 42.0 (21.0 to 63.0) | 2.10 (2.10 to 2.10) |"; !strings.Contains(table, want) {
		t.Errorf("want a row that begins with %q, got\n%s", want, table)
	}
}
