package ticket

import "time"

// Ended is a session whose lease has ended at its anchor.
type Ended struct {
	Began   time.Time // when the visitor was let in; zero: that is not known here
	Last    time.Time // when the anchor heard of the visitor for the last time; zero: it hears of nobody, since sessions are not renewed
	Revoked bool      // the site has ended it
}

// stays tells of sessions that end. The zero value tells nobody, and has nobody note when
// they begin.
//
// That is kept with each lease, in ms of which the upper bits are left out: whoever stays
// for more than 49 days is told to have stayed for as much less.
type stays struct {
	told func(Ended)
}

// beginUnknown is in place of when a session began. Who comes in that very ms is taken to
// have come in the next one.
const beginUnknown = 0

// behindMS is how far ahead of the end of a session its begin may seem to be, by other
// clocks, in ms.
const behindMS = 60 * 60 * 1000

// begin notes when the visitor of a lease was let in.
func (s *stays) begin(of *lease, at time.Time) {
	if s.told == nil || of.began != beginUnknown {
		return
	}
	if of.began = uint32(at.UnixMilli()); of.began == beginUnknown {
		of.began++
	}
}

// end tells of the end, at now, of a session that was heard of for the last time at last.
func (s *stays) end(began uint32, last, now int64, revoked bool) {
	if s.told == nil {
		return
	}
	e := ended(last, revoked)
	if began != beginUnknown {
		lasted := int64(uint32(now) - began)
		if lasted > 1<<32-behindMS {
			lasted -= 1 << 32
		}
		e.Began = time.UnixMilli(now - lasted)
	}
	s.told(e)
}

// endUnknown tells of the end of a session that began elsewhere, or in another start.
func (s *stays) endUnknown(last int64, revoked bool) {
	if s.told != nil {
		s.told(ended(last, revoked))
	}
}

func ended(last int64, revoked bool) Ended {
	e := Ended{Revoked: revoked}
	if last != neverHeard {
		e.Last = time.UnixMilli(last)
	}
	return e
}

// neverHeard is in place of a time.
const neverHeard = 0

// heard returns when the anchor heard for the last time of a visitor whose lease has run out
// at end, in Unix ms.
func (l *Leases) heard(end int64) int64 {
	if l.fixed {
		return neverHeard
	}
	return end - l.session
}
