package node

import (
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// leavingFor is how long a visitor who was let in is still counted as waiting:
// the owner hears of it only after admittedHeld, and the owner's row has to come
// back to the counter.
const leavingFor = 750 * time.Millisecond

// leaving are the tickets that a counter gave to visitors who waited, while they
// are still counted as waiting. A site's part of the places of one bucket goes by
// who waits there and whom it let in lately. Whoever counts as both would give the
// site the part of two. The zero value is empty and ready.
type leaving struct {
	given  int64 // in all, as of the last view
	lately []leftAt
}

type leftAt struct {
	at time.Time
	n  int64
}

// note takes how many tickets were given in all by now, and returns how many of
// those visitors are still counted as waiting. waiters says that all that were
// given since the last call were for visitors who waited.
func (l *leaving) note(given int64, waiters bool, now time.Time) (n int64) {
	if d := given - l.given; d > 0 && waiters {
		l.lately = append(l.lately, leftAt{now, d})
	}
	l.given = given
	l.lately = slices.DeleteFunc(l.lately, func(e leftAt) bool {
		return now.Sub(e.at) >= leavingFor || now.Before(e.at)
	})
	for _, e := range l.lately {
		n += e.n
	}
	return n
}

// take takes n visitors off those who wait, oldest first: it was their turn.
func (l *leaving) take(waiting map[int64]int64, n int64) {
	if n <= 0 {
		return
	}
	for _, span := range slices.Sorted(maps.Keys(waiting)) {
		some := min(n, max(0, waiting[span]))
		waiting[span] -= some
		if n -= some; n == 0 {
			return
		}
	}
}

// leave corrects what the own site counts as waiting, where this node is the
// site's counter. It reports whether it has.
func (k *counters) leave(waiting map[int64]int64, now time.Time) bool {
	r := k.room
	given := r.used[reserved].Load() + r.used[contested].Load()
	n := k.loop.leaving.note(given, !r.view.Load().OpenToNew, now)
	if n <= 0 || k.loop.since[ticket.SiteCounter] == 0 {
		return false
	}
	k.loop.leaving.take(waiting, n)
	return true
}

// siteLeaving is leaving where a site has no counter and each of its nodes gives tickets
// by itself: those are counted as they become known.
type siteLeaving struct {
	leaving
	tick    int64 // of the last look
	counted int64 // admitted in that tick, in the one before, and later
	all     int64 // admitted since the first look
}

// admitted returns how many the site has admitted since the first look.
func (l *siteLeaving) admitted(ticks map[int64]int64, now int64) int64 {
	since := func(tick int64) (n int64) {
		for at, some := range ticks {
			if at >= tick {
				n += some
			}
		}
		return n
	}
	if l.tick > 0 {
		l.all += max(0, since(l.tick-1)-l.counted)
	}
	l.tick, l.counted = now, since(now-1)
	return l.all
}

// siteLeaving returns how many of those whom the own site counts as waiting may have been let in
// already, where the room has no counter and there are other sites.
func (r *Room) siteLeaving(own *crdt.Counts, now time.Time) int {
	if p := r.settings.Load().Policy; p != room.Even && p != room.Curve || len(r.sites) < 2 {
		return 0
	}
	if r.inFlight == nil {
		r.inFlight = new(siteLeaving)
	}
	l := r.inFlight
	return int(l.note(l.admitted(own.Admitted, crdt.TickOf(now)), !r.view.Load().OpenToNew, now))
}
