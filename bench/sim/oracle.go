package sim

import (
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// minute is the span of the limit on new users.
const minute = int64(time.Minute)

// oracle knows who is really inside and who really waits, by the true time, and
// measures what follows from that alone. It never looks into a node.
//
// Between two calls of advance nothing changes but what leaves the sliding
// minute, so sums over time are exact.
type oracle struct {
	room  *room.Settings
	turns []int64 // when the limits may change, in order; those not reached yet

	now     int64
	active  int // may be let pass
	busy    int // these, and who was let pass less than a session ago
	waiting int
	recent  []int64 // when somebody was let in within the last minute

	limits limits

	peakActive, peakMinute int

	idle   float64 // ns × part of the limit that lay idle
	queued float64 // ns in which somebody waited and the room was open

	arrivals, early int

	lastIn     int64 // when somebody was let in last
	lastClosed int64 // when the room last let nobody in on purpose
}

// limits are what holds at one moment.
type limits struct {
	active, minute int
	open           bool          // whether the rules let anybody in
	session        time.Duration // how long one runs after the last request
	fixed          bool          // sessions run from the admission, whatever is asked for
}

func newOracle(s *room.Settings, start int64) *oracle {
	o := &oracle{room: s, now: start, lastIn: start, lastClosed: longAgo}
	epoch := Epoch()
	for _, e := range s.Events {
		for _, t := range []time.Time{e.PrequeueStart, e.Start, e.End} {
			if at := t.Sub(epoch); !t.IsZero() && int64(at) > start {
				o.turns = append(o.turns, int64(at))
			}
		}
	}
	sortTimes(o.turns)
	o.look()
	return o
}

// relimit has the room follow other settings from now on; events stay.
func (o *oracle) relimit(s *room.Settings) {
	o.room = s
	o.look()
}

// look takes over the limits that hold from now on.
func (o *oracle) look() {
	s, event := o.room.At(Epoch().Add(time.Duration(o.now)))
	o.limits = limits{
		active: s.TotalActiveUsers, minute: s.NewUsersPerMinute,
		open:    !s.QueueAll && s.QueueingMethod != room.Reject && !event.Prequeueing,
		session: s.SessionDuration, fixed: s.DisableSessionRenewal,
	}
}

// advance lets time pass.
func (o *oracle) advance(to int64) {
	for len(o.turns) > 0 && o.turns[0] <= to {
		o.pass(o.turns[0])
		o.turns = o.turns[1:]
		o.look()
	}
	o.pass(to)
}

// pass lets time pass under the same limits. Each admission that leaves the last
// minute on the way may make a place.
func (o *oracle) pass(to int64) {
	for len(o.recent) > 0 && o.recent[0]+minute <= to {
		o.span(o.recent[0] + minute)
		o.recent = o.recent[1:]
	}
	o.span(to)
}

// span adds up what goes on, unchanged, until to.
func (o *oracle) span(to int64) {
	d := float64(to - o.now)
	if d <= 0 {
		return
	}
	o.now = to
	if !o.limits.open {
		o.lastClosed = to
		return
	}
	if o.waiting == 0 {
		return
	}
	o.queued += d
	free, limit := o.free()
	o.idle += d * float64(min(free, o.waiting)) / float64(limit)
}

// free returns how many may enter now, and the limit that says so.
func (o *oracle) free() (places, limit int) {
	if !o.limits.open {
		return 0, o.limits.active
	}
	places, limit = o.limits.active-o.busy, o.limits.active
	if byRate := o.limits.minute - len(o.recent); byRate < places {
		places, limit = byRate, o.limits.minute
	}
	return max(0, places), limit
}

// arrived judges the answer to the first request of a new visitor, before the
// visitor counts as waiting: everybody who waits came earlier.
func (o *oracle) arrived(refused bool) {
	o.arrivals++
	if free, _ := o.free(); refused && free > o.waiting {
		o.early++
	}
}

// rank returns what the order of the queue goes by: when somebody came. Those of a
// pre-queue that is shuffled came together: any order among them is the right one,
// but all of them come after who was there before, and before who comes later.
func (o *oracle) rank(came int64) int64 {
	at := Epoch().Add(time.Duration(came))
	for i := range o.room.Events {
		e := &o.room.Events[i]
		if e.Shuffle && !e.Suspended && !e.PrequeueStart.IsZero() && !at.Before(e.PrequeueStart) && at.Before(e.Start) {
			return int64(e.PrequeueStart.Sub(Epoch()))
		}
	}
	return came
}

// wait adds somebody to those who wait (n is 1), or takes somebody away.
func (o *oracle) wait(n int) { o.waiting += n }

// admit counts a new session.
func (o *oracle) admit() {
	o.lastIn = o.now
	o.again()
	o.enter()
}

// again counts another ticket for somebody who is inside.
func (o *oracle) again() {
	o.recent = append(o.recent, o.now)
	o.peakMinute = max(o.peakMinute, len(o.recent))
}

// enter counts somebody who is inside, by a new session or by one that had ended.
func (o *oracle) enter() {
	o.active++
	o.peakActive = max(o.peakActive, o.active)
}

// use counts somebody who uses a place from now on (n is 1), or no more (n is −1).
func (o *oracle) use(n int) { o.busy += n }

// leave counts the end of a session.
func (o *oracle) leave() { o.active-- }
