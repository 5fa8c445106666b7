package room

import "time"

// soonestPart is the part of the interval below which nobody is told to come
// again, and leastSoonest the shortest span that it may mean: a second or two is
// what browsers and the way here make of it anyway.
const (
	soonestPart  = 10
	leastSoonest = 2 * time.Second
)

// Told returns the interval after which a waiting visitor is told to ask again,
// who polls at at and is told e. Mostly it is that of Settings.Jitter.
//
// Where rights are the limit and order counts, a place that comes free waits for
// the visitor whose turn it is. So who is near the head of the line comes more
// often: after half of the time until their turn, as far as the average tells,
// down to a tenth of the interval. That costs few requests: those whose turn is
// more than two intervals away are told the whole interval, and halving
// takes few steps. Who has a place already, and was only too early for the right to
// be there, comes as soon as that, and so does whoever is next, however long that
// may take: it is one visitor. Where nobody was let in lately, as many are taken to
// leave as have sessions that nobody prolongs. It is in whole seconds, as browsers
// take it, and a function of its arguments.
func (v *View) Told(visitor [16]byte, e Estimate, at time.Time) time.Duration {
	s := v.Settings
	if s.Policy != Escrow || s.QueueingMethod != FIFO || e.Position == 0 {
		return s.Jitter(visitor, at)
	}
	if v.closed || v.Event.Prequeueing && !e.Known {
		return s.RefreshInterval // it is no matter of places
	}
	if e.Ahead <= v.Slots {
		return s.soonest()
	}
	turn, known := v.turn(e)
	if !known {
		return s.RefreshInterval
	}
	half := min(turn/2, s.RefreshInterval)
	return max(s.soonest(), half.Truncate(time.Second))
}

// turn returns how long it takes until a place is this visitor's, as far as the
// average tells; none if they are next. If it is not known, nobody knows when.
func (v *View) turn(e Estimate) (d time.Duration, known bool) {
	before := e.Ahead - v.Slots // how many have to leave before that
	if before <= 0 {
		return 0, true
	}
	rate := v.AdmittedMinute
	if !e.Known {
		rate = min(float64(v.Settings.NewUsersPerMinute), float64(v.Active)/v.Settings.SessionDuration.Minutes())
	}
	if rate <= 0 {
		return 0, false
	}
	minutes := min(float64(before+1)/rate, mostMinutes)
	return time.Duration(minutes * float64(time.Minute)), true
}

// seldom is what a visitor who looks away may let pass of the time for which the
// place is kept, in parts of it: browsers may hold their timers for a minute, and
// there is to be time for a second try.
const seldom = 5.0 / 2

// Away returns how long a visitor who is told told may stay away at at who does not
// look at the page: half of the time until their turn, or until the start of the event
// that they wait for, but no longer than is safe for the place, and no shorter than
// told. Under Random each request is a chance, so it is told.
func (v *View) Away(e Estimate, told time.Duration, at time.Time) time.Duration {
	most := time.Duration(float64(v.Settings.PlaceKept) / seldom)
	switch {
	case v.closed:
	case v.Event.Prequeueing && !e.Known:
		most = min(most, v.Event.Start.Sub(at)/2)
	case v.Settings.QueueingMethod == Random || e.Position == 0:
		return told
	default:
		if turn, known := v.turn(e); known {
			most = min(most, turn/2)
		}
	}
	return max(told, most.Truncate(time.Second))
}

// Expected returns after what time a waiting visitor is taken to ask again who was
// told told now, and asks now after a span of since, having been told before to do so
// after before. Who was that late may have a rhythm of their own, as programs do that
// ask every 20 seconds whatever they are told. Taken at our word, they would be absent
// whenever a place is there, and be overtaken for ever. So they are expected after as
// long as they took, up to the room's whole interval. Who was away for longer than that
// may mean is not: no place lies idle for them.
func (v *View) Expected(since, before, told time.Duration) time.Duration {
	if before <= 0 {
		before = v.Settings.RefreshInterval
	}
	if since <= absentAfter(before) || since > absentAfter(v.Settings.RefreshInterval) {
		return told
	}
	return max(told, min(since, v.Settings.RefreshInterval))
}

// soonest is the shortest interval that Told returns.
func (s *Settings) soonest() time.Duration {
	part := s.RefreshInterval / soonestPart
	if cut := part.Truncate(time.Second); cut < part {
		part = cut + time.Second
	}
	return min(max(part, leastSoonest), s.RefreshInterval)
}
