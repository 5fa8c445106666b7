package sim

import (
	"iter"
	"math"
	"math/rand/v2"
	"time"
)

// Moments are arrivals at exactly these times, in rising order.
type Moments []time.Duration

var _ Arrivals = Moments(nil)

// Len implements Arrivals.
func (m Moments) Len() int { return len(m) }

// Span implements Arrivals.
func (m Moments) Span() time.Duration {
	if len(m) == 0 {
		return 0
	}
	return m[len(m)-1] + 1
}

// Times implements Arrivals.
func (m Moments) Times(*rand.Rand) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for _, at := range m {
			if !yield(at) {
				return
			}
		}
	}
}

// Counts are arrivals of which only the number per span is known, such as the
// rows of a log that was counted by the minute. Inside a span they come at times
// drawn evenly.
type Counts struct {
	Every time.Duration // the length of one span; above 0
	N     []int         // how many come in each; none below 0
}

var _ Arrivals = Counts{}

// Len implements Arrivals.
func (c Counts) Len() int {
	sum := 0
	for _, n := range c.N {
		sum += n
	}
	return sum
}

// Span implements Arrivals.
func (c Counts) Span() time.Duration { return time.Duration(len(c.N)) * c.Every }

// Times implements Arrivals.
func (c Counts) Times(rng *rand.Rand) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for i, n := range c.N {
			start := time.Duration(i) * c.Every
			past := 0.0 // of the span
			for left := n; left > 0; left-- {
				// The first of left even numbers beyond past, so that nothing
				// need be sorted.
				past += (1 - past) * (1 - math.Pow(1-rng.Float64(), 1/float64(left)))
				if !yield(start + min(time.Duration(past*float64(c.Every)), c.Every-1)) {
					return
				}
			}
		}
	}
}
