package replica

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// joins is how long a node may take to hear all that there is, from when it first hears any of it. Within that it has
// heard nothing from before what others forget meanwhile: that was on all disks for longer.
const joins = 5 * time.Minute

// Settling returns what nodes have of the last-writer map on their disks, as they have said; of those that were not
// asked for all writers, since they started or this node did, that is nothing.
func (r *Replica) Settling(nodes []crdt.NodeID) crdt.Settling {
	kept := make([]crdt.LWWDigest, len(nodes))
	for i, id := range nodes {
		kept[i] = r.keptBy(id)
	}
	return crdt.SettlingOf(kept)
}

// Deleted returns how many keys of the last-writer map were deleted, and are not forgotten.
func (r *Replica) Deleted() int { return r.lww.Deleted() }

// Forget forgets deletions that are settled; see crdt.LWW.Forget.
func (r *Replica) Forget(settled crdt.LWWDigest, most int) []crdt.Part {
	return r.lww.Forget(settled, most)
}

// Forgotten reports whether others have forgotten something that this node does not know: they forget what all nodes
// know, so they did not know of this one any more.
func (r *Replica) Forgotten() bool { return r.forgotten }

// noteForgotten looks whether a piece says so.
func (r *Replica) noteForgotten(p crdt.LWWPiece, now time.Time) {
	if r.fill.heard.IsZero() {
		r.fill.heard = now
	}
	young := !r.wrote && now.Sub(r.fill.heard) < joins
	heard := r.lww.NewestOf(p.Writer)
	if p.Writer == (crdt.NodeID{}) { // which stands for writers that were dropped
		heard = max(heard, r.start.slept)
	}
	r.forgotten = r.forgotten || !young && p.Forgot > heard
}
