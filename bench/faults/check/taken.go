package check

import (
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
