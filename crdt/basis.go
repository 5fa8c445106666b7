package crdt

import (
	"math"
	"time"
)

// Basis is what a sum over the rows of a site rests on. As long as Same says so the
// sum need not be made again. The zero value is that of no sum.
type Basis struct {
	from, until int64 // Unix ns, while time alone forgets nothing; a zero until: for ever
	grounds
}

// grounds tell cells apart: with the same ones, the same cells of the same rows are
// there, and none has faded or come back to life.
type grounds struct {
	rows  uint64 // which there are
	cells uint64 // how often those of the room have changed
	faded uint64 // hash of what has faded of each row
}

// AddSite adds what CountSite returns to c, and returns what that rests on.
func (r *Rows) AddSite(c *Counts, site string, room RoomID, now time.Time, ret Retention) Basis {
	oldest := none
	for i, w := range r.order {
		if w.site == site && w.rooms[room] != nil {
			oldest = oldest.least(w.addTo(c, room, now, ret, w.over(room, now, ret), r.handedOn(i, room)))
		}
	}
	b := Basis{from: Nanos(now), grounds: r.grounds(site, room, now, ret)}
	if until := ret.until(oldest); !until.IsZero() {
		b.until = Nanos(until)
	}
	return b
}

// Same reports whether AddSite would add the same at now as when it returned b, for the
// same site and room. It looks at headers alone.
func (r *Rows) Same(b Basis, site string, room RoomID, now time.Time, ret Retention) bool {
	at := Nanos(now)
	return b.from != 0 && at >= b.from && (b.until == 0 || at <= b.until) &&
		b.grounds == r.grounds(site, room, now, ret)
}

// Nanos returns a time in Unix ns. What is farther away than these reach, as what a peer says may
// be, is as far as they do; so is the zero time, which is the least of them.
func Nanos(t time.Time) int64 {
	const most = math.MaxInt64 / int64(time.Second)
	switch s := t.Unix(); {
	case s >= most:
		return math.MaxInt64
	case s <= -most:
		return math.MinInt64
	}
	return t.UnixNano()
}

func (r *Rows) grounds(site string, room RoomID, now time.Time, ret Retention) grounds {
	g := grounds{rows: r.shape}
	for i, w := range r.order {
		if w.site != site && !r.supersedes(i) { // which tells whether an earlier start counts
			continue
		}
		g.cells += w.forgotten
		if rc := w.rooms[room]; rc != nil {
			g.cells += rc.changes
			g.faded = (g.faded ^ uint64(w.over(room, now, ret))) * 0x100000001b3
		}
	}
	return g
}
