package room

import (
	"math"
	"sort"
	"time"
)

// Estimate is what a waiting visitor is told.
type Estimate struct {
	Known    bool // whether the minutes mean anything
	Minutes  int  // rounded up; under Random half of all wait no longer
	P25, P75 int  // under Random, a quarter and three quarters wait no longer; else 0
	Position int  // 1 is next; 0 is unknown, or there is no order
	Ahead    int  // people before this visitor, if Position is known
}

// Shown is what a visitor was told last. It travels in the pass. The zero value:
// nothing yet.
type Shown struct {
	Terms             uint32 // of the View that told it
	Minutes, P25, P75 uint16
}

// mostMinutes bounds what is told: Shown has 16 bits for it, and beyond a month
// and a half the number means nothing.
const mostMinutes = math.MaxUint16

// Estimate returns what to tell a waiting visitor whose place is place, who was
// told before last, and what to remember as told now. The minutes are never more
// than before, unless the operator changed the terms in between or an event did.
//
// Under FIFO the minutes count everyone in strictly older buckets against the
// average admission rate, at least one. Position and people ahead are finer: by
// granule in the own site; elsewhere, and inside the own granule, as if arrivals
// were spread evenly. Under Random there is no order, so chance decides: see
// randomWait. The minutes are unknown while nobody was admitted lately, while
// nobody is let in, and before the start of an event that the visitor waits for.
// If that event shuffles, the position is unknown as well: whoever knew it could
// draw again until they like it. So it is where nobody goes by order from the start
// on, whatever the method is until then. Nothing is known of a place from Until on.
func (v *View) Estimate(place time.Time, before Shown) (Estimate, Shown) {
	e := Estimate{}
	held, beyond := v.holds(place), !v.Until.IsZero() && !place.Before(v.Until)
	if v.ordered(held) && !beyond {
		e.Ahead = v.ahead(place)
		e.Position = e.Ahead + 1
	}
	if before.Terms != v.Terms {
		before = Shown{Terms: v.Terms}
	}
	if v.AdmittedMinute <= 0 || v.closed || held || beyond {
		return e, before
	}
	e.Known = true
	if v.Settings.QueueingMethod == Random {
		e.P25 = v.randomMinutes(0.25)
		e.Minutes = v.randomMinutes(0.5)
		e.P75 = v.randomMinutes(0.75)
	} else {
		e.Minutes = wholeMinutes(float64(v.older(place)) / v.AdmittedMinute)
	}
	before.lower(&e)
	return e, before
}

// WaitOfNew returns how long somebody who comes at now is expected to wait, in whole
// minutes, and whether that is known. Where nobody has to wait it is none.
func (v *View) WaitOfNew(now time.Time) (wait time.Duration, known bool) {
	if v.OpenToNew && !v.Full() && !v.closed && !v.Event.Prequeueing {
		return 0, true
	}
	e, _ := v.Estimate(now, Shown{})
	return time.Duration(e.Minutes) * time.Minute, e.Known
}

// Full reports whether there is no place by the counts, and that matters. Where rights are
// the limit, OpenToNew says that they decide, not that some are left.
func (v *View) Full() bool { return v.Slots <= 0 && v.AllowNew < Unlimited }

// ordered reports whether visitors are let in by their places, as they know them: all
// of those who wait for the start of an event if held, else those who do not.
func (v *View) ordered(held bool) bool {
	if held {
		return v.Event.Method == FIFO && !v.Event.Shuffle
	}
	return v.Settings.QueueingMethod != Random
}

// lower takes an estimate down to what was told before, and remembers it.
func (s *Shown) lower(e *Estimate) {
	for _, f := range [...]struct {
		now  *int
		told *uint16
	}{{&e.Minutes, &s.Minutes}, {&e.P25, &s.P25}, {&e.P75, &s.P75}} {
		if *f.told > 0 {
			*f.now = min(*f.now, int(*f.told))
		}
		*f.told = uint16(*f.now)
	}
}

// randomMinutes returns in how many minutes a part p of those who draw is in. Who
// waits for the start of an event does not draw yet, and who waits at a silent site
// draws there.
func (v *View) randomMinutes(p float64) int {
	return wholeMinutes(randomWait(v.AdmittedMinute, float64(v.ofLine().served), p))
}

// randomWait returns after how many minutes somebody is in with probability p, if
// letIn of waiting are let in each minute, whoever they are. Where all are let in
// within the minute, it is none.
func randomWait(letIn, waiting, p float64) float64 {
	if letIn >= waiting {
		return 0
	}
	return math.Log(1-p) / math.Log1p(-letIn/waiting)
}

func wholeMinutes(m float64) int { return max(1, int(math.Ceil(min(m, mostMinutes)))) }

// holds reports whether a place belongs to somebody who waits for the start of an
// event.
func (v *View) holds(place time.Time) bool {
	return v.Event.Prequeueing && !place.Before(v.hold)
}

// older counts those who wait in buckets before the one of place.
func (v *View) older(place time.Time) int {
	n := 0
	for _, b := range v.Buckets[:v.bucketFrom(BucketOf(place, v.Settings.BucketSpan))] {
		n += b.Waiting
	}
	return n
}

// bucketFrom returns the index of the first bucket that starts at or after start.
func (v *View) bucketFrom(start int64) int {
	return sort.Search(len(v.Buckets), func(i int) bool { return v.Buckets[i].Start >= start })
}

// ahead counts those who wait before place.
func (v *View) ahead(place time.Time) int {
	width := seconds(v.Settings.BucketSpan)
	start := BucketOf(place, v.Settings.BucketSpan)
	ahead := v.older(place)
	if mine := v.bucketFrom(start); mine < len(v.Buckets) && v.Buckets[mine].Start == start {
		b := v.Buckets[mine]
		ahead += spread(b.Waiting-b.own, place, v.begins(mine, width), start+width)
		ahead += v.aheadInSite(place, start, width)
	}
	return ahead
}

// begins returns from when on visitors of other sites are taken to have come who
// wait in a bucket. Those at the head of the line were let in already from the first
// part of it, by which the own site's line has shrunk as well: of n who came evenly
// the first came an n-th of the time behind it.
func (v *View) begins(mine int, width int64) int64 {
	b := v.Buckets[mine]
	if b.own <= 0 || v.older(time.Unix(b.Start, 0)) > 0 {
		return b.Start
	}
	own := v.ofLine().ownGranules
	i := sort.Search(len(own), func(i int) bool { return own[i].start >= b.Start })
	if i == len(own) {
		return b.Start
	}
	first := own[i].start
	return max(b.Start, first-(b.Start+width-first)/int64(b.own))
}

// aheadInSite counts the own site's visitors in the bucket from start who have a
// place before this one.
func (v *View) aheadInSite(place time.Time, start, width int64) int {
	at := GranuleOf(place, v.Settings.BucketSpan)
	own := v.ofLine().ownGranules
	first := sort.Search(len(own), func(i int) bool { return own[i].start >= start })
	ahead := 0
	for _, g := range own[first:] {
		if g.start > at {
			break
		}
		if g.start == at {
			// The visitor is one of them.
			ahead += spread(g.n-1, place, at, granuleEnd(at, width))
			break
		}
		ahead += g.n
	}
	return ahead
}

// spread returns how many of n visitors who arrived evenly from start to end
// came before at.
func spread(n int, at time.Time, start, end int64) int {
	if n <= 0 || end <= start {
		return 0
	}
	fraction := at.Sub(time.Unix(start, 0)).Seconds() / float64(end-start)
	return int(float64(n) * min(max(fraction, 0), 1))
}
