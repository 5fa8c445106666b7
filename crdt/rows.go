package crdt

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/packed"
)

// Rows holds one row of counters for each incarnation. Only the owner of a row
// writes it; everybody else learns it by merging.
//
// A row has two sides. Its lattice is what merges: per cell the larger P and
// the larger N, of the header the larger value, so that order, doubling and
// loss of messages do not matter. Its knowledge is what this replica may
// promise to others: the sequence number up to which it has every change, in
// one piece. A message that arrives with a hole before it adds to the first and
// not to the second, and a digest speaks only of the second. That a tick is
// closed is knowledge too: it says that nothing of the tick is missing.
//
// The zero value is empty and ready.
type Rows struct {
	rows  map[Incarnation]*row
	order []*row // the same by owner, so that the starts of a node follow each other
	shape uint64 // how often rows have come, gone or moved to another site
}

// Header is what a row says about itself.
type Header struct {
	Site    string
	Seq     uint64    // number of the newest change heard of; 0 in a SiteHeader
	Changed time.Time // of the newest change heard of, in milliseconds
	Closed  int64     // newest tick whose counts are final and all here; 0: none
}

type row struct {
	owner   Incarnation
	site    string
	mine    bool   // written here: never dropped, never taken from others
	dead    bool   // its owner does not run, as far as this replica knows; no part of what merges
	seq     uint64 // newest change heard of
	changed int64  // Unix milliseconds
	rooms   map[RoomID]*roomCells

	forgotten uint64 // changes of rooms that are not in rooms any more

	known  uint64 // every change up to here is held; known <= seq
	closed int64  // newest tick that was closed at or before known
}

// roomCells are the cells of one room in one row. last spares deltas the look
// at rooms in which nothing happened.
type roomCells struct {
	last    uint64 // newest change of any cell; may outlive the cell
	changes uint64 // of any cell, in the order in which they came here
	cells   slots[entry]
	oldest  firsts // no cell is older
	live    *live  // those of them that are not zero; nil: nobody has asked, or they are few
}

type slot struct {
	kind Kind
	tick int64
}

type entry struct {
	Cell
	seq uint64 // of the last change
}

// Open makes the row of owner, to be written here, and gives it a first change,
// so that others learn of it. The row that was open before, of an earlier start
// read back from disk, is written no more.
func (r *Rows) Open(owner Incarnation, site string, now time.Time) {
	for _, other := range r.rows {
		other.mine = false
	}
	w := r.row(owner, site)
	w.mine = true
	w.bump(now)
}

// Add raises one cell of a row that was opened here. Adding nothing changes
// nothing. It panics for a row that was not opened: two writers of one row
// would lose counts silently.
func (r *Rows) Add(owner Incarnation, key Key, p, n uint64, now time.Time) {
	if p == 0 && n == 0 {
		return
	}
	w := r.written(owner)
	seq := w.bump(now)
	w.put(key, entry{Cell{p, n}, seq}, func(old, add entry) entry {
		return entry{Cell{old.P + add.P, old.N + add.N}, add.seq}
	})
}

// Close declares that the counts of tick and of all before it are final. It
// also is a row's sign of life, and therefore due at least once per tick.
func (r *Rows) Close(owner Incarnation, tick int64, now time.Time) {
	w := r.written(owner)
	if tick > w.closed {
		w.bump(now)
		w.closed = tick
	}
}

// SetDead notes whether the owner of a row is known not to run. Its leases and rights then fade
// when its sessions are over, if that is sooner than a row fades that may change again.
func (r *Rows) SetDead(owner Incarnation, dead bool) {
	if w, ok := r.rows[owner]; ok {
		w.dead = dead
	}
}

// over returns which counts that a row has of a room have outlived their owner.
func (w *row) over(room RoomID, now time.Time, ret Retention) fadedKinds {
	if !w.dead && now.Sub(time.UnixMilli(w.changed)) <= minFade {
		return 0 // nearly always, and of whichever room
	}
	k := ret.keeps(room)
	if w.dead {
		k = k.ofDead()
	}
	return k.over(w.changed, now)
}

