package upstream

import (
	"testing"
	"time"
)

// TestRecent adds requests of which is known how long they took, lets time pass, and compares.
func TestRecent(t *testing.T) {
	noon := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	var r recent
	want := func(now time.Time, requests, errors uint64, p50, p99 time.Duration) {
		t.Helper()
		f := r.figures(now)
		near := func(got, want time.Duration) bool { return got >= want && got <= want+want/4+4*time.Microsecond }
		if f.requests != requests || f.errors != errors || !near(f.p50, p50) || !near(f.p99, p99) {
			t.Errorf("at %v: %+v, want %d requests, %d errors, about %v and %v", now.Sub(noon), f, requests, errors, p50, p99)
		}
	}
	want(noon, 0, 0, 0, 0)
	for i := range 100 {
		took := 20 * time.Millisecond
		if i >= 97 {
			took = 3 * time.Second
		}
		r.add(took, i%4 == 0, noon)
	}
	want(noon, 100, 25, 20*time.Millisecond, 3*time.Second)
	r.add(-1, true, noon.Add(recentSlot)) // not answered
	want(noon.Add(recentSlot), 101, 26, 20*time.Millisecond, 3*time.Second)
	want(noon.Add(recentSpan-1), 101, 26, 20*time.Millisecond, 3*time.Second)
	want(noon.Add(recentSpan), 1, 1, 0, 0)
	r.add(time.Microsecond, false, noon.Add(recentSpan)) // the slot is of this span now
	want(noon.Add(recentSpan), 2, 1, time.Microsecond, time.Microsecond)
	want(noon.Add(time.Hour), 0, 0, 0, 0)
}

// TestTimesAreTold: each time is told as one that is no shorter, and at most a quarter longer.
func TestTimesAreTold(t *testing.T) {
	for d := time.Duration(0); d < 2*time.Minute; d += d/7 + time.Microsecond {
		got := timeOf(timeIndex(d))
		if got < d || got > d+d/4+4*time.Microsecond {
			t.Errorf("%v is told as %v", d, got)
		}
	}
	if i := timeIndex(time.Hour); i != times-1 {
		t.Errorf("an hour is the time %d of %d", i, times)
	}
}
