package load

import (
	"math"
	"math/rand/v2"
	"time"
)

// arrivals deals out the times at which visitors of a crowd come, in order.
type arrivals struct {
	crowd Crowd
	rng   *rand.Rand
	dealt int
	// sum is a running sum of exponential draws of mean 1. Stretched by the
	// inverse of the cumulative rate it is a Poisson process of any shape.
	sum float64
}

func newArrivals(c Crowd, seed uint64) *arrivals {
	return &arrivals{crowd: c, rng: rand.New(rand.NewPCG(seed, 0))}
}

// next returns the time of the next arrival after the start of the run, and
// reports false when nobody else will come.
func (a *arrivals) next() (time.Duration, bool) {
	if a.crowd.Visitors > 0 && a.dealt >= a.crowd.Visitors {
		return 0, false
	}
	a.dealt++
	if a.dealt <= a.crowd.Burst {
		return time.Duration(float64(a.crowd.Spread) * float64(a.dealt-1) / float64(a.crowd.Burst)), true
	}
	if a.crowd.Rate == 0 {
		return 0, false
	}
	a.sum += a.rng.ExpFloat64()
	return a.crowd.Spread + time.Duration(a.crowd.timeOf(a.sum)*float64(time.Second)), true
}

// timeOf returns how many seconds after the burst n arrivals are expected: the
// inverse of
//
//	n(t) = Rate·t²/(2·Ramp)     while t <= Ramp
//	n(t) = Rate·(t − Ramp/2)    from then on
func (c Crowd) timeOf(n float64) float64 {
	ramp := c.Ramp.Seconds()
	if n <= c.Rate*ramp/2 {
		return math.Sqrt(2 * n * ramp / c.Rate)
	}
	return n/c.Rate + ramp/2
}

// around draws a time evenly between half and one and a half of mean.
func around(rng *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration((0.5 + rng.Float64()) * float64(mean))
}
