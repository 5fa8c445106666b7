package node

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/packed"
	"github.com/ropeline/ropeline/node/ticket"
)

// A room that is made just after one was deleted lets nobody in for a while: it nearly always stands where
// the other one did, and whom that one let in counts for a minute among the new users there. So nothing is
// minted until then. Where a deleted room has stood in that minute nobody can know for sure: it may have been
// moved, which other nodes hear of late, and the catalog keeps the last place alone. So a room waits wherever it
// stands. The minute begins when this node first hears of the deletion: the stamp of a deletion is by
// the clock of whichever node it was written at, and the limit of new users rests on no clock.

// deletedRooms says when a room was deleted last.
type deletedRooms struct {
	known map[crdt.RoomID]bool // all that this node has heard were deleted; nil: it has just started
	last  time.Time            // when it heard of one, or started if it may have heard just before; zero: never
}

// clockBehind is how far behind the clock of the node at which a room was deleted may have been.
// A node that starts does not know when it has heard of a deletion, only the stamp: by that
// alone it takes one for over that is older than this. Any other keeps rooms closed that are made
// within a minute of the start.
const clockBehind = 10 * time.Minute

// noteDeleted notes when a room was deleted last. It is called before rooms are taken up.
func (c *Core) noteDeleted(now time.Time) {
	d := &c.deleted
	starts := d.known == nil
	if starts {
		d.known = map[crdt.RoomID]bool{}
	}
	for id := range c.facts.fresh {
		if !c.facts.room(id).retired {
			packed.Delete(&d.known, id) // it is forgotten
			continue
		}
		if d.known[id] {
			continue
		}
		d.known[id] = true
		_, at, _ := c.replica.Get(roomKey(factRetired, id))
		if !starts || now.Sub(time.UnixMilli(at.Wall)) <= clockBehind {
			d.last = now
		}
	}
}

// holdBack has a room of which nobody has minted anything wait if one was deleted just before this node was
// first to mint in it, and not for those that are deleted later. It is called with mu held.
func (r *Room) holdBack() {
	if last := r.core.deleted.last; !r.heldBack && !last.IsZero() {
		r.rights.WaitToMint(last.Add(ticket.NewFor))
	}
	r.heldBack = true
}
