package check

import (
	"container/heap"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// Active counts who is on the site at one time: everybody who holds a pass that
// is not past its end. A visitor counts once, however many tickets or cookies
// there are. Borrowed sessions are counted apart. It keeps one entry per visitor
// who is on the site.
type Active struct {
	Limits       Limits        // of one room; nil: none
	Peak         int           // the most at one time, without borrowed ones
	PeakBorrowed int           // the most borrowed ones at one time
	Beyond       int           // the most that came in, or went on by another right, beyond the greatest limit in force
	Allowed      int           // that limit
	Over         time.Duration // for how long there were more than that

	in       map[seat]session
	ends     ends[seat]
	borrowed int
	now      int64
	began    map[seat]int64 // sessions, where limits change: those that are over may go on yet
	bound    int            // what was in force when somebody came in beyond it; 0: nobody has
}

type seat struct {
	room    uint32
	visitor uint64
}

type session struct {
	end      int64
	borrowed bool
}

// Add takes one event.
func (a *Active) Add(at record.Located) {
	e := at.Event
	a.Until(e.At)
	k := seat{e.Room, e.Visitor}
	switch e.Kind {
	case record.Entered, record.Reanchored, record.Renewed, record.Borrowed:
		if a.in == nil {
			a.in = map[seat]session{}
		}
		old, is := a.in[k]
		if old.borrowed {
			a.borrowed--
		}
		s := session{max(old.end, e.Ends()), e.Kind == record.Borrowed}
		if s.borrowed {
			a.borrowed++
		}
		if s.end <= e.At && !is {
			return
		}
		a.in[k] = s
		a.judge(a.begins(k, e), e.At)
		heap.Push(&a.ends, ending[seat]{s.end, k})
	case record.Ended:
		a.drop(k)
	}
	a.Peak = max(a.Peak, a.Now())
	a.PeakBorrowed = max(a.PeakBorrowed, a.borrowed)
}

// Now returns how many are on the site, without borrowed ones.
func (a *Active) Now() int { return len(a.in) - a.borrowed }

// Until lets time pass.
func (a *Active) Until(now int64) {
	for len(a.ends) > 0 && a.ends[0].at <= now {
		next := heap.Pop(&a.ends).(ending[seat])
		if s, is := a.in[next.of]; is && s.end <= next.at {
			a.pass(next.at)
			a.drop(next.of)
		}
	}
	a.pass(now)
}

// begins returns when the session of an event began. One that goes on does so whatever the
// limit is by now.
func (a *Active) begins(k seat, e record.Event) int64 {
	if len(a.Limits) < 2 {
		return e.Called()
	}
	if a.began == nil {
		a.began = map[seat]int64{}
	}
	if _, known := a.began[k]; !known || e.Kind == record.Entered {
		a.began[k] = e.Called()
	}
	return a.began[k]
}

// judge looks at how many are on the site with one whose session began some time ago.
func (a *Active) judge(began, now int64) {
	limit, _ := a.Limits.Greatest(began, now)
	if n := a.Now(); limit > 0 && n > limit {
		a.bound = limit
		if n-limit > a.Beyond {
			a.Beyond, a.Allowed = n-limit, limit
		}
	}
}

// pass books the time until now, in which nothing has changed.
func (a *Active) pass(now int64) {
	switch {
	case a.bound == 0:
	case a.Now() <= a.bound:
		a.bound = 0
	case now > a.now && a.now > 0:
		a.Over += time.Duration(now - a.now)
	}
	a.now = max(a.now, now)
}

func (a *Active) drop(k seat) {
	if a.in[k].borrowed {
		a.borrowed--
	}
	delete(a.in, k)
}

// ending is the moment at which something may be over.
type ending[K comparable] struct {
	at int64
	of K
}

// ends is a heap of them by time.
type ends[K comparable] []ending[K]

func (h ends[K]) Len() int           { return len(h) }
func (h ends[K]) Less(i, j int) bool { return h[i].at < h[j].at }
func (h ends[K]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *ends[K]) Push(x any)        { *h = append(*h, x.(ending[K])) }
func (h *ends[K]) Pop() any {
	e := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return e
}
