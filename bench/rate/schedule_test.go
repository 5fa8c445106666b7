package rate

import (
	"math"
	"testing"
)

// dues returns the first n times of a schedule.
func dues(s *schedule, n int) []int64 {
	at := make([]int64, n)
	for i := range at {
		at[i] = s.due()
		s.advance()
	}
	return at
}

func TestEvenSchedule(t *testing.T) {
	at := dues(newSchedule(3, Even, 0), 3_000_001)
	for i, want := range map[int]int64{0: 0, 1: 333_333_333, 2: 666_666_666, 3: 1e9, 3_000_000: 1e15} {
		if at[i] != want {
			t.Errorf("request %d is due at %d, want %d: it drifts", i, at[i], want)
		}
	}
}

func TestPoissonSchedule(t *testing.T) {
	const rate, n = 1000.0, 200_000
	at := dues(newSchedule(rate, Poisson, 7), n)
	gap, short := 1e9/rate, 0
	for i, before := 0, int64(0); i < n; i++ {
		if at[i] < before {
			t.Fatalf("request %d is due before the one before it", i)
		}
		if float64(at[i]-before) < gap*math.Ln2 {
			short++
		}
		before = at[i]
	}
	if mean := float64(at[n-1]) / n; math.Abs(mean/gap-1) > 0.01 {
		t.Errorf("the mean gap is %v ns, want %v", mean, gap)
	}
	if part := float64(short) / n; math.Abs(part-0.5) > 0.01 {
		t.Errorf("%v of the gaps are below the median of an exponential distribution", part)
	}
	again, other := dues(newSchedule(rate, Poisson, 7), n), dues(newSchedule(rate, Poisson, 8), n)
	if again[n-1] != at[n-1] || other[n-1] == at[n-1] {
		t.Errorf("the last is due at %d, with the same seed %d, with another %d", at[n-1], again[n-1], other[n-1])
	}
}
