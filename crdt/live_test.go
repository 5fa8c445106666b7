package crdt

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLiveIsWhatIsNotZero compares with a map of all values.
func TestLiveIsWhatIsNotZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l live
		all := map[slot]int64{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			s := slot{Kind(rapid.IntRange(1, 2).Draw(t, "kind")), rapid.Int64Range(0, 5).Draw(t, "tick")}
			v := rapid.Int64Range(-1, 2).Draw(t, "value")
			l.set(s, v)
			all[s] = v
		}
		n := 0
		for s, v := range all {
			i, ok := l.at.get(s)
			if ok != (v != 0) || ok && l.cells[i] != (liveCell{s, v}) {
				t.Fatalf("%v is %d, and live says %v", s, v, ok)
			}
			if v != 0 {
				n++
			}
		}
		if len(l.cells) != n || l.at.len() != n {
			t.Fatalf("%d cells and %d places for %d values", len(l.cells), l.at.len(), n)
		}
	})
}

// TestLiveFollowsRows looks at the live cells of rows that were written, merged,
// cloned and expired.
func TestLiveFollowsRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawnRows(t, 1), drawnRows(t, 2)
		for _, w := range a.rows {
			for _, rc := range w.rooms {
				_ = maps.Collect(rc.living())
			}
		}
		a.Merge(b)
		c := a.Clone()
		c.Merge(drawnRows(t, 3))
		c.Expire(liveStart.Add(time.Duration(rapid.SampledFrom([]int{0, 5, 20, 1500}).Draw(t, "minutes"))*time.Minute), Retention{})
		for _, r := range []*Rows{a, b, c} {
			for owner, w := range r.rows {
				for room, rc := range w.rooms {
					n, living := 0, maps.Collect(rc.living())
					for s, e := range rc.cells.all() {
						if v := e.Value(); v != 0 {
							n++
							if living[s] != v {
								t.Fatalf("%v %v %v counts %d, and %d live", owner, room, s, v, living[s])
							}
						}
					}
					if len(living) != n {
						t.Fatalf("%v %v: %d live cells for %d values", owner, room, len(living), n)
					}
				}
			}
		}
	})
}

var liveStart = time.Unix(1_900_000_000, 0)

// drawnRows returns a row of one node that counts a few visitors up and down.
func drawnRows(t *rapid.T, id byte) *Rows {
	r, owner := new(Rows), Incarnation{NodeID{id}, 1}
	r.Open(owner, "site", liveStart)
	for range rapid.IntRange(0, 20).Draw(t, "changes") {
		kind := Kind(rapid.IntRange(1, 4).Draw(t, "kind"))
		key := Key{RoomID{1}, kind, 0}
		switch kind {
		case Waiting:
			key.Tick = liveStart.Unix() + rapid.Int64Range(0, 3).Draw(t, "tick")
		case Seen, Admitted:
			key.Tick = TickOf(liveStart) + rapid.Int64Range(0, 3).Draw(t, "tick")
		}
		r.Add(owner, key, uint64(rapid.IntRange(0, 1).Draw(t, "p")), uint64(rapid.IntRange(0, 1).Draw(t, "n")), liveStart)
	}
	return r
}
