package room

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// A base is a tick as of which a room is divided between sites. What a site may have is
// its share of what is left and of what all have used in the minute before the base and
// since, less what it has used of that itself:
//
//	part of i = share of i × (rest + Σ used) − used of i
//
// Late news of an admission makes rest larger and used smaller by the same, and so
// moves nobody else's part. But all have to go by the same base: one who takes a later
// one forgets some of what was used, and divides the rest once more. So
//
//   - while a site is not heard from, the base stands still: what comes after that is not
//     common knowledge, and each side has its part of what was left, however often it
//     looks, until the share of the silent site is frozen;
//   - a part is the smallest of those by any base that others may go by. Whether they have
//     heard of the newest closed tick is not known, so that are two in general; of two nodes
//     who disagree by one tick, both reckon with the one that they share.

// maxBases is how many bases a node may have to reckon with at a time: two by the clock,
// two by what has been closed, and the one that holds after a silence.
const maxBases = 5

// setBases sets the bases of now. closed is the newest tick that all other sites have closed
// who take part:
//
//	────┬── closed ──┬─ closed+1 ─┬─ closed+2 ─┬────── tick of now
//	                 later bases are not used
//
// A site in touch has closed the tick before this one, or the one before that.
func (t *tally) setBases(s *Settings, in *Input, now time.Time) {
	early, late := crdt.TickOf(now.Add(-edgeAfter)), crdt.TickOf(now.Add(edgeBefore))
	closed, any := in.Frozen.closed(s, t.input, now)
	if s.Policy == Escrow || !any {
		t.addBases(early, late)
		return
	}
	for _, most := range [...]int64{closed + 1, closed + 2} {
		t.addBases(min(early, most), min(late, most))
	}
	if held := in.Frozen.base; held > 0 {
		t.addBases(min(held, t.bases[0]))
	}
	if s.QueueingMethod != Random {
		t.youngFrom = t.bases[0] * int64(crdt.TickSpan/time.Second)
	}
}

func (t *tally) addBases(ticks ...int64) {
	for _, tick := range ticks {
		if at, known := slices.BinarySearch(t.bases, tick); !known {
			t.bases = slices.Insert(t.bases, at, tick)
		}
	}
}

// closed returns the newest tick that all others have closed who take part. It reports
// whether there is one: who is alone, or knows only sites that have never closed any, has
// nobody to agree with.
func (f Frozen) closed(s *Settings, sites []Site, now time.Time) (newest int64, any bool) {
	for i := range sites {
		site := &sites[i]
		if site.Own || site.Closed == 0 || f.Has(site.Name) || site.standing(s, now) == left {
			continue
		}
		if !any || site.Closed < newest {
			newest, any = site.Closed, true
		}
	}
	return newest, any
}

// isYoung reports whether those of a granule came since the oldest base. Others hear of who
// waits within what it takes to close a tick; who came before has a claim that all reckon with.
func (t *tally) isYoung(start, width int64) bool {
	return t.youngFrom > 0 && granuleEnd(start, width) > t.youngFrom
}

// markYoung marks those of a part of a bucket who have just come: own ones by granule. Of other
// sites only whole buckets are known, so it has to be one that is young there by any base that
// they may have.
func (t *tally) markYoung(part *inPart, start, width int64) {
	site := &t.sites[part.site]
	switch {
	case t.youngFrom == 0:
	case site.own && t.isYoung(start, width):
		t.young += part.waiting
		part.young = part.waiting
	case !site.own && part.bucket >= (t.bases[0]+1)*int64(crdt.TickSpan/time.Second):
		part.young = part.waiting
	}
	t.unsure = t.unsure || part.young > 0
}

// usedSince returns how many were admitted in ticks from … to.
func usedSince(ticks map[int64]int64, from, to int64) (n int) {
	for at, v := range ticks {
		if at >= from && at <= to {
			n += clampCount(v)
		}
	}
	return n
}

// withoutYoung takes those who have just come, anywhere, out of what is counted as waiting.
func (t *tally) withoutYoung() *tally {
	t.bare = true
	for i := range t.buckets {
		t.buckets[i].waiting -= t.buckets[i].young
	}
	return t
}

// withYoung puts them back.
func (t *tally) withYoung() {
	t.bare = false
	for i := range t.buckets {
		t.buckets[i].waiting += t.buckets[i].young
	}
}
