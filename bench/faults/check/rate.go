package check

import (
	"container/heap"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// Rate counts how many visitors entered within any Window. Whoever is slow to be
// answered may have been let in at any moment since the request was there, so
// that only those count of whom both lie within the window: Peak is never more
// than what really was. It keeps one number per visitor of the last window.
type Rate struct {
	Window  time.Duration // 0: a minute
	Limits  Limits        // of one room; nil: none
	Peak    int
	Beyond  int // the most beyond the greatest limit in force within Window
	Allowed int // that limit

	calls times
}

// Add takes one event.
func (r *Rate) Add(at record.Located) {
	e := at.Event
	if e.Kind != record.Entered {
		return
	}
	window := r.Window
	if window == 0 {
		window = time.Minute
	}
	heap.Push(&r.calls, e.Called())
	for len(r.calls) > 0 && r.calls[0] <= e.At-int64(window) {
		heap.Pop(&r.calls)
	}
	r.Peak = max(r.Peak, len(r.calls))
	if _, limit := r.Limits.Greatest(e.At-int64(window), e.At); limit > 0 && len(r.calls)-limit > r.Beyond {
		r.Beyond, r.Allowed = len(r.calls)-limit, limit
	}
}

type times []int64

func (h times) Len() int           { return len(h) }
func (h times) Less(i, j int) bool { return h[i] < h[j] }
func (h times) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *times) Push(x any)        { *h = append(*h, x.(int64)) }
func (h *times) Pop() any {
	t := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return t
}
