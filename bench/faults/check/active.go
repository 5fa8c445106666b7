package check

import (
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// Active counts who is on the site at one time: everybody who holds a pass that
// is not past its end. A visitor counts once, however many tickets or cookies
// there are. Borrowed sessions are counted apart. It keeps one entry per visitor
// who is on the site.
//
// So it holds as well that calls for tickets are those of a store of as many places,
// from which each takes one that comes back when the session is over: a call may take
// its place as late as when its answer leaves, which is when its visitor counts here.
type Active struct {
	Limits   Limits        // of one room; nil: none
	Peak     int           // the most at one time
	Borrowed int           // how often a session was borrowed, or went on like that
	Beyond   int           // the most that came in, or went on by another right, beyond the greatest limit in force
	Allowed  int           // that limit
	Over     time.Duration // for how long there were more than that

	in    holders[seat]
	now   int64
	began map[seat]int64 // sessions, where limits change: those that are over may go on yet
	bound int            // what was in force when somebody came in beyond it; 0: nobody has
}

type seat struct {
	room    uint32
	visitor uint64
}

// Add takes one event.
func (a *Active) Add(at record.Located) {
	e := at.Event
	a.Until(e.At)
	k := seat{e.Room, e.Visitor}
	switch e.Kind {
	case record.Borrowed:
		a.Borrowed++
	case record.Entered, record.Reanchored, record.Renewed:
		old, is := a.in.until[k]
		end := max(old, e.Ends())
		if end <= e.At && !is {
			return
		}
		a.in.set(k, end)
		a.judge(a.begins(k, e), e.At)
	case record.Ended:
		delete(a.in.until, k)
	}
	a.Peak = max(a.Peak, a.Now())
}

// Now returns how many are on the site.
func (a *Active) Now() int { return len(a.in.until) }

// Until lets time pass.
func (a *Active) Until(now int64) {
	for _, at := range a.in.over(now) {
		a.pass(at)
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
