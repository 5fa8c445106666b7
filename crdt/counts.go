package crdt

import "time"

// Count returns what one incarnation counts of a room at now.
func (r *Rows) Count(owner Incarnation, room RoomID, now time.Time, ret Retention) Counts {
	var c Counts
	if w, ok := r.rows[owner]; ok {
		w.addTo(&c, room, now, ret, r.handedOn(owner, room))
	}
	return c
}

// CountSite returns what all incarnations of a site count of a room at now.
// Since one visitor's +1 and −1 may stand in rows of different nodes, a span
// can briefly be below zero; sums say what the rows say.
func (r *Rows) CountSite(site string, room RoomID, now time.Time, ret Retention) Counts {
	var c Counts
	r.AddSite(&c, site, room, now, ret)
	return c
}

// AddSite adds what CountSite returns to c.
func (r *Rows) AddSite(c *Counts, site string, room RoomID, now time.Time, ret Retention) {
	for owner, w := range r.rows {
		if w.site == site && w.rooms[room] != nil {
			w.addTo(c, room, now, ret, r.handedOn(owner, room))
		}
	}
}

// AddTicks adds the counts of one kind in the ticks from … to of one incarnation,
// both included, to m.
func (r *Rows) AddTicks(m *map[int64]int64, owner Incarnation, room RoomID, kind Kind, from, to int64) {
	w, ok := r.rows[owner]
	if !ok || w.rooms[room] == nil {
		return
	}
	for tick := from; tick <= to; tick++ {
		addSpan(m, tick, w.rooms[room].cells[slot{kind, tick}].Value())
	}
}

// superseded reports whether a later start of the same node is known.
func (r *Rows) superseded(owner Incarnation) bool {
	for other := range r.rows {
		if other.Node == owner.Node && other.Boot > owner.Boot {
			return true
		}
	}
	return false
}

// tookOver reports whether a later start of the same node counts the leases of
// a room: it keeps aside what the earlier ones may have had in use, so theirs
// must not be counted a second time. Until it does, as while it is still being
// filled, theirs are all that stands for the visitors who are inside.
func (r *Rows) tookOver(owner Incarnation, room RoomID) bool {
	for other, w := range r.rows {
		if other.Node == owner.Node && other.Boot > owner.Boot && w.countsActive(room) {
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

func (r *Rows) handedOn(owner Incarnation, room RoomID) handed {
	if !r.superseded(owner) {
		return handed{}
	}
	return handed{r.tookOver(owner, room), true}
}

// countsActive reports whether leases of a room were ever counted in the row.
func (w *row) countsActive(room RoomID) bool {
	rc, ok := w.rooms[room]
	if ok {
		_, ok = rc.cells[slot{Active, 0}]
	}
	return ok
}

func (w *row) addTo(c *Counts, room RoomID, now time.Time, ret Retention, on handed) {
	rc, ok := w.rooms[room]
	if !ok {
		return
	}
	activeFaded := on.active || ret.faded(room, Active, w.changed, now)
	heldFaded := on.held || ret.faded(room, Held, w.changed, now)
	waitingFaded := ret.faded(room, Waiting, w.changed, now)
	first := ret.first(now)
	for _, s := range rc.living() {
		if first.past(s.slot) {
			continue
		}
		switch s.kind {
		case Active:
			if !activeFaded {
				c.Active += s.value
			}
		case Waiting:
			if !waitingFaded {
				addSpan(&c.Waiting, s.tick, s.value)
			}
		case Seen:
			addSpan(&c.Seen, s.tick, s.value)
		case Admitted:
			addSpan(&c.Admitted, s.tick, s.value)
		case Held:
			if !heldFaded {
				c.Held += s.value
			}
		case HeldRate:
			if !heldFaded {
				c.HeldRate += s.value
			}
		}
	}
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
			prev, active = owner.Boot, w.rooms[room].cells[slot{Active, 0}].Value()
		}
	}
	return active
}