// Header returns the header of a row and whether there is one.
func (r *Rows) Header(owner Incarnation) (Header, bool) {
	w, ok := r.rows[owner]
	if !ok {
		return Header{}, false
	}
	return Header{w.site, w.seq, time.UnixMilli(w.changed), w.closed}, true
}

// Known returns up to which change every change of a row is held.
func (r *Rows) Known(owner Incarnation) uint64 {
	if w, ok := r.rows[owner]; ok {
		return w.known
	}
	return 0
}

// SiteHeader sums up the headers of a site's rows: the newest change, and the
// newest tick that every node has closed which has shown a sign of life lately
// and has not started again since. ok is false if the site has no rows.
func (r *Rows) SiteHeader(site string, now time.Time) (h Header, ok bool) {
	h.Site = site
	first := true
	for i, w := range r.order {
		if w.site != site {
			continue
		}
		ok = true
		if at := time.UnixMilli(w.changed); at.After(h.Changed) {
			h.Changed = at
		}
		if r.superseded(i) || now.After(time.UnixMilli(w.changed).Add(minFade)) {
			continue
		}
		if first || w.closed < h.Closed {
			h.Closed, first = w.closed, false
		}
	}
	return h, ok
}

// Owners yields the owners of all rows, in no order.
func (r *Rows) Owners() iter.Seq[Incarnation] { return maps.Keys(r.rows) }

// Rooms yields the rooms that the rows of a site count, in no order, each for every row that does.
func (r *Rows) Rooms(site string) iter.Seq[RoomID] {
	return func(yield func(RoomID) bool) {
		for _, w := range r.order {
			if w.site != site {
				continue
			}
			for room := range w.rooms {
				if !yield(room) {
					return
				}
			}
		}
	}
}

// Clone returns a copy that shares nothing with r.
func (r *Rows) Clone() *Rows {
	c := &Rows{rows: make(map[Incarnation]*row, len(r.rows))}
	for _, w := range r.order {
		d := *w
		d.rooms = make(map[RoomID]*roomCells, len(w.rooms))
		for room, rc := range w.rooms {
			d.rooms[room] = &roomCells{rc.last, rc.changes, rc.cells.clone(), rc.oldest, rc.live.clone()}
		}
		c.insert(&d)
	}
	return c
}

// Merge adds what o holds: lattice and knowledge. It copies what it takes and
// leaves o alone.
func (r *Rows) Merge(o *Rows) {
	for owner, from := range o.rows {
		w := r.row(owner, from.site)
		w.header(from.seq, from.changed)
		for room, rc := range from.rooms {
			for s, e := range rc.cells.all() {
				w.put(Key{room, s.kind, s.tick}, e, larger)
			}
		}
		// Both hold every change up to their own mark, so together they hold
		// every change up to the higher one.
		w.known = max(w.known, from.known)
		w.closed = max(w.closed, from.closed)
	}
}

// Expire forgets cells that are over by their key, and whole rows in which
// nothing lives. A single cell that has only faded stays: its owner may come
// back, and would not send it again. A row also stays while one of an earlier
// start of its node does, which it keeps from being counted.
//
// Forgetting is safe without any record of what was forgotten: a late message
// brings back an old header as well, and by that header the row is as dead as
// it was.
func (r *Rows) Expire(now time.Time, ret Retention) {
	oldest := make(map[NodeID]uint64) // boot of the oldest row that lives
	for owner, w := range r.rows {
		w.forget(now, ret)
		if boot, ok := oldest[owner.Node]; w.lives(now, ret) && (!ok || owner.Boot < boot) {
			oldest[owner.Node] = owner.Boot
		}
	}
	r.order = slices.DeleteFunc(r.order, func(w *row) bool {
		boot, ok := oldest[w.owner.Node]
		over := !w.mine && !w.lives(now, ret) && (!ok || w.owner.Boot < boot)
		if over {
			delete(r.rows, w.owner)
			r.shape++
		}
		return over
	})
}

