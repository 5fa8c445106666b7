package rate

// schedule says when each request of the open model is due, one after the other, in nanoseconds from the
// beginning. It is a function of the rate alone: nothing that a server does moves it.
type schedule struct {
	gap float64 // in nanoseconds
	n   float64 // how many were before the next one
}

// due returns when the next request is due. Times are multiples and no sums, so that they do not drift.
func (s *schedule) due() int64 { return int64(s.n * s.gap) }

// advance goes on to the one after it.
func (s *schedule) advance() { s.n++ }
