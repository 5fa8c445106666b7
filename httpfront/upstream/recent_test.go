package upstream

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestRecent adds requests of which is known how long they took, lets time pass, and compares.
func TestRecent(t *testing.T) {
	var r recent
	want := func(now time.Time, requests, errors uint64, p50, p99 time.Duration, late ...time.Duration) {
		t.Helper()
		var began []time.Time
		for _, d := range late {
			began = append(began, now.Add(-d))
		}
		f := r.figures(now, began)
		near := func(got, want time.Duration) bool { return got >= want && got <= want+want/4+4*time.Microsecond }
		if f.requests != requests || f.errors != errors || !near(f.p50, p50) || !near(f.p99, p99) {
			t.Errorf("at %v: %+v, want %d requests, %d errors, about %v and %v", now.Sub(start), f, requests, errors, p50, p99)
		}
	}
	want(start, 0, 0, 0, 0)
	for i := range 100 {
		took := 20 * time.Millisecond
		if i >= 97 {
			took = 3 * time.Second
		}
		r.add(took, i%4 == 0, start)
	}
	want(start, 100, 25, 20*time.Millisecond, 3*time.Second)
	r.add(-1, true, start.Add(recentSlot)) // not answered
	want(start.Add(recentSlot), 101, 26, 20*time.Millisecond, 3*time.Second)
	want(start.Add(recentSpan-1), 101, 26, 20*time.Millisecond, 3*time.Second)
	want(start.Add(recentSpan), 1, 1, 0, 0)
	r.add(time.Microsecond, false, start.Add(recentSpan)) // the slot is of this span now
	want(start.Add(recentSpan), 2, 1, time.Microsecond, time.Microsecond)
	want(start.Add(recentSpan), 5, 1, 7*time.Second, 9*time.Second, 7*time.Second, 8*time.Second, 9*time.Second) // which wait
	want(start.Add(recentSpan), 5, 1, 50*time.Second, 2*time.Minute, 50*time.Second, time.Minute, 2*time.Minute) // for longer than the span
	for range recentEnough {
		r.add(time.Millisecond, false, start.Add(recentSpan))
	}
	want(start.Add(recentSpan), 21, 0, time.Millisecond, time.Millisecond, time.Minute, time.Minute) // and others are answered
	want(start.Add(time.Hour), 0, 0, 0, 0)
}

// TestTroubleOutweighsWhatWasBefore: among many requests those of the last seconds count, among few as many as there are.
func TestTroubleOutweighsWhatWasBefore(t *testing.T) {
	for _, c := range []struct {
		perSlot          int // requests, half of which fail from start on
		since            time.Duration
		requests, errors uint64
	}{
		{40, recentLeast * recentSlot, recentLeast * 40, recentLeast * 20},
		{40, recentSlot, recentLeast * 40, 20},
		{10, recentLeast * recentSlot, recentLeast * 10, recentLeast * 5},
		{4, recentLeast * recentSlot, recentEnough, 2 * recentLeast},
		{1, recentSpan, recentSlots, recentSlots / 2},
	} {
		var r recent
		for at := -recentSpan; at < c.since; at += recentSlot {
			for i := range c.perSlot {
				slot := int(at / recentSlot)
				r.add(time.Millisecond, at >= 0 && (i+slot)%2 == 1, start.Add(at))
			}
		}
		if f := r.figures(start.Add(c.since-1), nil); f.requests != c.requests || f.errors != c.errors {
			t.Errorf("%d requests in %v, %v after trouble began: %+v, want %d and %d errors", c.perSlot, recentSlot, c.since, f, c.requests, c.errors)
		}
	}
}

// TestTimesAreTold: each time is told as one that is no shorter, and at most a quarter longer.
func TestTimesAreTold(t *testing.T) {
	for d := time.Duration(0); d < 2*time.Minute; d += d/7 + time.Microsecond {
		got := timeOf(timeIndex(d))
		if got < d || got > d+d/4+4*time.Microsecond {
			t.Errorf("%v is told as %v", d, got)
		}
	}
	equal(t, "the time that an hour is", timeIndex(time.Hour), times-1)
}

// TestRequestsThatWaitAreToldOf: of an origin that hangs nothing ends, and still it is seen to be slow.
func TestRequestsThatWaitAreToldOf(t *testing.T) {
	goOn := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-goOn }))
	defer hangs.Close()
	g, _ := open(t, Config{Origins: parsed(hangs.URL)})
	c := must(g.AcquireToAsk(new(Tried), Request))
	done := make(chan error)
	go func() { done <- c.Ask([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), time.Minute, func([]byte) {}) }()
	waitFor(t, "the request to be asked", func() bool { return c.waits.Load() != 0 })
	equal(t, "late, and it has just begun", g.Status().Origins[0].RecentRequests, 0)
	c.waits.Store(time.Now().Add(-lateAfter - time.Second).UnixNano())
	if o := g.Status().Origins[0]; o.RecentRequests != 1 || o.P50 < lateAfter || o.ErrorRate != 0 {
		t.Errorf("a request that waits for long: %+v", o)
	}
	close(goOn)
	if err, o := <-done, g.Status().Origins[0]; err != nil || o.RecentRequests != 0 {
		t.Errorf("a request that was answered waits: %v, %+v", err, o)
	}
	c.Discard()
}
