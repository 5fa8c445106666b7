package replica

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Rewind has nothing that this node holds be of a time to come: what it wrote at an earlier start whose
// clock was ahead. It is called while peers say that the clock is right. Before that nobody
// knows whether that one was ahead, or this one is behind. It reports whether anything was of a time to come.
func (r *Replica) Rewind(now time.Time) bool {
	r.open(now)
	if r.right && !r.hlc.Ahead(now) {
		return false // nearly always
	}
	r.right = true
	last := now
	for owner := range r.rows.Owners() {
		if h, _ := r.rows.Header(owner); owner.Node == r.cfg.Self.Node && h.Changed.After(last) {
			last = h.Changed
		}
	}
	r.rows.Rewind(now)
	r.sums.Rewind(r.cfg.Site, now)
	return r.RewindMap(last, now)
}

// Ahead reports whether this node has written something that is of a time to come at now.
func (r *Replica) Ahead(now time.Time) bool { return r.hlc.Ahead(now) }

// RewindMap is Rewind for the last-writer map alone, while this node's clock is known to be ahead: it shows last
// where others show now.
func (r *Replica) RewindMap(last, now time.Time) bool {
	if !r.hlc.Ahead(now) {
		return false
	}
	was := r.lww.Rewind(r.cfg.Self.Node, last, now)
	r.hlc.Rewind(r.lww.Newest())
	r.transfer.end()
	if was == nil {
		return false
	}
	if kept := r.spread.kept; kept != nil {
		for writer, upTo := range was {
			kept[writer] = min(kept[writer], upTo)
		}
		r.spread.seen = 0
		r.Keep(nil) // nobody is told of what is not on disk as it is now
	}
	if r.fill.answered != nil {
		r.fill.answered = map[crdt.NodeID]bool{} // these were told that much was known
	}
	return true
}
