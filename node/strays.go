package node

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// What is left of rooms that are gone: counts in rows and summaries, which would stay for as long as the nodes run, since
// no row says by itself that nothing more will come, and ledgers on disk. Each node drops what there is of rooms that nobody
// has any more. It may hear of counts again, from who has not yet done so, and find a ledger again after a crash:
// that is dropped as well, later.

const (
	// strayInterval is the time between two looks for such rooms.
	strayInterval = time.Minute
	// strayFor is for how long nobody has had a room when what is left of it is dropped: counts by ticks are over by
	// then, and whatever was on its way has come. A room may also be new, and its counts may be here before it is known.
	strayFor = 10 * time.Minute
)

// strays are the rooms of which something is left, and that nobody has.
type strays struct {
	looked time.Time
	since  map[crdt.RoomID]time.Time // when that was first seen
}

// dropStrays drops what is left of rooms that are gone for good.
func (c *Core) dropStrays(now time.Time) {
	s := &c.strays
	if c.leave.on || now.Sub(s.looked) < strayInterval && !now.Before(s.looked) {
		return
	}
	s.looked = now
	since := map[crdt.RoomID]time.Time{}
	look := func(id crdt.RoomID) {
		if _, seen := since[id]; seen || c.rooms[id] != nil || !c.isGone(id) {
			return
		}
		since[id] = now
		if first, ok := s.since[id]; ok && !now.Before(first) {
			since[id] = first
		}
	}
	for id := range c.replica.CountedRooms() {
		look(id)
	}
	for id := range c.storing.found {
		look(id)
	}
	for id, first := range since {
		if now.Sub(first) >= strayFor {
			c.replica.Drop(id)
			if c.goneOnDisk(id) {
				c.storing.drop(id)
			}
		}
	}
	s.since = since
}

// isGone reports whether a room that is not kept is gone for good. One that nothing is known of is: rooms that
// operators have set are known to all. Where each node has those of its configuration alone, they are not.
func (c *Core) isGone(id crdt.RoomID) bool {
	if f := c.facts.rooms[id]; f != nil {
		return f.retired
	}
	read := c.Catalog()
	return read != nil && read.Room(id) == nil
}

// goneOnDisk reports whether the next start of this node will know as much: without its ledger it must not
// take the room for one that there is.
func (c *Core) goneOnDisk(id crdt.RoomID) bool {
	key := roomKey(factRetired, id)
	_, _, retired := c.replica.Get(key)
	at, _ := c.replica.TellerOf(key)
	return !retired || c.replica.Keeps(c.self.Node, at)
}
