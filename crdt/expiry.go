package crdt

import (
	"math"
	"time"
)

// leaseGuard is how long after its end a lease may still be in use: the most by
// which two clocks differ.
const leaseGuard = 400 * time.Millisecond

// minFade is the shortest time after which a silent row stops counting. Owners
// change their row at least once per tick, so anything shorter would make rows
// of living nodes flicker.
const minFade = 3 * TickSpan

// maxAhead is how far ahead of the reader's clock a tick may begin.
const maxAhead = TickSpan + 2*time.Second

// Fading says how long the counts of one room outlive their owner. Zero fields
// have the defaults named.
type Fading struct {
	Session time.Duration // how long a lease runs; 0: 5 min
	Refresh time.Duration // how often who waits asks again; 0: 20 s
}

// Retention says how long counts are kept. It must be the same on all nodes:
// what has expired is a function of a key, its row's header, the time and this.
// The zero value has the defaults named.
type Retention struct {
	History  time.Duration       // Seen and Admitted, by their tick; 0: 10 min
	Arrivals time.Duration       // Waiting, by the arrival; 0: 24 h
	Room     func(RoomID) Fading // nil: every room has the defaults
}

func (r Retention) history() time.Duration {
	if r.History > 0 {
		return r.History
	}
	return 10 * time.Minute
}

func (r Retention) arrivals() time.Duration {
	if r.Arrivals > 0 {
		return r.Arrivals
	}
	return 24 * time.Hour
}

func (r Retention) fading(room RoomID) Fading {
	var f Fading
	if r.Room != nil {
		f = r.Room(room)
	}
	if f.Session <= 0 {
		f.Session = 5 * time.Minute
	}
	if f.Refresh <= 0 {
		f.Refresh = 20 * time.Second
	}
	return f
}

// past reports whether a cell is over by its key alone. Such a cell is over on
// every node and may be forgotten.
func (r Retention) past(kind Kind, tick int64, now time.Time) bool {
	switch kind {
	case Seen, Admitted:
		return now.After(r.endOfHistory(tick))
	case Waiting:
		return now.After(r.endOfArrivals(tick))
	}
	return false
}

// firsts are the first ticks of history and of arrivals that are not past: past
// for many cells at once.
type firsts struct {
	history, arrivals int64
}

func (r Retention) first(now time.Time) firsts {
	return firsts{
		history:  ceilDiv(now.Add(-r.history()).UnixNano(), int64(TickSpan)) - 1,
		arrivals: ceilDiv(now.Add(-r.arrivals()).UnixNano(), int64(time.Second)),
	}
}

func (f firsts) past(s slot) bool {
	switch s.kind {
	case Seen, Admitted:
		return s.tick < f.history
	case Waiting:
		return s.tick < f.arrivals
	}
	return false
}

// none are the first ticks of no cell at all.
var none = firsts{math.MaxInt64, math.MaxInt64}

// note has f be no later than a cell.
func (f *firsts) note(s slot) {
	switch s.kind {
	case Seen, Admitted:
		f.history = min(f.history, s.tick)
	case Waiting:
		f.arrivals = min(f.arrivals, s.tick)
	}
}

func (f firsts) least(o firsts) firsts {
	return firsts{min(f.history, o.history), min(f.arrivals, o.arrivals)}
}

// until returns the last moment at which no cell is past; zero: none ever is.
func (r Retention) until(oldest firsts) (at time.Time) {
	if oldest.history != math.MaxInt64 {
		at = r.endOfHistory(oldest.history)
	}
	if oldest.arrivals != math.MaxInt64 {
		if end := r.endOfArrivals(oldest.arrivals); at.IsZero() || end.Before(at) {
			at = end
		}
	}
	return at
}

func (r Retention) endOfHistory(tick int64) time.Time {
	return time.Unix((tick+1)*int64(TickSpan/time.Second), 0).Add(r.history())
}

func (r Retention) endOfArrivals(at int64) time.Time { return time.Unix(at, 0).Add(r.arrivals()) }

func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// keeps is how long counts of a room outlive the last sign of life of their owner.
type keeps struct{ active, waiting, held, session time.Duration }

func (r Retention) keeps(room RoomID) keeps {
	f := r.fading(room)
	return keeps{
		active:  max(f.Session+leaseGuard, minFade),
		waiting: max(f.Refresh*5/2, minFade),
		held:    minFade, // the node has them still, but nobody can use them
		session: f.Session + leaseGuard,
	}
}

// ofDead returns how long they do if the owner is known not to run: then its last change is not
// one of many to come, and its leases are over when the last of them may be.
func (k keeps) ofDead() keeps {
	k.active, k.held = k.session, min(k.held, k.session)
	return k
}

// WaitingFor returns for how long after its last change a row counts who waits in a room.
func (r Retention) WaitingFor(room RoomID) time.Duration { return r.keeps(room).waiting }

// fadedKinds are the kinds of counts of one owner that have faded, a bit each.
type fadedKinds uint8

func (f fadedKinds) has(kind Kind) bool { return f>>kind&1 != 0 }

// over returns which counts have outlived their owner, whose last sign of life was at
// changed (Unix milliseconds). They may come back to life with the owner, so they are
// left out of sums but not forgotten by themselves.
func (k keeps) over(changed int64, now time.Time) (f fadedKinds) {
	since := now.Sub(time.UnixMilli(changed))
	if since <= min(minFade, k.active) {
		return 0 // nearly always
	}
	if since > k.active {
		f |= 1 << Active
	}
	if since > k.waiting {
		f |= 1 << Waiting
	}
	if since > k.held {
		f |= 1<<Held | 1<<HeldRate
	}
	return f
}

// faded is over for one kind.
func (r Retention) faded(room RoomID, kind Kind, changed int64, now time.Time) bool {
	return r.keeps(room).over(changed, now).has(kind)
}

// pastHorizon reports whether nothing can count any more of what a site said of a room, whose last sign of life
// was at told (Unix milliseconds).
func (r Retention) pastHorizon(room RoomID, told int64, now time.Time) bool {
	since, least := now.Sub(time.UnixMilli(told)), max(minFade, r.history()+2*maxAhead)
	if since <= least {
		return false // nearly always
	}
	f := r.fading(room)
	return since > max(f.Session+leaseGuard, f.Refresh*5/2, least)
}

// counts reports whether a cell is part of the sums at now.
func (r Retention) counts(key Key, changed int64, now time.Time) bool {
	return !r.past(key.Kind, key.Tick, now) && !r.faded(key.Room, key.Kind, changed, now)
}

// MaxPlaceAhead is how far ahead of the time a place in a queue may lie: those who
// wait for a start are given places up to it. It is the longest such wait.
const MaxPlaceAhead = 12 * time.Hour

// ahead reports whether a key lies further in the future than a peer can
// honestly have it.
func ahead(kind Kind, tick int64, now time.Time) bool {
	limit := now.Add(maxAhead)
	switch kind {
	case Seen, Admitted:
		return tick > TickOf(limit)
	case Waiting:
		return tick > limit.Add(MaxPlaceAhead).Unix()
	}
	return false
}
