// Package skew turns exchanges of time stamps into the distance to a peer and
// the offset of its clock. A Filter may be used from many goroutines.
package skew

import (
	"sync"
	"time"
)

// kept is the number of samples that a Filter remembers.
const kept = 16

// Sample is the outcome of one exchange.
type Sample struct {
	RTT    time.Duration
	Offset time.Duration // how far the peer's clock is ahead
}

// Filter keeps the last few samples. The one with the shortest way is
// believed: whatever a packet waits on one way only, it adds to the distance
// and, by half, to the error of the offset. The zero value is empty.
type Filter struct {
	mu      sync.Mutex // guards the following
	samples [kept]Sample
	n       int // samples ever taken
}

// Add takes a sample in and forgets the oldest when there are too many.
func (f *Filter) Add(s Sample) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.samples[f.n%kept] = s
	f.n++
}

// Best returns the sample with the shortest round trip, and reports whether
// there is one.
func (f *Filter) Best() (Sample, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		return Sample{}, false
	}
	best := f.samples[0]
	for _, s := range f.samples[1:min(f.n, kept)] {
		if s.RTT < best.RTT {
			best = s
		}
	}
	return best, true
}

// New computes a sample from the four moments of an exchange: sent by us at
// t1, received by the peer at t2, answered at t3, and received by us elapsed
// after t1. t1, t2 and t3 are Unix nanoseconds by the clock of whoever took
// them; elapsed is monotonic, so that a step of our own clock in between does
// no harm. It reports whether the moments make sense together.
//
//	us    t1 ────╮            ╭──── t1+elapsed
//	             ╰─╮        ╭─╯
//	peer           t2 ──── t3
func New(t1, t2, t3 int64, elapsed time.Duration) (Sample, bool) {
	stay := time.Duration(t3 - t2)
	if stay < 0 || stay > elapsed {
		return Sample{}, false
	}
	t4 := t1 + int64(elapsed)
	// Halved before the sum: a peer may send any number.
	offset := time.Duration((t2-t1)/2 + (t3-t4)/2)
	return Sample{RTT: elapsed - stay, Offset: offset}, true
}
