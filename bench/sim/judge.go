package sim

import (
	"fmt"

	"github.com/ropeline/ropeline/node/room"
)

// How many may be inside, and let in within a minute: the limits in force say so. Beside
// that, no more than nodes have minted.

// excesses are the largest ones, as parts of what they go beyond.
type excesses struct{ active, minute float64 }

func excess(n, limit int64) float64 { return max(0, float64(n-limit)/float64(max(1, limit))) }

// Exempt are admissions, and moves to another right, beyond a limit in force under the
// policy escrow that break no promise: exceptions that docs/limit.md lists.
type Exempt struct {
	Borrowed int `json:"borrowed"`     // no more than there were sessions that say that they are borrowed
	Switched int `json:"switched"`     // while the limit was switched off at some node, or by sessions of such a time
	Clocks   int `json:"clocks_apart"` // clocks may be more than 400 ms apart
	Unheard  int `json:"unheard"`      // no more than are inside by a limit that was lowered, or is lost with its node, where the node could not hear of it
	Remade   int `json:"remade"`       // beside those whom a room let in that is deleted, at a node that may not have heard of that for long
}

// entered judges that somebody is inside who was not, or goes on by another right. The
// session may be one of before: it goes on whatever the limit is by now, but not beyond
// all limits that were in force since it began.
func (s *sim) entered(number uint8, m *machine, since int64) {
	a, limit := s.rights.account(number), s.bound(number, since).Places
	over := int64(a.inside) - limit
	if over > 0 && over <= s.unheard(number, m, limit) && s.cfg.Room.Policy == room.Escrow {
		s.f.Exempt.Unheard++
		return
	}
	s.over.active = max(s.over.active, excess(int64(a.inside), limit))
	if over+int64(a.free) > 0 && (a.free > 0 || s.unbound()) {
		s.f.Exempt.Switched++
	}
	switch {
	case over <= 0 || s.cfg.Room.Policy != room.Escrow || s.unbound():
	case !s.rights.strict:
		s.f.Exempt.Clocks++
	case !s.rights.borrows:
		s.violate(OverLimit, m, fmt.Sprintf("%d are inside, the greatest limit in force is %d; %d rights are minted", a.inside, limit, a.minted.Places))
	case over > int64(a.borrowed):
		s.violate(BorrowedHidden, m, fmt.Sprintf("%d are inside, the greatest limit in force is %d, and %d passes say that they are borrowed", a.inside, limit, a.borrowed))
	default:
		s.f.Exempt.Borrowed++
	}
}

// unheard returns how many are inside by a larger limit of which a node need not know that it was
// lowered since, or that there ever was one: they stay, and that node goes by what it has heard.
func (s *sim) unheard(number uint8, m *machine, limit int64) (n int64) {
	if !s.follows {
		return 0
	}
	for i := range s.people.all {
		if v := &s.people.all[i]; v.active && v.room == number && v.under > 0 && s.force.unheard(m.no, int(v.under-1), limit) {
			n++
		}
	}
	return n
}

// passed judges that somebody is let pass, who may have been inside before.
func (s *sim) passed(number uint8, m *machine) {
	l := &s.rights
	if s.cfg.Room.Policy != room.Escrow {
		return
	}
	a := l.account(number)
	if int64(a.inside) <= a.minted.Places {
		return
	}
	minted := s.mintedNow(number).Places
	over := int64(a.inside) - minted
	switch {
	case over <= 0 || !l.strict || s.unbound():
	case !l.borrows:
		s.violate(OverMinted, m, fmt.Sprintf("%d are inside, %d rights are minted", a.inside, a.minted.Places))
	case over > int64(a.borrowed):
		s.violate(BorrowedHidden, m, fmt.Sprintf("%d are inside, %d rights are minted, and %d passes say that they are borrowed", a.inside, a.minted.Places, a.borrowed))
	}
}

// admitted judges that somebody was given a new session.
func (s *sim) admitted(number uint8, m *machine) {
	a := s.rights.account(number)
	n, limit := int64(a.lately(s.now)), s.bound(number, s.now-minute).Rate
	s.over.minute = max(s.over.minute, excess(n, limit))
	if s.cfg.Room.Policy != room.Escrow || s.unbound() {
		return
	}
	switch {
	case n <= limit && s.rights.lately(s.now) > limit && s.parted:
		s.f.Exempt.Remade++
	case n <= limit && s.rights.lately(s.now) > limit:
		s.violate(OverRate, m, fmt.Sprintf("%d were let in within 60 s by a room and by those of before, which are deleted; the greatest limit in force is %d", s.rights.lately(s.now), limit))
	case n <= limit:
	case !s.rights.strict:
		s.f.Exempt.Clocks++
	default:
		s.violate(OverRate, m, fmt.Sprintf("%d were let in within 60 s, the greatest limit in force is %d; %d rights are minted", n, limit, a.minted.Rate))
	}
	if n <= a.minted.Rate {
		return
	}
	if n > s.mintedNow(number).Rate && s.rights.strict {
		s.violate(OverMintedRate, m, fmt.Sprintf("%d were let in within 60 s, %d rights are minted", n, a.minted.Rate))
	}
}
