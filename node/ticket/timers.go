package ticket

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
	*timerQueue[K] // nil: there never was one, as in most rooms
}

type timerQueue[K any] struct {
	runs  []run[K]
	heap  []timer[K]
	spare []timer[K] // a piece of a run that is over, for the next one; nil: there is none
}

// run is timers in order of time. They lie in pieces, so that a run takes no more memory
// than its timers, and none that have fired.
type run[K any] struct {
	pieces [][]timer[K] // none is empty, and all but the first and the last are full
	gone   int          // of the first, from its first on; never all of it
}

// pieceLen is how many timers lie in one piece. The first of a run grows up to that.
const pieceLen = 256

// maxRuns bounds the runs, all of which pop looks at.
const maxRuns = 4

func (h *timers[K]) push(at int64, key K) {
	if h.timerQueue == nil {
		h.timerQueue = new(timerQueue[K])
	}
	// The run whose last is closest: others are kept for earlier ones.
	best := -1
	for i := range h.runs {
		if last := h.runs[i].last(); last <= at && (best < 0 || last > h.runs[best].last()) {
			best = i
		}
	}
	switch {
	case best >= 0:
		h.spare = h.runs[best].add(timer[K]{at, key}, h.spare)
	case len(h.runs) < maxRuns:
		h.runs = append(h.runs, run[K]{pieces: [][]timer[K]{{{at, key}}}})
	default:
		h.sift(timer[K]{at, key})
	}
}

// last returns the time of the last timer. A run is never empty.
func (r *run[K]) last() int64 {
	p := r.pieces[len(r.pieces)-1]
	return p[len(p)-1].at
}

// first returns the timer that is next.
func (r *run[K]) first() *timer[K] { return &r.pieces[0][r.gone] }

// add appends a timer. spare is a piece to take if one is needed; what is left of it is
// returned.
func (r *run[K]) add(t timer[K], spare []timer[K]) []timer[K] {
	last := len(r.pieces) - 1
	switch p := r.pieces[last]; {
	case len(p) < pieceLen:
		r.pieces[last] = append(p, t)
		return spare
	case spare == nil:
		spare = make([]timer[K], 0, pieceLen)
	}
	r.pieces = append(r.pieces, append(spare, t))
	return nil
}

// drop removes the timer that is next. It returns a piece of which nothing is left, and
// whether that was the last one.
func (r *run[K]) drop() (spare []timer[K], over bool) {
	if r.gone++; r.gone < len(r.pieces[0]) {
		return nil, false
	}
	if p := r.pieces[0]; cap(p) == pieceLen {
		spare = p[:0]
	}
	r.pieces[0], r.gone = nil, 0
	r.pieces = r.pieces[1:]
	return spare, len(r.pieces) == 0
}

// sift puts a timer into the heap.
func (h *timerQueue[K]) sift(t timer[K]) {
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
	if h.timerQueue == nil {
		return timer[K]{}, false
	}
	first, at := -1, now
	if len(h.heap) > 0 && h.heap[0].at <= at {
		first, at = len(h.runs), h.heap[0].at-1
	}
	for i := range h.runs {
		if t := h.runs[i].first().at; t <= at {
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
	t := *r.first()
	spare, over := r.drop()
	if spare != nil {
		h.spare = spare
	}
	if over {
		h.runs[first] = h.runs[len(h.runs)-1]
		h.runs[len(h.runs)-1] = run[K]{}
		if h.runs = h.runs[:len(h.runs)-1]; len(h.runs) == 0 {
			h.spare = nil // what is idle keeps nothing
		}
	}
	return t, true
}

// shrink removes the first timer of the heap.
func (h *timerQueue[K]) shrink() timer[K] {
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
