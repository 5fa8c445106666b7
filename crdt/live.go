package crdt

import "slices"

// live holds the cells of a room that are not zero. Most are: whoever came in a
// span has been let in long ago, yet the cell has to stay. Sums are asked for many
// times a second and shall not pay for them. The zero value has not been filled,
// and is not before somebody asks: rows that come from others and are never summed
// take no more memory for it.
//
// Invariant, once filled: cells[at.of(s)].slot == s, for each slot that is not
// zero and no other.
type live struct {
	cells  []liveCell
	at     slots[int32]
	filled bool
}

type liveCell struct {
	slot
	value int64
}

// living returns the cells that are not zero, in no order. They are for reading,
// until the next change.
func (rc *roomCells) living() []liveCell {
	if !rc.live.filled {
		rc.live.filled = true
		for s, e := range rc.cells.all() {
			rc.live.set(s, e.Value())
		}
	}
	return rc.live.cells
}

// set says what a cell counts now.
func (l *live) set(s slot, value int64) {
	if !l.filled {
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

func (l *live) clone() live { return live{slices.Clone(l.cells), l.at.clone(), l.filled} }
