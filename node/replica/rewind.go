package replica

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// ownStart is what a node knows of its present start, and of the clock that this goes by.
type ownStart struct {
	opened bool          // our row exists
	noted  bool          // see noteStart
	slept  uint64        // up to which packed stamp this node had heard of others when it started
	before time.Time     // when the last start that wrote into lww ended, by its clock; zero: not known
	ahead  time.Duration // by how much the clock is known to be ahead
	right  bool          // the clock was found right since the start, and what we hold is of no time to come
}

// Rewind has nothing that this node holds be of a time to come: what it wrote at an earlier start whose
// clock was ahead. It is called while peers say that the clock is right. Before that nobody
// knows whether that one was ahead, or this one is behind. It reports whether anything was of a time to come.
func (r *Replica) Rewind(now time.Time) bool {
	r.open(now)
	r.start.ahead = 0
	if r.start.right && !r.hlc.Ahead(now) {
		return false // nearly always
	}
	r.start.right = true
	r.rows.Rewind(now)
	r.sums.Rewind(r.cfg.Site, now)
	return r.rewindMap(now, now)
}

// Ahead reports whether this node has written something that is of a time to come at now.
func (r *Replica) Ahead(now time.Time) bool { return r.hlc.Ahead(now) }

// RewindMap is Rewind for the last-writer map alone, while this node's clock is known to be ahead: it shows clock
// where others show now.
func (r *Replica) RewindMap(clock, now time.Time) bool {
	r.start.ahead = clock.Sub(now)
	return r.hlc.Ahead(now) && r.rewindMap(clock, now)
}

// rightTime returns what time it is, as far as that is known, where the clock of this node shows now. A node whose clock is known to be ahead
// does not believe another one whose clock is as far ahead: that puts its writes back as soon as it hears of the right time, and
// what it writes then would be taken for known.
func (r *Replica) rightTime(now time.Time) time.Time { return now.Add(-r.start.ahead) }

func (r *Replica) rewindMap(clock, now time.Time) bool {
	r.noteStart(clock)
	var was crdt.LWWDigest
	if r.hlc.Ahead(now) {
		was = r.lww.Rewind(r.cfg.Self.Node, r.start.slept, clock, now)
		r.hlc.Rewind(r.lww.Newest())
		r.transfer.end()
	}
	r.lww.TrustStarts(r.hlc.Last(), clock, now)
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

// stamp returns the one of this node's next write.
func (r *Replica) stamp(now time.Time) crdt.Stamp {
	r.noteStart(now)
	return r.hlc.Now(now, r.cfg.Self.Node)
}

// noteStart has it be known to later starts, before this one writes anything, by which clock it does: that may be put back.
func (r *Replica) noteStart(now time.Time) {
	if !r.start.noted {
		r.start.noted = true
		r.open(now)
		r.lww.NoteStart(r.cfg.Self, r.hlc.Last(), r.start.before, now)
	}
}
