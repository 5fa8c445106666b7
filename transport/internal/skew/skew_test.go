package skew

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestNew(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, tc := range []struct {
		name       string
		t1, t2, t3 int64
		elapsed    time.Duration
		want       Sample
		ok         bool
	}{
		{"same clock", 0, 10 * ms, 11 * ms, 21 * time.Millisecond, Sample{RTT: 20 * time.Millisecond}, true},
		{"peer ahead", 0, 310 * ms, 310 * ms, 20 * time.Millisecond, Sample{20 * time.Millisecond, 300 * time.Millisecond}, true},
		{"peer behind", 1000 * ms, 710 * ms, 710 * ms, 20 * time.Millisecond, Sample{20 * time.Millisecond, -300 * time.Millisecond}, true},
		{"answered before received", 0, 10 * ms, 9 * ms, 20 * time.Millisecond, Sample{}, false},
		{"stayed longer than it took", 0, 0, 30 * ms, 20 * time.Millisecond, Sample{}, false},
		{"nonsense from far away", 0, math.MinInt64, math.MaxInt64, 20 * time.Millisecond, Sample{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := New(tc.t1, tc.t2, tc.t3, tc.elapsed)
			if ok != tc.ok || got != tc.want {
				t.Errorf("got %+v, %v, want %+v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

// TestErrorIsAtMostHalfTheRTT draws ways of different length there and back.
func TestErrorIsAtMostHalfTheRTT(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		there, back, stay := rng.Int64N(1e9), rng.Int64N(1e9), rng.Int64N(1e9)
		offset, t1 := rng.Int64N(4e9)-2e9, rng.Int64N(1e18)
		t2 := t1 + there + offset
		s, ok := New(t1, t2, t2+stay, time.Duration(there+stay+back))
		if !ok {
			t.Fatal("a true exchange was refused")
		}
		if s.RTT != time.Duration(there+back) {
			t.Fatalf("RTT: got %v, want %v", s.RTT, time.Duration(there+back))
		}
		if diff := (s.Offset - time.Duration(offset)).Abs(); diff > s.RTT/2+1 {
			t.Fatalf("offset: got %v, want %v within half of %v", s.Offset, time.Duration(offset), s.RTT)
		}
	}
}

func TestFilter(t *testing.T) {
	var f Filter
	if _, ok := f.Best(); ok {
		t.Error("an empty filter has a best sample")
	}
	f.Add(Sample{RTT: 5, Offset: 1})
	f.Add(Sample{RTT: 3, Offset: 2})
	f.Add(Sample{RTT: 9, Offset: 3})
	if got, _ := f.Best(); got.Offset != 2 {
		t.Errorf("best: got %+v, want the one with the shortest way", got)
	}
	for range kept {
		f.Add(Sample{RTT: 9, Offset: 4})
	}
	if got, _ := f.Best(); got.Offset != 4 {
		t.Errorf("best: got %+v, want a recent one", got)
	}
}
