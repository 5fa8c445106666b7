package room

import (
	"math"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Under Escrow rights are the limit, and a view only says whose turn it is. It may
// therefore err, and does so towards too many: who may enter and finds no right
// asks again, but a right that nobody may use lies idle.

// freesSoon is how far ahead what is about to come free is promised: as long as
// the news of it, the next view and the visitor's next request take together. So
// somebody in turn asks at about the time when it is there. With less, places lie
// idle; with more, more people near the head of the line are in turn at once, and
// the order among them is that in which they ask.
const freesSoon = 4 * time.Second

// newsTakes is how long it takes until a place that came free shows in the counts
// of all nodes: an anchor waits for a guard, counts are pushed four times a second,
// and news from other sites passes two nodes more. New visitors may have what has
// come free by then. Else they find the room full by that much too early, join the
// line, and more after them because there is a line.
const newsTakes = time.Second

// inReach reports whether a site's visitors and rights matter here. Neither its
// rights nor its visitors can come over a cut, so nobody waits for those: each
// side serves the oldest of its visitors with its rights. Membership notices that
// within seconds; closed ticks notice what membership does not.
func (s *Site) inReach(set *Settings, now time.Time) bool {
	return s.Own || s.Nodes > 0 && s.standing(set, now) == takesPart
}

// cooling estimates how many rate rights of a site will not be usable yet in
// ahead. What was admitted in the tick at the edge of the window is taken to have
// come evenly.
func (t *tally) cooling(st *siteTally, ahead time.Duration) int {
	warm := min(t.into+ahead, crdt.TickSpan)
	return st.minute - scale(st.edge, int(warm), int(crdt.TickSpan))
}

// slotsByRights returns how many visitors may enter in ahead, as far as counts
// tell: with the rights of all sites in reach, which go where they are wanted. A
// limit that was lowered binds before the rights above it are gone. While people
// wait, as many places come free as are let in.
func (v *View) slotsByRights(t *tally, ahead time.Duration) int {
	if v.closed {
		return 0
	}
	soon := int64(math.Round(t.rate * ahead.Minutes()))
	places, rate, active, cooling := soon, int64(0), -soon, int64(0)
	for i := range t.sites {
		st := &t.sites[i]
		if st.frozen {
			continue
		}
		cools := t.cooling(st, ahead)
		places += int64(max(0, st.free()))
		rate += int64(max(0, st.heldRate-cools))
		active += int64(st.active)
		cooling += int64(cools)
	}
	left := Slots(int64(v.Settings.TotalActiveUsers), int64(v.Settings.NewUsersPerMinute), active, cooling)
	return int(min(places, rate, int64(left)))
}

// free returns how many places a site has that no session uses, below 0 if it counts more of
// those: it may have heard of a session before it has of the right.
func (st *siteTally) free() int { return st.held - st.active + st.orphans }

// usable returns how many visitors a site could let in now with the rights it owns.
func (t *tally) usable(st *siteTally) int {
	return max(0, min(st.free(), st.heldRate-t.cooling(st, 0)))
}

// reserveByRights has those who wait look ahead: they are in turn for what comes
// free soon. New visitors get what has come free by now, beyond all who wait.
func (p *places) reserveByRights(v *View, t *tally, slots int) {
	p.reserve(t, max(slots, v.slotsByRights(t, freesSoon)))
	if !v.Event.Prequeueing {
		slots = max(slots, v.slotsByRights(t, newsTakes))
	}
	p.rest = max(0, slots-p.served)
}

// splitByRights divides between sites only what has to be: the bucket that gets
// a part. Whoever has a place reserved is let in by any right there is; so are
// new visitors, where slots are left for them. What a site is said to have for
// those is where rights lie, for people to look at.
func (p *places) splitByRights(t *tally) {
	if p.partial < p.eligible {
		p.splitBucket(t, p.reserved[p.partial], roundingOf(t.bases[0]/ticksPerMinute))
	}
	for i := range t.sites {
		if p.weights[i] = 0; !t.sites[i].frozen {
			p.weights[i] = t.usable(&t.sites[i])
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
