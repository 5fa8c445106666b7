package node

import "sync/atomic"

// tally is what this node has done for the visitors of a room since the start, for Status.
type tally struct {
	given   atomic.Uint64 // tickets to visitors of this node
	refused atomic.Uint64 // tickets, though places were free
}

// turnedAway counts a visitor who gets no ticket, if places are free and it is the disk, the
// clock, or a counter that does not answer, that keeps this node from giving one.
func (k *counters) turnedAway(c class) {
	r := k.room
	if r.core.fit() && !k.alone.Load() {
		return
	}
	if w := r.view.Load(); w.upTo[c] > r.used[c].Load() {
		r.tally.refused.Add(1)
	}
}
