package ticket

import "slices"

// timer says that key wants to be looked at when the clock reaches at.
type timer[K any] struct {
	at  int64
	key K
}

// timers is a queue of timers, earliest first. Its owner keeps the truth about each
// key; a timer that turns out to be early or stale is put back or dropped when it
// fires. So moving a deadline costs nothing. The zero value is empty.
//
// Most timers have one of a few delays: a session, a session and the time to take a
// ticket up, the first resend. Those of one delay come in order, and lie one behind the
// other in a run, which costs a step each however many there are. What fits behind no
// run goes to a binary heap.
type timers[K any] struct {
	runs []run[K]
	heap []timer[K]
}

// run is timers in order of time.
type run[K any] struct {
	all  []timer[K]
	gone int // of all, from the first on
}

// maxRuns bounds the runs, all of which pop looks at.
const maxRuns = 4

func (h *timers[K]) push(at int64, key K) {
	// The run whose last is closest: others are kept for earlier ones.
	best := -1
	for i := range h.runs {
		if last := h.runs[i].last(); last <= at && (best < 0 || last > h.runs[best].last()) {
			best = i
		}
	}
	switch {
	case best >= 0:
		h.runs[best].add(timer[K]{at, key})
	case len(h.runs) < maxRuns:
		h.runs = append(h.runs, run[K]{all: []timer[K]{{at, key}}})
	default:
		h.sift(timer[K]{at, key})
	}
}

// last returns the time of the last timer. A run is never empty.
func (r *run[K]) last() int64 { return r.all[len(r.all)-1].at }

// add appends a timer, into the room of those that are gone if half of all are. When
// most are, it takes less room.
func (r *run[K]) add(t timer[K]) {
	if len(r.all) == cap(r.all) && 2*r.gone >= len(r.all) {
		left := r.all[r.gone:]
		if 4*len(left) < cap(r.all) {
			r.all = slices.Grow([]timer[K](nil), 2*len(left))
		}
		r.all, r.gone = append(r.all[:0], left...), 0
	}
	r.all = append(r.all, t)
}

// sift puts a timer into the heap.
func (h *timers[K]) sift(t timer[K]) {
	h.heap = append(h.heap, t)
	q := h.heap
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if q[parent].at <= q[i].at {
			return
		}
		q[parent], q[i] = q[i], q[parent]
		i = parent
	}
}

// pop removes the earliest timer if it is due at now.
func (h *timers[K]) pop(now int64) (timer[K], bool) {
	first, at := -1, now
	if len(h.heap) > 0 && h.heap[0].at <= at {
		first, at = len(h.runs), h.heap[0].at-1
	}
	for i := range h.runs {
		if t := h.runs[i].all[h.runs[i].gone].at; t <= at {
			first, at = i, t-1
		}
	}
	switch {
	case first < 0:
		return timer[K]{}, false
	case first == len(h.runs):
		return h.shrink(), true
	}
	r := &h.runs[first]
	t := r.all[r.gone]
	if r.gone++; r.gone == len(r.all) {
		h.runs[first] = h.runs[len(h.runs)-1]
		h.runs[len(h.runs)-1] = run[K]{}
		h.runs = h.runs[:len(h.runs)-1]
	}
	return t, true
}

// shrink removes the first timer of the heap.
func (h *timers[K]) shrink() timer[K] {
	q := h.heap
	first := q[0]
	last := len(q) - 1
	q[0] = q[last]
	q[last] = timer[K]{}
	q = q[:last]
	h.heap = q
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q); child++ {
			if q[child].at < q[least].at {
				least = child
			}
		}
		if least == i {
			return first
		}
		q[least], q[i] = q[i], q[least]
		i = least
	}
}
