package room

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Under Escrow rights are the limit, and a view only says whose turn it is. It may
// therefore err, and does so towards too many: who may enter and finds no right
// asks again, but a right that nobody may use lies idle.

// freesSoon is how far ahead rate rights that are about to be usable again are
// promised: about as long as a view, its news and the visitor take.
const freesSoon = 2 * time.Second

// inReach reports whether a site's visitors and rights matter here. Neither its
// rights nor its visitors can come over a cut, so nobody waits for those: each
// side serves the oldest of its visitors with its rights. Membership notices that
// within seconds; closed ticks notice what membership does not.
func (s *Site) inReach(set *Settings, now time.Time) bool {
	return s.Own || s.Nodes > 0 && s.standing(set, now) == takesPart
}

// cooling estimates how many rate rights are not usable yet. What was admitted in
// the tick at the edge of the window is taken to have come evenly.
func (a admissions) cooling(now time.Time) int {
	start := time.Unix(crdt.TickOf(now)*int64(crdt.TickSpan/time.Second), 0)
	gone := min(now.Sub(start)+freesSoon, crdt.TickSpan)
	return a.minute - scale(a.edge, int(gone), int(crdt.TickSpan))
}

// usable returns how many visitors a site could let in with the rights it owns.
func (st *siteTally) usable() int {
	return max(0, min(st.held-st.active, st.heldRate-st.cooling))
}

// slotsByRights returns how many visitors may enter right now, as far as counts
// tell: with the rights of all sites in reach, which go where they are wanted. A
// limit that was lowered binds before the rights above it are gone.
func (v *View) slotsByRights(t *tally) int {
	var places, rate, active, cooling int64
	for i := range t.sites {
		st := &t.sites[i]
		if st.frozen {
			continue
		}
		places += int64(max(0, st.held-st.active))
		rate += int64(max(0, st.heldRate-st.cooling))
		active += int64(st.active)
		cooling += int64(st.cooling)
	}
	left := Slots(int64(v.Settings.TotalActiveUsers), int64(v.Settings.NewUsersPerMinute), active, cooling)
	return int(min(places, rate, int64(left)))
}

// splitByRights divides between sites only what has to be: the bucket that gets
// a part. Whoever has a place reserved is let in by any right there is; so are
// new visitors, where slots are left for them. What a site is said to have for
// those is where rights lie, for people to look at.
func (p *places) splitByRights(t *tally) {
	if p.partial < p.eligible {
		p.splitBucket(p.reserved[p.partial], roundingOf(t.minutes[0]))
	}
	for i := range t.sites {
		if p.weights[i] = 0; !t.sites[i].frozen {
			p.weights[i] = t.sites[i].usable()
		}
	}
	apportion(p.fresh, p.rest, p.weights, plain)
}

// placeByRights sets what new visitors, and those in the one contested granule,
// may take. While nobody waits, there is nobody to overtake, and under Random
// nobody ever is: then the rights alone decide, which know what counts only hear
// of later.
func (v *View) placeByRights(t *tally, p *places, contested int) {
	v.AllowNew = contested + p.rest
	if p.served > 0 && v.Settings.QueueingMethod != Random {
		return
	}
	own := &t.sites[t.own]
	v.AllowNew = max(v.AllowNew, min(own.held, own.heldRate))
	v.OpenToNew = v.AllowNew > 0 && !v.Event.Prequeueing
}
