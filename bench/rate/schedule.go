package rate

import "math/rand/v2"

// schedule says when each request of the open model is due, one after the other, in nanoseconds from the
// beginning. It is a function of rate, arrivals and seed alone: nothing that a server does moves it.
type schedule struct {
	gap  float64    // mean, in nanoseconds
	at   float64    // when the next one is due
	n    float64    // how many were before it
	dice *rand.Rand // nil: even
}

func newSchedule(rate float64, arrivals Arrivals, seed uint64) *schedule {
	s := &schedule{gap: 1e9 / rate}
	if arrivals == Poisson {
		s.dice = rand.New(rand.NewPCG(seed, 0))
		s.at = s.dice.ExpFloat64() * s.gap
	}
	return s
}

// due returns when the next request is due.
func (s *schedule) due() int64 { return int64(s.at) }

// advance goes on to the one after it. Even times are multiples and no sums, so that they do not drift.
func (s *schedule) advance() {
	s.n++
	if s.dice == nil {
		s.at = s.n * s.gap
		return
	}
	s.at += s.dice.ExpFloat64() * s.gap
}
