package ticket

import "time"

// Ended is a session whose lease has ended at its anchor.
type Ended struct {
	Began   time.Time // when the visitor was let in; zero: that is not known here
	Last    time.Time // when the anchor heard of the visitor for the last time; zero: it hears of nobody, since sessions are not renewed
	Revoked bool      // the site has ended it
}

// stays tells of sessions that end. The zero value tells nobody, and keeps nothing.
type stays struct {
	told  func(Ended)
	began map[uint64]int64 // of leases of this start, in Unix ms, as far as it is known
}

// begin notes when the visitor of a ticket was let in.
func (s *stays) begin(seq uint64, at time.Time) {
	if s.told == nil {
		return
	}
	if s.began == nil {
		s.began = map[uint64]int64{}
	}
	if _, known := s.began[seq]; !known {
		s.began[seq] = at.UnixMilli()
	}
}

// end tells of the end of a session that was heard of for the last time at last.
func (s *stays) end(seq uint64, last int64, revoked bool) {
	if s.told == nil {
		return
	}
	e := ended(last, revoked)
	if ms, known := s.began[seq]; known {
		e.Began = time.UnixMilli(ms)
		delete(s.began, seq)
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
