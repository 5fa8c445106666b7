package crdt

import "time"

// Count returns what one incarnation counts of a room at now.
func (r *Rows) Count(owner Incarnation, room RoomID, now time.Time, ret Retention) Counts {
	var c Counts
	if i, ok := r.find(owner); ok {
		w := r.order[i]
		w.addTo(&c, room, now, ret, w.over(room, now, ret), r.handedOn(i, room))
	}
	return c
}

// AddRights adds to c what Count returns of what has to do with rights: Active,
// Held, HeldRate, and Admitted from a tick on.
func (r *Rows) AddRights(c *Counts, owner Incarnation, room RoomID, from int64, now time.Time, ret Retention) {
	i, ok := r.find(owner)
	if !ok {
		return
	}
	w := r.order[i]
	on, over := r.handedOn(i, room), w.over(room, now, ret)
	from = max(from, ret.first(now).history)
	rc := w.rooms[room]
	if rc == nil {
		return
	}
	for s, value := range rc.living() {
		switch s.kind {
		case Active:
			if !on.active && !over.has(Active) {
				c.Active += value
			}
		case Held, HeldRate:
			if !on.held && !over.has(s.kind) {
				c.addHeld(s.kind, value)
			}
		case Admitted:
			if s.tick >= from {
				addSpan(&c.Admitted, s.tick, value)
			}
		}
	}
}

func (c *Counts) addHeld(kind Kind, n int64) {
	if kind == Held {
		c.Held += n
	} else {
		c.HeldRate += n
	}
}

// CountSite returns what all incarnations of a site count of a room at now.
// Since one visitor's +1 and −1 may stand in rows of different nodes, a span
// can briefly be below zero; sums say what the rows say.
func (r *Rows) CountSite(site string, room RoomID, now time.Time, ret Retention) Counts {
	var c Counts
	r.AddSite(&c, site, room, now, ret)
	return c
}

// Changes returns a number that grows with every change of a room in the row of an
// incarnation, also when something of it is forgotten.
func (r *Rows) Changes(owner Incarnation, room RoomID) (n uint64) {
	if w, ok := r.rows[owner]; ok {
		n = w.forgotten
		if rc := w.rooms[room]; rc != nil {
			n += rc.changes
		}
	}
	return n
}

// AddTicks adds the counts of one kind in the ticks from … to of one incarnation,
// both included, to m.
func (r *Rows) AddTicks(m *map[int64]int64, owner Incarnation, room RoomID, kind Kind, from, to int64) {
	w, ok := r.rows[owner]
	if !ok || w.rooms[room] == nil {
		return
	}
	for tick := from; tick <= to; tick++ {
		addSpan(m, tick, w.rooms[room].cells.of(slot{kind, tick}).Value())
	}
}

// Value returns what a row counts in one cell, faded or not.
func (r *Rows) Value(owner Incarnation, key Key) int64 {
	w, ok := r.rows[owner]
	if !ok || w.rooms[key.Room] == nil {
		return 0
	}
	return w.rooms[key.Room].cells.of(slot{key.Kind, key.Tick}).Value()
}

// superseded reports whether a later start of the node is known whose row is the
// i-th in order.
func (r *Rows) superseded(i int) bool {
	return i+1 < len(r.order) && r.order[i+1].owner.Node == r.order[i].owner.Node
}

// supersedes reports whether the i-th row in order is of a later start of a node than
// the one before.
func (r *Rows) supersedes(i int) bool { return i > 0 && r.superseded(i-1) }

// tookOver reports whether a start of the node later than the i-th row in order
// counts the leases of a room: it keeps aside what the earlier ones may have had in use, so theirs
// must not be counted a second time. Until it does, as while it is still being
// filled, theirs are all that stands for the visitors who are inside.
func (r *Rows) tookOver(i int, room RoomID) bool {
	for ; r.superseded(i); i++ {
		if r.order[i+1].countsActive(room) {
			return true
		}
	}
	return false
}

// handed says what of a row a later start of the same node counts instead.
type handed struct {
	active bool
	held   bool // rights are the node's, not the start's: the latest row has them
}

func (r *Rows) handedOn(i int, room RoomID) handed {
	if !r.superseded(i) {
		return handed{}
	}
	return handed{r.tookOver(i, room), true}
}

// countsActive reports whether leases of a room were ever counted in the row.
func (w *row) countsActive(room RoomID) bool {
	rc, ok := w.rooms[room]
	if ok {
		_, ok = rc.cells.get(slot{Active, 0})
	}
	return ok
}

// addTo adds the cells of a room to c and returns the oldest that it has counted.
func (w *row) addTo(c *Counts, room RoomID, now time.Time, ret Retention, over fadedKinds, on handed) (oldest firsts) {
	oldest = none
	rc, ok := w.rooms[room]
	if !ok {
		return oldest
	}
	first := ret.first(now)
	for s, value := range rc.living() {
		if first.past(s) {
			continue
		}
		oldest.note(s)
		switch s.kind {
		case Active:
			if !on.active && !over.has(Active) {
				c.Active += value
				if over.has(Held) {
					c.Orphans += value
				}
			}
		case Waiting:
			if !over.has(Waiting) {
				addSpan(&c.Waiting, s.tick, value)
			}
		case Seen:
			addSpan(&c.Seen, s.tick, value)
		case Admitted:
			addSpan(&c.Admitted, s.tick, value)
		case Held, HeldRate:
			if !on.held && !over.has(s.kind) {
				c.addHeld(s.kind, value)
			}
		}
	}
	return oldest
}

// addSpan adds v to m[tick] and leaves no zeros behind.
func addSpan(m *map[int64]int64, tick, v int64) {
	if v == 0 {
		return
	}
	if *m == nil {
		*m = make(map[int64]int64)
	}
	if (*m)[tick] += v; (*m)[tick] == 0 {
		delete(*m, tick)
	}
}

// LastActive returns the active leases of a room in the newest incarnation of
// node before boot that counted any, faded or not; 0 if none did. A node that
// starts again reads here how much it may still have in use. A start that ended
// before it took over from the one before does not hide that one.
func (r *Rows) LastActive(node NodeID, boot uint64, room RoomID) int64 {
	var prev uint64
	var active int64
	for owner, w := range r.rows {
		if owner.Node == node && owner.Boot < boot && owner.Boot >= prev && w.countsActive(room) {
			prev, active = owner.Boot, w.rooms[room].cells.of(slot{Active, 0}).Value()
		}
	}
	return active
}
