package node

import (
	"maps"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// A room that is made where one was deleted just before lets nobody in for a while: those whom the
// room before let in count for a minute among its new users. So nothing is minted until then.

// deletedRoom is a room that was deleted lately.
type deletedRoom struct {
	at       time.Time
	settings *room.Settings // nil: not known here
}

// noteDeleted notes which rooms were deleted lately. It is called before rooms go that are kept no
// longer, with their settings.
func (c *Core) noteDeleted(now time.Time) {
	if c.deleted.reading == c.facts.reading {
		return
	}
	c.deleted.reading = c.facts.reading
	maps.DeleteFunc(c.deleted.rooms, func(id crdt.RoomID, _ deletedRoom) bool {
		return !c.facts.room(id).retired || now.Sub(c.facts.room(id).retiredAt) > ticket.NewFor
	})
	for id, f := range c.facts.rooms {
		if _, noted := c.deleted.rooms[id]; noted || !f.retired || now.Sub(f.retiredAt) > ticket.NewFor {
			continue
		}
		is := deletedRoom{at: f.retiredAt}
		if is.at.After(now) {
			is.at = now // by a clock that is ahead
		}
		if r := c.rooms[id]; r != nil && !r.resting.Load() {
			is.settings = r.settings.Load()
		}
		if c.deleted.rooms == nil {
			c.deleted.rooms = map[crdt.RoomID]deletedRoom{}
		}
		c.deleted.rooms[id] = is
	}
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
