package node

import "sync/atomic"

// tally is what this node has done for the visitors of a room since the start, for Status.
type tally struct {
	given   atomic.Uint64 // tickets to visitors of this node
	refused atomic.Uint64 // tickets, though places were free

	shared   atomic.Uint64 // requests with a pass that too many addresses use
	copies   atomic.Uint64 // of passes that waited, redeemed again
	bypassed atomic.Uint64 // requests that a rule of the front let pass
	dryRun   atomic.Uint64 // requests that would have queued, and passed in a dry run
	crowded  atomic.Uint64 // new visitors whom the front did not have queue
}

// counted returns what is counted of a room, to be added to. It is made with its first use:
// most rooms of a node that has thousands have nothing to tell. Any goroutine may call it.
func (r *Room) counted() *tally {
	if t := r.tally.Load(); t != nil {
		return t
	}
	r.tally.CompareAndSwap(nil, new(tally))
	return r.tally.Load()
}

// noTally is what is counted of a room of which nothing is. It is for reading.
var noTally = &tally{}

// tallied returns what is counted of a room, for reading. Any goroutine may call it.
func (r *Room) tallied() *tally {
	if t := r.tally.Load(); t != nil {
		return t
	}
	return noTally
}

// turnedAway counts a visitor who gets no ticket, if places are free and it is the disk, the
// clock, or a counter that does not answer, that keeps this node from giving one.
func (k *counters) turnedAway(c class) {
	r := k.room
	if r.core.fit() && !k.alone.Load() {
		return
	}
	if w := r.view.Load(); w.upTo[c] > r.used[c].Load() {
		r.counted().refused.Add(1)
	}
}
