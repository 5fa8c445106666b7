package check

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// Taken counts places that nobody else can have. Of each ticket that is from when its
// visitor was let in until the session is over, and Guard longer: a clock that is
// behind may let the visitor pass for as long. A session lasts as the pass says, and
// Session from the last request: that is what the anchor has been asked for by then,
// and the pass is told of it with the next request only, of which the last has none.
//
// It says how full a room is, not whether a limit holds: that is for Active, which
// knows nothing but passes. A visitor who goes on with another ticket has two places
// for a while; borrowed sessions have none. It never counts a place too many as long
// as clocks agree, and may count too few: not every request is on record. It keeps one
// entry per place that is taken.
type Taken struct {
	Guard   time.Duration // for how long a place rests
	Session time.Duration // from a request on; 0: requests make no session longer
	Peak    int           // the most at one time

	places holders[ticket]
}

// Add takes one event.
func (t *Taken) Add(at record.Located) {
	e := at.Event
	t.pass(e.At)
	p := ticket{start{e.Room, e.Anchor, e.Boot}, e.Seq}
	switch e.Kind {
	case record.Entered, record.Reanchored, record.Renewed:
		left := e.Left
		if e.Kind == record.Renewed {
			left = max(left, t.Session)
		}
		free := e.At + int64(left+t.Guard)
		if free <= max(e.At, t.places.until[p]) {
			return
		}
		t.places.set(p, free)
	case record.Ended:
		delete(t.places.until, p) // at once: the pass is gone with the answer
	}
	t.Peak = max(t.Peak, t.Now())
}

// Now returns how many places are taken.
func (t *Taken) Now() int { return len(t.places.until) }

// pass lets time pass.
func (t *Taken) pass(now int64) {
	for range t.places.over(now) {
	}
}

// holders is who holds something, and until when.
type holders[K comparable] struct {
	until map[K]int64
	ends  []ending[K] // in order
}

// ending is a moment at which somebody may hold nothing any more: the last one of each does.
type ending[K comparable] struct {
	at int64
	of K
}

func (h *holders[K]) set(k K, until int64) {
	if h.until == nil {
		h.until = map[K]int64{}
	}
	h.until[k] = until
	i, _ := slices.BinarySearchFunc(h.ends, until, func(e ending[K], at int64) int { return cmp.Compare(e.at, at) })
	h.ends = slices.Insert(h.ends, i, ending[K]{until, k})
}

// over yields who holds nothing any more by now, in the order in which that came, and since when. Whoever is yielded
// is one of the holders until the next one is asked for.
func (h *holders[K]) over(now int64) iter.Seq2[K, int64] {
	return func(yield func(K, int64) bool) {
		for len(h.ends) > 0 && h.ends[0].at <= now {
			next := h.ends[0]
			h.ends = h.ends[1:]
			if until, is := h.until[next.of]; is && until <= next.at {
				if !yield(next.of, next.at) {
					return
				}
				delete(h.until, next.of)
			}
		}
	}
}
