package upstream

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Figures of an origin are those of its last recentEnough requests, and of all that ended in the last recentLeast slots;
// none is older than recentSpan, up to a slot less. So trouble outweighs what was before it within seconds, and where few
// ask a single failure does not.
const (
	recentSlots  = 15
	recentSlot   = 2 * time.Second
	recentSpan   = recentSlots * recentSlot
	recentLeast  = 3
	recentEnough = 20
)

// lateAfter is for how long a request waits for its answer until it is among the figures, as of that moment but with the
// time so far: of an origin that hangs no request ends.
const lateAfter = 5 * time.Second

// times is how many response times are told apart: four between each power of two of microseconds
// and the next, up to more than two minutes.
const times = 4 * 28

// recent is what became of an origin's requests lately. The zero value is that there were none. All
// methods may be called at once: a request costs a few atomic additions, and one that ends just when a
// slot begins its next span of time may be lost.
type recent struct {
	slots [recentSlots]recentOne
}

type recentOne struct {
	number   atomic.Int64 // which span of time it is of
	requests atomic.Uint32
	errors   atomic.Uint32
	took     [times]atomic.Uint32
}

// add notes a request that has ended, and how long its answer took; less than 0: there was none.
func (r *recent) add(took time.Duration, failed bool, now time.Time) {
	n := now.UnixNano() / int64(recentSlot)
	s := &r.slots[uint64(n)%recentSlots]
	if old := s.number.Load(); old != n && s.number.CompareAndSwap(old, n) {
		s.requests.Store(0)
		s.errors.Store(0)
		for i := range s.took {
			s.took[i].Store(0)
		}
	}
	s.requests.Add(1)
	if failed {
		s.errors.Add(1)
	}
	if took >= 0 {
		s.took[timeIndex(took)].Add(1)
	}
}

// timeIndex returns which of the response times d is.
func timeIndex(d time.Duration) int {
	us := uint64(d/time.Microsecond) + 4
	power := bits.Len64(us) - 1 // at least 2
	return min((power-2)*4+int(us>>(power-2)&3), times-1)
}

// timeOf returns the longest time of an index.
func timeOf(i int) time.Duration {
	power := uint(i / 4)
	return time.Duration((uint64(4+i%4)+1)<<power-4) * time.Microsecond
}

// figures are what recent comes to.
type figures struct {
	requests, errors uint64
	p50, p99         time.Duration // 0: nothing was answered
}

// figures returns those of now, where late are the beginnings of requests that are late. Those that are so for longer than
// recentSpan count where there is little else.
func (r *recent) figures(now time.Time, late []time.Time) (f figures) {
	var took [times]uint64
	var all uint64
	newest := now.UnixNano() / int64(recentSlot)
	for back := range int64(recentSlots) {
		if back >= recentLeast && f.requests >= recentEnough {
			break
		}
		n := newest - back
		for _, began := range late {
			since := began.Add(lateAfter).UnixNano() / int64(recentSlot)
			if since == n || since < n && back == recentSlots-1 {
				took[timeIndex(now.Sub(began))]++
				all++
				f.requests++
			}
		}
		s := &r.slots[uint64(n)%recentSlots]
		if s.number.Load() != n {
			continue
		}
		f.requests += uint64(s.requests.Load())
		f.errors += uint64(s.errors.Load())
		for k := range s.took {
			n := uint64(s.took[k].Load())
			took[k] += n
			all += n
		}
	}
	f.p50, f.p99 = quantile(&took, all, 50), quantile(&took, all, 99)
	return f
}

// quantile returns what percent of all took at most.
func quantile(took *[times]uint64, all, percent uint64) time.Duration {
	if all == 0 {
		return 0
	}
	below := uint64(0)
	for i, n := range took {
		if below += n; below*100 >= all*percent {
			return timeOf(i)
		}
	}
	return timeOf(times - 1)
}