func (w *row) forget(now time.Time, ret Retention) {
	first := ret.first(now)
	for room, rc := range w.rooms {
		if rc.oldest.history < first.history || rc.oldest.arrivals < first.arrivals {
			rc.forget(first)
		}
		if rc.cells.len() == 0 {
			w.forgotten += rc.changes + 1
			packed.Delete(&w.rooms, room)
		}
	}
}

// AllRooms yields the rooms that rows count, some more than once, in no order.
func (r *Rows) AllRooms() iter.Seq[RoomID] {
	return func(yield func(RoomID) bool) {
		for _, w := range r.order {
			for room := range w.rooms {
				if !yield(room) {
					return
				}
			}
		}
	}
}

// Drop forgets all that rows count of a room that is gone for good. What others still tell of it is taken in
// again: they are to drop it as well.
func (r *Rows) Drop(room RoomID) {
	for _, w := range r.order {
		if rc := w.rooms[room]; rc != nil {
			w.forgotten += rc.changes + 1
			packed.Delete(&w.rooms, room)
		}
	}
}

// forget forgets the cells that are older than first.
func (rc *roomCells) forget(first firsts) {
	rc.oldest = none
	rc.changes++
	rc.cells.deleteFunc(func(s slot, _ entry) bool {
		if first.past(s) {
			rc.live.set(s, 0)
			return true
		}
		rc.oldest.note(s)
		return false
	})
}

// lives reports whether a cell may still count, be it zero by now: forgetting a
// zero would let a late message bring back what it was before.
func (w *row) lives(now time.Time, ret Retention) bool {
	if !now.After(time.UnixMilli(w.changed).Add(minFade)) {
		return true
	}
	for room, rc := range w.rooms {
		for s := range rc.cells.all() {
			if ret.counts(Key{room, s.kind, s.tick}, w.changed, now) {
				return true
			}
		}
	}
	return false
}

func (r *Rows) row(owner Incarnation, site string) *row {
	w, ok := r.rows[owner]
	if !ok {
		w = &row{owner: owner, rooms: make(map[RoomID]*roomCells)}
		r.insert(w)
	}
	if site > w.site {
		w.site = site // an owner has one site; the larger keeps merging lawful
		r.shape++
	}
	return w
}

func (r *Rows) insert(w *row) {
	if r.rows == nil {
		r.rows = make(map[Incarnation]*row)
	}
	r.rows[w.owner] = w
	r.shape++
	if i, known := r.find(w.owner); known {
		r.order[i] = w
	} else {
		r.order = slices.Insert(r.order, i, w)
	}
}

// find returns where the row of owner is in order, or would be.
func (r *Rows) find(owner Incarnation) (i int, ok bool) {
	return slices.BinarySearchFunc(r.order, owner, func(w *row, owner Incarnation) int { return w.owner.Compare(owner) })
}

func (r *Rows) written(owner Incarnation) *row {
	w, ok := r.rows[owner]
	if !ok || !w.mine {
		panic("crdt: write to row " + owner.String() + ", which was not opened here")
	}
	return w
}

// bump numbers a change of an own row. Time never goes back, whatever the clock
// does: a row would fade early.
func (w *row) bump(now time.Time) uint64 {
	w.seq++
	w.known = w.seq
	w.changed = max(w.changed, now.UnixMilli())
	return w.seq
}

func (w *row) put(key Key, e entry, merge func(old, add entry) entry) {
	rc, ok := w.rooms[key.Room]
	if !ok {
		rc = &roomCells{oldest: none}
		w.rooms[key.Room] = rc
	}
	s := slot{key.Kind, key.Tick}
	e = merge(rc.cells.of(s), e)
	rc.cells.set(s, e)
	rc.live.set(s, e.Value())
	rc.oldest.note(s)
	rc.changes++
	rc.last = max(rc.last, e.seq)
}

func (w *row) header(seq uint64, changed int64) {
	w.seq = max(w.seq, seq)
	w.changed = max(w.changed, changed)
}

func larger(a, b entry) entry {
	return entry{Cell{max(a.P, b.P), max(a.N, b.N)}, max(a.seq, b.seq)}
}
