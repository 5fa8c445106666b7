package load

import (
	"math"
	"testing"
	"time"
)

func duration(seconds int64) time.Duration { return time.Duration(seconds) * time.Second }

func TestArrivalsKeepTheRate(t *testing.T) {
	a := newArrivals(Crowd{Rate: 50}, 1)
	var last time.Duration
	gaps := make([]float64, 20_000)
	for i := range gaps {
		at, more := a.next()
		if !more || at < last {
			t.Fatalf("arrival %d: %v, %v after %v", i, at, more, last)
		}
		gaps[i] = (at - last).Seconds()
		last = at
	}
	// Of exponential gaps the mean and the deviation are the same.
	mean, square := 0.0, 0.0
	for _, g := range gaps {
		mean += g / float64(len(gaps))
		square += g * g / float64(len(gaps))
	}
	deviation := math.Sqrt(square - mean*mean)
	if math.Abs(mean-0.02) > 0.001 || math.Abs(deviation-0.02) > 0.001 {
		t.Errorf("got gaps of %.4f ± %.4f s, want 0.02 ± 0.02", mean, deviation)
	}
}

func TestArrivalsRamp(t *testing.T) {
	a := newArrivals(Crowd{Rate: 100, Ramp: 100 * time.Second}, 1)
	perDecade := make([]int, 12) // of 10 s each
	for {
		at, _ := a.next()
		if at >= duration(120) {
			break
		}
		perDecade[at/duration(10)]++
	}
	for i, got := range perDecade {
		want := min(float64(i)*100+50, 1000)
		if math.Abs(float64(got)-want) > 5*math.Sqrt(want) {
			t.Errorf("from %d s: got %d arrivals, want about %v", i*10, got, want)
		}
	}
}

func TestArrivalsSpreadBurst(t *testing.T) {
	a := newArrivals(Crowd{Burst: 4, Spread: 2 * time.Second, Rate: 1000}, 1)
	for i, want := range []time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
		if got, more := a.next(); !more || got != want {
			t.Errorf("arrival %d: got %v, want %v", i, got, want)
		}
	}
	if got, _ := a.next(); got < 2*time.Second || got > 2100*time.Millisecond {
		t.Errorf("the first one after the burst comes at %v, want just after 2s", got)
	}
}

func TestArrivalsBurstAndEnd(t *testing.T) {
	a := newArrivals(Crowd{Visitors: 5, Burst: 3, Rate: 1}, 1)
	var atOnce, later int
	for {
		at, more := a.next()
		if !more {
			break
		}
		if at == 0 {
			atOnce++
		} else {
			later++
		}
	}
	if atOnce != 3 || later != 2 {
		t.Errorf("got %d at once and %d later, want 3 and 2", atOnce, later)
	}
}
