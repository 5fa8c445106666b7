package ticket

import (
	"math/rand/v2"
	"testing"
)

// len returns how many timers there are, stale ones included.
func (h *timers[K]) len() int {
	if h.timerQueue == nil {
		return 0
	}
	n := len(h.heap)
	for i := range h.runs {
		n -= h.runs[i].gone
		for _, p := range h.runs[i].pieces {
			n += len(p)
		}
	}
	return n
}

// TestTimersFireInOrder compares timers with a list: some come with one of a few
// delays, others with any, and the clock stands still or leaps.
func TestTimersFireInOrder(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var q timers[int]
		left := map[int]int64{} // key → time
		now, keys := int64(1000), 0
		for range 2000 {
			switch rng.IntN(10) {
			case 0:
				now += rng.Int64N(3000)
			case 1:
				now++
			case 2:
				keys++
				left[keys] = now + rng.Int64N(4000) - 500
				q.push(left[keys], keys)
			default:
				keys++
				left[keys] = now + []int64{0, 300, 2000, 2600, 9000}[rng.IntN(5)]
				q.push(left[keys], keys)
			}
			if q.len() != len(left) {
				t.Fatalf("seed %d: %d timers, want %d", seed, q.len(), len(left))
			}
			if rng.IntN(4) > 0 {
				continue
			}
			last := int64(0)
			for x, ok := q.pop(now); ok; x, ok = q.pop(now) {
				if at, known := left[x.key]; !known || at != x.at || x.at > now || x.at < last {
					t.Fatalf("seed %d at %d: timer %d of %d fired after one of %d; it was set: %v, for %d", seed, now, x.key, x.at, last, known, at)
				}
				last = x.at
				delete(left, x.key)
			}
			for key, at := range left {
				if at <= now {
					t.Fatalf("seed %d at %d: timer %d of %d did not fire", seed, now, key, at)
				}
			}
		}
	}
}

// TestTimersOfAFewDelaysNeedNoHeap, and no more memory than they fill.
func TestTimersOfAFewDelaysNeedNoHeap(t *testing.T) {
	var q timers[int]
	for now := range int64(20_000) {
		for _, delay := range []int64{0, 300, 6000, 5000} {
			q.push(now+delay, 0)
		}
		for _, ok := q.pop(now); ok; _, ok = q.pop(now) {
		}
	}
	room := 0
	for _, r := range q.runs {
		for _, p := range r.pieces {
			room += cap(p)
		}
	}
	if len(q.heap) != 0 || len(q.runs) > maxRuns || room > q.len()+2*maxRuns*pieceLen {
		t.Errorf("%d of %d timers in a heap, the others in %d runs with room for %d", len(q.heap), q.len(), len(q.runs), room)
	}
}

// BenchmarkTimers has a million timers of one delay, and fires the first for each that
// is set.
func BenchmarkTimers(b *testing.B) {
	var q timers[uint64]
	now := int64(0)
	for b.Loop() {
		now++
		q.push(now+1_000_000, uint64(now))
		q.pop(now)
	}
}
