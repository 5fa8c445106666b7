package crdt

import (
	"maps"
	"slices"
	"time"
)

// What a node has on its disk that is of a time to come was written by a clock that was ahead.
// Nobody else believes it until then, and it would win against all that is written meanwhile.
// So it is put back, once it is known that the clock is right now.

// Rewind has no write be of a time to come. It is now, and the clock of self's last start, which was noted (see NoteStart), shows
// clock; heard is the packed stamp up to which others were known when that began. Writes of self keep their order, and those of one start
// their distances: that ended when the next one began, at the latest, so that
// none becomes later than it was, nor than what was written elsewhere since, but for the time for which the node was down. None becomes
// earlier than what it had taken the place of, nor than what others know of self: they would take no notice. Those of other nodes are kept
// as the oldest that they can be after what is known of their writer: it puts them back itself,
// and tells of them again. It returns up to where all is still as it was, of each writer of
// whom it is not; nil: nothing has changed.
func (m *LWW) Rewind(self NodeID, heard uint64, clock, now time.Time) (kept LWWDigest) {
	latest := Stamp{Wall: now.Add(maxDrift).UnixMilli(), Logical: 1<<16 - 1}.packed()
	for writer, known := range m.known {
		if known > latest {
			if kept == nil {
				kept = LWWDigest{}
			}
			kept[writer] = 0
		}
	}
	if kept == nil {
		return nil
	}
	ahead := map[NodeID][]Write{}
	for key, e := range m.entries.all() {
		at, writer := e.stamp.packed(), e.stamp.Node
		if base, put := kept[writer]; put && at <= latest {
			kept[writer] = max(base, at)
		} else if put {
			ahead[writer] = append(ahead[writer], Write{Key: key, At: at})
		}
	}
	spans := m.spans(clock, now)
	writers := slices.SortedFunc(maps.Keys(kept), NodeID.Compare)
	for _, writer := range writers {
		writes, to := ahead[writer], kept[writer]
		slices.SortFunc(writes, compareWrites)
		if writer == self {
			// Behind what others have made of them: see above.
			if to = max(to, m.knewBy(latest)); heard <= latest {
				to = max(to, heard)
			}
			to += uint64(len(writes))
		}
		for _, w := range writes {
			if to++; writer == self {
				to = max(to, backTo(w.At, spans))
			}
			e, _ := m.entries.get(w.Key)
			if e.stamp, e.change = unpack(to, writer), m.changes+1; e.first.packed() > to {
				e.first = Stamp{}
			}
			m.entries.put(w.Key, e)
		}
		m.entries.reorder(writer, to)
		delete(m.hides, writer)
		m.hide(unpack(to, writer))
		m.known[writer], m.learned[writer] = to, m.changes+1
	}
	for _, writer := range writers {
		m.putBeaten(ahead[writer], latest)
	}
	m.changes++
	m.tells++
	return kept
}

// reorder has what came of a writer be taken for out of order up to a packed stamp, which is its newest.
func (t *lwwTable) reorder(writer NodeID, newest uint64) {
	if i, ok := t.writer[writer]; ok {
		t.writers[i].top, t.writers[i].disorder = newest, newest
	}
}

// Rewind has no row be of a time to come, but for those that are written here: those end now. Counts
// of what is to come are forgotten.
func (r *Rows) Rewind(now time.Time) {
	for _, w := range r.order {
		if w.mine || w.changed <= now.UnixMilli() && !ahead(Seen, w.closed, now) {
			continue
		}
		w.changed, w.closed = min(w.changed, now.UnixMilli()), min(w.closed, TickOf(now))
		for _, rc := range w.rooms {
			rc.changes++
			rc.cells.deleteFunc(func(s slot, _ entry) bool {
				gone := ahead(s.kind, s.tick, now)
				if gone {
					rc.live.set(s, 0)
				}
				return gone
			})
		}
	}
}

// Rewind forgets the summaries of which others believe nothing, since they are of a time to come, and that of
// site as soon as its epoch is: whoever publishes it states it again.
func (s *Summaries) Rewind(site string, now time.Time) {
	latest := now.Add(maxDrift).UnixMilli()
	for name, w := range s.sites {
		if w.changed > latest || ahead(Seen, w.closed, now) || w.head.Epoch > maxEpoch(now) || name == site && w.head.Epoch > uint64(latest) {
			delete(s.sites, name)
			s.shape++
		}
	}
}

// Ahead reports whether the clock is ahead of a time by more than is believed of a stamp.
func (c *Clock) Ahead(now time.Time) bool {
	return unpack(c.last, NodeID{}).Wall > now.Add(maxDrift).UnixMilli()
}

// Rewind sets the clock to the newest stamp that is known.
func (c *Clock) Rewind(newest Stamp) { c.last = newest.packed() }
