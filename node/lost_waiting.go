package node

import (
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// The row of a node that dies counts its waiting visitors until it fades. They poll on, and
// reach another owner, which must not count them a second time. So it books nothing for whoever
// the row still counts, and books all of them when the row fades. Who is let in or gives up before
// is booked as one less at once, and as one more then:
//
//	              the dead row   the new owner's row   sum
//	dies               40               0               40
//	all polled         40               0               40
//	ten let in         40             −10               30
//	the row fades       0         −10 + 40              30
//
// So no count jumps, the order rests on the same numbers at every node, and versions that do not
// know of this read the same.

// owed is what this node's row shall count in a room when the row of a lost start fades.
type owed struct {
	by       crdt.Incarnation // whose row counts them until then
	granules map[int64]uint64 // visitors, by where they are counted
	newest   time.Time        // when the last of them came
}

const (
	// lostLag is how long before a row's last change a visitor has to have come for the row to
	// count them: the note goes to the owner, and the row is pushed, several times a second.
	lostLag = 500 * time.Millisecond

	// settleBefore is how long before a row fades what it counts is booked: clocks differ, and
	// news has to reach the relays of other sites. For so long it is counted twice.
	settleBefore = time.Second

	lostEvery = time.Second // rows are looked through for starts that are over

	// foundLost is how long after another node this one may find that a start is over. What it
	// owes one that runs it books then.
	foundLost = 5 * time.Second
)

// lookForLost is findLost now and then, and books what is due.
func (c *Core) lookForLost(now time.Time) {
	if now.Sub(c.lost.looked) < lostEvery && !now.Before(c.lost.looked) {
		return
	}
	c.lost.looked = now
	c.findLost()
	c.lost.rooms = slices.DeleteFunc(c.lost.rooms, func(r *Room) bool {
		r.settleOwed(now)
		return len(r.owed) == 0
	})
}

// findLost notes whose rows count though they do not run.
func (c *Core) findLost() { c.lost.starts = c.replica.Lost(c.lost.starts[:0]) }

// lost is what a node knows of the starts of its site that are over. The zero value is ready.
type lost struct {
	looked time.Time
	starts []crdt.Incarnation // whose row is there; in order
	rooms  []*Room            // that owe somebody
	owners []crdt.NodeID      // scratch
}

// countedElsewhere returns the start whose row counts a visitor whom this node has not counted:
// one that is over, or is about to be found so, since others take this node for the owner. Zero:
// there is none.
func (r *Room) countedElsewhere(v *visit, granule int64, now time.Time) crdt.Incarnation {
	c := r.core
	l := &c.lost
	if !v.arrival.Add(lostLag).Before(now) {
		return crdt.Incarnation{} // nearly always
	}
	before := c.ownerBefore(r.id, v.visitor, true)
	for _, start := range l.starts {
		if start.Node == before && r.counts(start, v, granule, now) {
			return start
		}
	}
	if before == c.self.Node { // since it began, maybe; then somebody else was the owner
		before = c.ownerBefore(r.id, v.visitor, false)
		for _, start := range l.starts {
			if start.Node == before && c.replica.LastChange(start).Before(c.openedAt) && r.counts(start, v, granule, now) {
				return start
			}
		}
		return crdt.Incarnation{}
	}
	if p, ok := c.peers.Find(before); ok {
		if start := (crdt.Incarnation{Node: before, Boot: p.Boot}); r.counts(start, v, granule, now) {
			return start
		}
	}
	return crdt.Incarnation{}
}

// ownerBefore returns who owned a visitor while the nodes ran whose starts are over: with this one,
// or before it was there.
func (c *Core) ownerBefore(id crdt.RoomID, v VisitorID, self bool) crdt.NodeID {
	l := &c.lost
	l.owners = l.owners[:0]
	for _, node := range c.nodes {
		if self || node != c.self.Node {
			l.owners = append(l.owners, node)
		}
	}
	for _, start := range l.starts {
		l.owners = append(l.owners, start.Node)
	}
	return room.Owner(c.key, id, v, l.owners)
}

// counts reports whether the row of a start counts a visitor, as far as can be told, and will for
// a while.
func (r *Room) counts(start crdt.Incarnation, v *visit, granule int64, now time.Time) bool {
	rows := r.core.replica
	return v.arrival.Add(lostLag).Before(rows.LastChange(start)) &&
		rows.WaitingIn(start, r.id, granule) > r.owes(start, granule) &&
		now.Before(rows.WaitingUntil(start, r.id).Add(-settleBefore))
}

// owes returns how many of a granule wait for a row to fade.
func (r *Room) owes(start crdt.Incarnation, granule int64) int64 {
	for i := range r.owed {
		if r.owed[i].by == start {
			return int64(r.owed[i].granules[granule])
		}
	}
	return 0
}

// owe has one more visitor be booked when a row fades.
func (r *Room) owe(by crdt.Incarnation, granule int64, now time.Time) {
	at := slices.IndexFunc(r.owed, func(o owed) bool { return o.by == by })
	if at < 0 {
		at = len(r.owed)
		r.owed = append(r.owed, owed{by: by, granules: map[int64]uint64{}})
	}
	r.owed[at].granules[granule]++
	r.owed[at].newest = now
	if !slices.Contains(r.core.lost.rooms, r) {
		r.core.lost.rooms = append(r.core.lost.rooms, r)
	}
}

// polledFirst takes what a poll changes in the line, and leaves out what the row of another start counts.
func (r *Room) polledFirst(changes []room.Change, v *visit, now time.Time) []room.Change {
	n := 0 // who moves to another granule is counted here already
	for i := range changes {
		if changes[i].Kind == crdt.Waiting {
			n++
		}
	}
	if n != 1 {
		return changes
	}
	return slices.DeleteFunc(changes, func(ch room.Change) bool {
		if ch.Kind != crdt.Waiting || ch.P != 1 {
			return false
		}
		by := r.countedElsewhere(v, ch.Tick, now)
		if by != (crdt.Incarnation{}) {
			r.owe(by, ch.Tick, now)
		}
		return by != (crdt.Incarnation{})
	})
}

// admittedFirst appends what is to be booked for a visitor who was let in and of whom the line
// has never heard, if the row of another start counts them as waiting.
func (r *Room) admittedFirst(changes []room.Change, v *visit, now time.Time) []room.Change {
	s := r.settings.Load()
	granule := room.GranuleOf(s.Place(r.core.places, v.visitor, v.arrival), s.BucketSpan)
	by := r.countedElsewhere(v, granule, now)
	if by == (crdt.Incarnation{}) {
		return changes
	}
	r.owe(by, granule, now)
	return append(changes, room.Change{Kind: crdt.Waiting, Tick: granule, N: 1})
}

// expiredOf takes whom the line has forgotten, since they poll no more, or elsewhere. Where the row
// of a lost start counts some of a granule, it is they, and the row goes on until it fades.
func (r *Room) expiredOf(changes []room.Change) []room.Change {
	return slices.DeleteFunc(changes, func(ch room.Change) bool {
		for i := range r.owed {
			if ch.Kind == crdt.Waiting && ch.N == 1 && r.owed[i].granules[ch.Tick] > 0 {
				r.owed[i].granules[ch.Tick]--
				return true
			}
		}
		return false
	})
}

// settleOwed books what lost rows have counted until now. A start that runs after all goes on
// counting; its visitors are then counted at both until they have polled there for a while.
func (r *Room) settleOwed(now time.Time) {
	r.owed = slices.DeleteFunc(r.owed, func(o owed) bool {
		_, lost := slices.BinarySearchFunc(r.core.lost.starts, o.by, crdt.Incarnation.Compare)
		lost = lost || now.Sub(o.newest) < foundLost
		if lost && now.Before(r.core.replica.WaitingUntil(o.by, r.id).Add(-settleBefore)) {
			return false
		}
		for _, granule := range slices.Sorted(maps.Keys(o.granules)) {
			r.book(crdt.Waiting, granule, o.granules[granule], 0, now)
		}
		return true
	})
}
