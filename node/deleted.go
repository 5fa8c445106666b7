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
// room before let in count for a minute among its new users. So nothing is minted until then. That
// minute begins when this node first hears of the deletion. The stamp of a deletion is by the clock of
// whichever node it was written at, and the limit of new users rests on no clock.

// deletedRooms are the rooms that were deleted lately.
type deletedRooms struct {
	reading uint64                      // of the facts that they are of
	known   map[crdt.RoomID]bool        // all deletions that this node has heard of; nil: it has just started
	rooms   map[crdt.RoomID]deletedRoom // those that it heard of lately
	moved   map[crdt.RoomID]time.Time   // when rooms that there are came to stand elsewhere
}

// deletedRoom is a room that was deleted lately.
type deletedRoom struct {
	heard    time.Time      // when this node heard of that, or started if it may have heard just before
	settings *room.Settings // nil: where it has stood for the last minute is not known here
}

const (
	// toldWithin is how soon a node that is not cut off hears of a deletion. One that hears of it
	// later may have missed that the room was moved before.
	toldWithin = 2 * time.Second
	// clockBehind is how far behind the clock of the node at which a room was deleted may have been.
	// A node that starts does not know when it has heard of a deletion, only the stamp: by that
	// alone it takes one for over that is older than this. Any other keeps rooms closed that are made
	// within a minute of the start.
	clockBehind = 10 * time.Minute
)

// noteDeleted notes which rooms were deleted lately. It is called before rooms go that are kept no
// longer, with their settings.
func (c *Core) noteDeleted(now time.Time) {
	d := &c.deleted
	if d.known != nil && d.reading == c.facts.reading {
		return
	}
	d.reading = c.facts.reading
	maps.DeleteFunc(d.moved, func(_ crdt.RoomID, at time.Time) bool { return now.Sub(at) > ticket.NewFor })
	maps.DeleteFunc(d.rooms, func(_ crdt.RoomID, is deletedRoom) bool { return now.Sub(is.heard) > ticket.NewFor })
	starts := d.known == nil
	if starts {
		d.known, d.rooms = map[crdt.RoomID]bool{}, map[crdt.RoomID]deletedRoom{}
	}
	for id, f := range c.facts.rooms {
		if !f.retired || d.known[id] {
			continue
		}
		d.known[id] = true
		if !starts || now.Sub(f.retiredAt) <= clockBehind {
			d.rooms[id] = deletedRoom{now, c.stood(id, f.retiredAt, now)}
		}
	}
}

// stood returns the settings of a room that is deleted if it has stood where they say for the last
// minute, as far as this node can know: it has been up for as long, and has heard of the deletion at once.
func (c *Core) stood(id crdt.RoomID, deleted, now time.Time) *room.Settings {
	r := c.rooms[id]
	late := now.Sub(deleted)
	if r == nil || r.resting.Load() || late > toldWithin || late < -maxOffset || now.Sub(c.openedAt) <= ticket.NewFor {
		return nil
	}
	if _, moved := c.deleted.moved[id]; moved {
		return nil
	}
	return r.settings.Load()
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
		if until := d.heard.Add(ticket.NewFor); until.After(from) && (d.settings == nil || room.Apart(d.settings, r.settings.Load()) != nil) {
			from = until
		}
	}
	return from
}
