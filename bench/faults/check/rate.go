package check

import (
	"math"
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// Rate counts how many visitors entered within any minute. Whoever is slow to be
// answered may have been let in at any moment since the request was there, so
// that only those count of whom both lie within it: Peak is never more
// than what really was. It keeps one number per visitor of the last minute.
type Rate struct {
	Limits  Limits // of one room; nil: none
	Peak    int
	Beyond  int // the most beyond the greatest limit in force within that minute
	Allowed int // that limit

	calls []int64 // in order
}

// Add takes one event.
func (r *Rate) Add(at record.Located) {
	e := at.Event
	if e.Kind != record.Entered {
		return
	}
	i, _ := slices.BinarySearch(r.calls, e.Called())
	r.calls = slices.Insert(r.calls, i, e.Called())
	over, _ := slices.BinarySearch(r.calls, e.At-int64(time.Minute)+1)
	r.calls = r.calls[over:]
	r.Peak = max(r.Peak, len(r.calls))
	if _, limit := r.Limits.Greatest(e.At-int64(time.Minute), e.At); limit > 0 && len(r.calls)-limit > r.Beyond {
		r.Beyond, r.Allowed = len(r.calls)-limit, limit
	}
}

// Spreads is how long after an operator was told that a limit holds every node that is
// reached has to know it.
const Spreads = 2 * time.Second

// Limit is what an operator has said of a room.
type Limit struct {
	Asked, Told       int64 // when that was asked of a node, and when the answer was there; 0: from the start
	Active, PerMinute int
}

// Limits are what operators have said of a room, in order. No node is asked.
type Limits []Limit

// Greatest returns the greatest limits that were in force at any time of a span: a limit
// may hold as soon as it is asked for, and the one before it until all have to know. A cut
// does not count, so nobody is to change limits during one.
func (l Limits) Greatest(from, to int64) (active, perMinute int) {
	for i, is := range l {
		until := int64(math.MaxInt64)
		if i+1 < len(l) {
			until = l[i+1].Told + int64(Spreads)
		}
		if is.Asked <= to && from < until {
			active, perMinute = max(active, is.Active), max(perMinute, is.PerMinute)
		}
	}
	return active, perMinute
}
