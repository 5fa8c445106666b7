package crdt

import "time"

// Count returns what one incarnation counts of a room at now.
func (r *Rows) Count(owner Incarnation, room RoomID, now time.Time, ret Retention) Counts {
	var c Counts
	if w, ok := r.rows[owner]; ok {
		w.addTo(&c, room, now, ret, r.superseded(owner))
	}
	return c
}

// CountSite returns what all incarnations of a site count of a room at now.
// Since one visitor's +1 and −1 may stand in rows of different nodes, a span
// can briefly be below zero; sums say what the rows say.
func (r *Rows) CountSite(site string, room RoomID, now time.Time, ret Retention) Counts {
	var c Counts
	for owner, w := range r.rows {
		if w.site == site {
			w.addTo(&c, room, now, ret, r.superseded(owner))
		}
	}
	return c
}

// superseded reports whether a later start of the same node is known. That
// start keeps aside what the earlier one may have had in use, so the earlier
// leases must not be counted a second time.
func (r *Rows) superseded(owner Incarnation) bool {
	for other := range r.rows {
		if other.Node == owner.Node && other.Boot > owner.Boot {
			return true
		}
	}
	return false
}

func (w *row) addTo(c *Counts, room RoomID, now time.Time, ret Retention, superseded bool) {
	rc, ok := w.rooms[room]
	if !ok {
		return
	}
	activeFaded := superseded || ret.faded(room, Active, w.changed, now)
	waitingFaded := ret.faded(room, Waiting, w.changed, now)
	for s, e := range rc.cells {
		if ret.past(s.kind, s.tick, now) {
			continue
		}
		switch s.kind {
		case Active:
			if !activeFaded {
				c.Active += e.Value()
			}
		case Waiting:
			if !waitingFaded {
				addSpan(&c.Waiting, s.tick, e.Value())
			}
		case Seen:
			addSpan(&c.Seen, s.tick, e.Value())
		case Admitted:
			addSpan(&c.Admitted, s.tick, e.Value())
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

// LastActive returns the boot number and the active leases of the newest
// incarnation of node before boot, faded or not, and whether there is one. A
// node that starts again reads here how much it may still have in use.
func (r *Rows) LastActive(node NodeID, boot uint64, room RoomID) (prev uint64, active int64, ok bool) {
	for owner, w := range r.rows {
		if owner.Node != node || owner.Boot >= boot || (ok && owner.Boot < prev) {
			continue
		}
		prev, active, ok = owner.Boot, 0, true
		if rc := w.rooms[room]; rc != nil {
			active = rc.cells[slot{Active, 0}].Value()
		}
	}
	return prev, active, ok
}
