package node

import (
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// A room that is made where one was deleted just before lets nobody in for a while: those whom the
// room before let in count for a minute among its new users. So nothing is minted until then.

// deletedRooms are the rooms that were deleted lately.
type deletedRooms struct {
	reading uint64 // of the facts that they are of
	rooms   map[crdt.RoomID]deletedRoom
	moved   map[crdt.RoomID]time.Time // when rooms that there are came to stand elsewhere
}

// deletedRoom is a room that was deleted lately.
type deletedRoom struct {
	at       time.Time
	settings *room.Settings // nil: where it has stood for the last minute is not known here
}

// toldWithin is how soon a node that is not cut off hears of a deletion. One that hears of it
// later may have missed that the room was moved before.
const toldWithin = 2 * time.Second

// noteDeleted notes which rooms were deleted lately. It is called before rooms go that are kept no
// longer, with their settings.
func (c *Core) noteDeleted(now time.Time) {
	d := &c.deleted
	if d.reading == c.facts.reading {
		return
	}
	d.reading = c.facts.reading
	maps.DeleteFunc(d.moved, func(_ crdt.RoomID, at time.Time) bool { return now.Sub(at) > ticket.NewFor })
	maps.DeleteFunc(d.rooms, func(id crdt.RoomID, _ deletedRoom) bool { return !c.facts.room(id).deletedSince(now) })
	for id, f := range c.facts.rooms {
		if _, noted := d.rooms[id]; noted || !f.deletedSince(now) {
			continue
		}
		is := deletedRoom{at: f.retiredAt}
		if is.at.After(now) {
			is.at = now // by a clock that is ahead
		}
		_, moved := d.moved[id]
		if r := c.rooms[id]; r != nil && !r.resting.Load() && !moved && now.Sub(f.retiredAt) <= toldWithin {
			is.settings = r.settings.Load()
		}
		if d.rooms == nil {
			d.rooms = map[crdt.RoomID]deletedRoom{}
		}
		d.rooms[id] = is
	}
}

// deletedSince reports whether a room was deleted, and whom it had let in may count as new still.
func (r *roomFacts) deletedSince(now time.Time) bool {
	return r.retired && now.Sub(r.retiredAt) <= ticket.NewFor
}

// noteMoved notes that a room stands elsewhere from now on.
func (c *Core) noteMoved(was, is *room.Settings, now time.Time) {
	if slices.Equal(slices.Collect(was.Routes()), slices.Collect(is.Routes())) {
		return
	}
	if c.deleted.moved == nil {
		c.deleted.moved = map[crdt.RoomID]time.Time{}
	}
	c.deleted.moved[is.ID] = now
}

// mintsFrom returns from when on a room may have its first rights: later than now only where it may
// take the place of one that was deleted. Rooms of which this node does not know where they were may
// have been anywhere.
func (c *Core) mintsFrom(r *Room) (from time.Time) {
	for _, d := range c.deleted.rooms {
		if until := d.at.Add(ticket.NewFor); until.After(from) && (d.settings == nil || room.Apart(d.settings, r.settings.Load()) != nil) {
			from = until
		}
	}
	return from
}
