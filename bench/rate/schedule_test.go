package rate

import "testing"

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
	at := dues(&schedule{gap: 1e9 / 3.}, 3_000_001)
	for i, want := range map[int]int64{0: 0, 1: 333_333_333, 2: 666_666_666, 3: 1e9, 3_000_000: 1e15} {
		if at[i] != want {
			t.Errorf("request %d is due at %d, want %d: it drifts", i, at[i], want)
		}
	}
}
