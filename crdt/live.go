package crdt

import (
	"iter"
	"slices"
)

// live holds the cells of a room that are not zero. Most are: whoever came in a
// span has been let in long ago, yet the cell has to stay. Sums are asked for many
// times a second and shall not pay for them. The zero value is empty. It is made
// when somebody asks: rows that come from others and are never summed take no more
// memory for it, and neither do rooms that have few cells.
//
// Invariant: cells[at.of(s)].slot == s, for each slot that is not zero and no other.
type live struct {
	cells []liveCell
	at    slots[int32]
}

type liveCell struct {
	slot
	value int64
}

// living yields the cells that are not zero, in no order. Nothing may change meanwhile.
func (rc *roomCells) living() iter.Seq2[slot, int64] {
	return func(yield func(slot, int64) bool) {
		if rc.live == nil && rc.cells.many == nil {
			for i := range rc.cells.few {
				if v := rc.cells.few[i].is.Value(); v != 0 && !yield(rc.cells.few[i].slot, v) {
					return
				}
			}
			return
		}
		if rc.live == nil {
			rc.live = new(live)
			for s, e := range rc.cells.all() {
				rc.live.set(s, e.Value())
			}
		}
		for i := range rc.live.cells {
			if !yield(rc.live.cells[i].slot, rc.live.cells[i].value) {
				return
			}
		}
	}
}

// set says what a cell counts now. A live that was not made follows nothing.
func (l *live) set(s slot, value int64) {
	if l == nil {
		return
	}
	i, known := l.at.get(s)
	switch {
	case known && value != 0:
		l.cells[i].value = value
	case known:
		last := len(l.cells) - 1
		moved := l.cells[last]
		l.cells[i] = moved
		l.at.set(moved.slot, i)
		l.cells = l.cells[:last]
		l.at.delete(s)
	case value != 0:
		l.at.set(s, int32(len(l.cells)))
		l.cells = append(l.cells, liveCell{s, value})
	}
}

func (l *live) clone() *live {
	if l == nil {
		return nil
	}
	return &live{slices.Clone(l.cells), l.at.clone()}
}
