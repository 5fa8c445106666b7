package check

import (
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
