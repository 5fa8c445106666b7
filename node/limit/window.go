package limit

import (
	"math"
	"math/bits"
	"time"
)

// Millis is a time in milliseconds since 1970, or a span of as many.
type Millis int64

// MillisOf returns a time as Millis.
func MillisOf(t time.Time) Millis { return Millis(t.UnixMilli()) }

// Duration returns a span.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// Window is how many requests came in a period that goes on, and in the one before. Those
// of the one before are taken to have come evenly, so that of them a part counts that
// shrinks as the period goes on:
//
//	estimate = previous × (1 − elapsed/period) + current
//
// This is the sliding window of two counters that Cloudflare described in 2017 ("How we
// built rate limiting capable of scaling to millions of domains"). The zero value is a
// window in which nothing was counted.
type Window struct {
	Start             Millis // of the period that goes on
	Previous, Current uint32
}

// Roll brings a window to now. A clock that was set back changes nothing. periods is
// how many have begun since: 2 if nothing of what was counted matters any more.
func (w *Window) Roll(period, now Millis) (periods int) {
	switch elapsed := now - w.Start; {
	case elapsed < period:
		return 0
	case elapsed < 2*period:
		w.Start += period
		w.Previous, w.Current = w.Current, 0
		return 1
	default:
		*w = Window{Start: now - now%period}
		return 2
	}
}

// left is how much of the period is still to come. The window was brought to now.
func (w *Window) left(period, now Millis) Millis { return min(period, w.Start+period-now) }

// Over reports whether n more requests would make more than limit of them. The window was
// brought to now.
func (w *Window) Over(limit uint32, n uint32, period, now Millis) bool {
	// In whole numbers: previous × left + (current + n) × period > limit × period.
	return uint64(w.Previous)*uint64(w.left(period, now))+(uint64(w.Current)+uint64(n))*uint64(period) > uint64(limit)*uint64(period)
}

// Estimate returns how many requests came within the last period. The window was brought
// to now.
func (w *Window) Estimate(period, now Millis) float64 {
	return float64(w.Previous)*(float64(w.left(period, now))/float64(period)) + float64(w.Current)
}

// Remaining returns how many more requests are within limit. The window was brought to now.
func (w *Window) Remaining(limit uint32, period, now Millis) int {
	past := uint64(w.Previous) * uint64(w.left(period, now))
	used := uint64(w.Current) + (past+uint64(period)-1)/uint64(period)
	return int(max(int64(limit)-int64(used), 0))
}

// Wait returns how long it takes until one more request is within limit, if none comes
// until then; 0 if it is now. The window was brought to now.
func (w *Window) Wait(limit uint32, period, now Millis) Millis {
	left := w.left(period, now)
	if w.Current < limit {
		// previous × x ≤ (limit − 1 − current) × period, where x of the period is left
		return left - min(left, share(limit-1-w.Current, w.Previous, period))
	}
	return left + period - share(limit-1, w.Current, period)
}

// share returns period × part / whole, rounded down; at most period.
func share(part, whole uint32, period Millis) Millis {
	if part >= whole {
		return period
	}
	hi, lo := bits.Mul64(uint64(part), uint64(period))
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return Millis(q)
}

// add counts n requests that came at a time that is past. What is older than the window
// knows is not counted. The window was brought to now.
func (w *Window) add(n uint32, period, at Millis) {
	switch {
	case at >= w.Start:
		w.Current = sum(w.Current, n)
	case at >= w.Start-period:
		w.Previous = sum(w.Previous, n)
	}
}

// subtract takes away the n newest requests.
func (w *Window) subtract(n uint32) {
	newest := min(n, w.Current)
	w.Current -= newest
	w.Previous -= min(n-newest, w.Previous)
}

func sum(a, b uint32) uint32 {
	if s, carry := bits.Add32(a, b, 0); carry == 0 {
		return s
	}
	return math.MaxUint32
}
