package room

import (
	"math"
	"time"
)

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
	s := &v.Settings
	if s.Policy != Escrow || s.QueueingMethod != FIFO || e.Position == 0 {
		return s.Jitter(visitor, at)
	}
	if v.closed || v.Event.Prequeueing && !e.Known {
		return s.RefreshInterval // it is no matter of places
	}
	before := e.Ahead - v.Slots // how many have to leave before a place is this visitor's
	if before <= 0 {
		return s.soonest()
	}
	rate := v.AdmittedMinute
	if !e.Known {
		rate = min(float64(s.NewUsersPerMinute), float64(v.Active)/s.SessionDuration.Minutes())
	}
	if rate <= 0 {
		return s.RefreshInterval // nobody knows when
	}
	half := float64(before+1) * 60 / rate / 2
	half = min(math.Floor(half), s.RefreshInterval.Seconds())
	return max(s.soonest(), time.Duration(half)*time.Second)
}

// soonest is the shortest interval that Told returns.
func (s *Settings) soonest() time.Duration {
	part := s.RefreshInterval / soonestPart
	if cut := part.Truncate(time.Second); cut < part {
		part = cut + time.Second
	}
	return min(max(part, leastSoonest), s.RefreshInterval)
}
