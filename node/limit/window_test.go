package limit

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// oracle is the estimate in exact fractions, from the requests themselves: those of the
// period of now count whole, those of the one before by the part of it that is within the
// last period.
type oracle struct {
	period Millis
	came   map[Millis]int64 // by the number of the period
}

func (o *oracle) count(now Millis) { o.came[now/o.period]++ }

func (o *oracle) estimate(now Millis) *big.Rat {
	i, elapsed := now/o.period, now%o.period
	part := new(big.Rat).Sub(big.NewRat(1, 1), big.NewRat(int64(elapsed), int64(o.period)))
	before := new(big.Rat).Mul(part, new(big.Rat).SetInt64(o.came[i-1]))
	return before.Add(before, new(big.Rat).SetInt64(o.came[i]))
}

func (o *oracle) over(limit uint32, now Millis) bool {
	e := o.estimate(now)
	return e.Add(e, big.NewRat(1, 1)).Cmp(new(big.Rat).SetInt64(int64(limit))) > 0
}

func TestWindowIsTheFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := Millis(rapid.Int64Range(1, 86_400).Draw(t, "period")) * 1000
		limit := rapid.Uint32Range(1, 200).Draw(t, "limit")
		o := oracle{period: period, came: map[Millis]int64{}}
		now := Millis(rapid.Int64Range(1e12, 2e12).Draw(t, "start"))
		var w Window
		for range rapid.IntRange(1, 300).Draw(t, "requests") {
			now += Millis(rapid.OneOf(rapid.Int64Range(0, int64(period)/int64(limit)), rapid.Int64Range(0, 3*int64(period))).Draw(t, "pause"))
			w.Roll(period, now)
			if got, want := w.Over(limit, 1, period, now), o.over(limit, now); got != want {
				t.Fatalf("at %d one more is over: got %v, want %v; estimate %v", now, got, want, o.estimate(now))
			}
			want, _ := o.estimate(now).Float64()
			if got := w.Estimate(period, now); got < want*(1-1e-12) || got > want*(1+1e-12) {
				t.Fatalf("got the estimate %v, want %v", got, want)
			}
			if rapid.Bool().Draw(t, "counted") || !o.over(limit, now) {
				w.add(1, period, now)
				o.count(now)
			}
		}
		checkWait(t, w, o, limit, now)
	})
}

// checkWait holds that one more is within the limit after the wait, and not before.
func checkWait(t *rapid.T, w Window, o oracle, limit uint32, now Millis) {
	wait := w.Wait(limit, o.period, now)
	if o.over(limit, now+wait) {
		t.Fatalf("after a wait of %d one more is still over the limit of %d: %v", wait, limit, o.estimate(now+wait))
	}
	if wait > 0 && !o.over(limit, now+wait-1) {
		t.Fatalf("a wait of %d is longer than it need be: %v of %d", wait, o.estimate(now+wait-1), limit)
	}
	left := w.Remaining(limit, o.period, now)
	if over := o.over(limit, now); over != (left == 0) {
		t.Fatalf("%d remain, and one more is over the limit: %v", left, over)
	}
	for range left {
		if o.over(limit, now) {
			t.Fatalf("%d should remain, and there are fewer", left)
		}
		o.count(now)
	}
	if !o.over(limit, now) {
		t.Fatalf("%d should remain, and there are more", left)
	}
}

func TestWindowForgets(t *testing.T) {
	w := Window{Start: 60_000, Previous: 7, Current: 5}
	if w.Roll(60_000, 119_999); w.Previous != 7 || w.Current != 5 {
		t.Errorf("the period goes on, and the window is %+v", w)
	}
	if w.Roll(60_000, 50_000); w.Start != 60_000 {
		t.Errorf("a clock that is set back changes the window: %+v", w)
	}
	if w.Roll(60_000, 120_000); w != (Window{120_000, 5, 0}) {
		t.Errorf("got %+v after one period", w)
	}
	if w.Roll(60_000, 240_000); w != (Window{240_000, 0, 0}) {
		t.Errorf("got %+v after two periods", w)
	}
}

func TestWindowSaturates(t *testing.T) {
	w := Window{Start: 0, Current: 1<<32 - 2}
	w.add(5, 1000, 10)
	if w.Current != 1<<32-1 || !w.Over(MaxRequests, 1, 1000, 10) || w.Remaining(MaxRequests, 1000, 10) != 0 {
		t.Errorf("got %+v", w)
	}
	if wait := w.Wait(1, 86_400_000, 10); wait <= 0 || wait.Duration() > 48*time.Hour {
		t.Errorf("got a wait of %v", wait.Duration())
	}
}
