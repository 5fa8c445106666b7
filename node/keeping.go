package node

import (
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// Which rooms a node keeps: those of its configuration, and all others of which the
// mesh has rights. The latter rest: no request is theirs, but their rights move, are
// left to heirs and recovered like any others, so that a room which is not in the file
// of every node loses nothing.
//
// A retired id is never used again. A room that is in a configuration nevertheless goes
// on under the id that follows, with rights and visitors of its own, as soon as somebody
// mints in it: the node that mints for the mesh, once it starts when the id is retired already.

// successor returns the id of the room that is made in place of one that is retired.
func successor(id crdt.RoomID) (next crdt.RoomID) {
	sum := sha256.Sum256(append([]byte("room after\x00"), id[:]...))
	copy(next[:], sum[:])
	return next
}

// maxSuccessors bounds how often a room is made again.
const maxSuccessors = 1 << 12

// current returns the first id that is not retired, of a room and those that follow it.
func (f *facts) current(id crdt.RoomID) crdt.RoomID {
	for range maxSuccessors {
		if !f.room(id).retired {
			break
		}
		id = successor(id)
	}
	return id
}

// setRooms has a node keep these.
func (c *Core) setRooms(rooms map[crdt.RoomID]*Room) {
	order := slices.SortedFunc(maps.Values(rooms), func(a, b *Room) int { return a.id.Compare(b.id) })
	for _, r := range c.order {
		r.nap = 0 // who goes is not woken any more
	}
	c.rooms, c.order = rooms, order
	c.naps.awake, c.naps.woken = nil, nil // which hold who goes
	c.wakeAll()
	own := c.mesh.room
	shown := slices.DeleteFunc(slices.Clone(order), func(r *Room) bool { return r.id == own && own != crdt.RoomID{} })
	c.shown.Store(&shown) // and not c.order, which is another soon, while somebody reads this one
	c.routes.Store(newRoutes(order))
}

// lives reports whether there are rights of a room, or are to be.
func (r *roomFacts) lives() bool { return !r.retired && r.minter != crdt.NodeID{} }

// newRooms reports whether the facts say that other rooms have to be kept than are.
func (c *Core) newRooms() bool {
	for id, f := range c.facts.rooms {
		if kept := c.rooms[id] != nil; kept && f.retired || !kept && f.lives() {
			return true
		}
	}
	return false
}

// keepRooms has the rooms kept that the facts say. A message about any other is passed
// over, and is no mistake of its sender: this node has not heard of the room yet, or the
// sender has not that it is retired.
func (c *Core) keepRooms(now time.Time) {
	if c.leave.on || !c.newRooms() {
		return // who leaves takes nothing up any more
	}
	rooms := maps.Clone(c.rooms)
	for _, id := range slices.SortedFunc(maps.Keys(c.facts.rooms), crdt.RoomID.Compare) {
		if f := c.facts.rooms[id]; rooms[id] == nil && f.lives() {
			r := newRoom(c, restingSettings(id, f))
			r.resting.Store(true)
			rooms[id] = r
		}
	}
	var over, taken []*Room
	for _, r := range c.order {
		if !c.facts.room(r.id).retired {
			continue
		}
		next := rooms[c.facts.current(r.id)]
		if r.resting.Load() || next != nil && next.id != r.id {
			over = append(over, r)
			delete(rooms, r.id)
		}
		if !r.resting.Load() && next != nil && next.id != r.id {
			next.succeed(r)
			taken = append(taken, next)
		}
	}
	if maps.Equal(rooms, c.rooms) {
		return
	}
	fresh := slices.DeleteFunc(slices.Collect(maps.Values(rooms)), func(r *Room) bool { return c.rooms[r.id] == r })
	slices.SortFunc(fresh, func(a, b *Room) int { return a.id.Compare(b.id) })
	c.setRooms(rooms)
	for _, r := range fresh {
		r.open(now)
		r.look(now)
	}
	for _, r := range taken {
		r.look(now)
	}
	for _, r := range over {
		r.abandon(now)
	}
}

// restingSettings returns what a node goes by in a room of which it knows only what all
// have agreed on.
func restingSettings(id crdt.RoomID, f *roomFacts) room.Settings {
	limits := f.limits.Max(ticket.Amount{Places: 1, Rate: 1})
	return room.Settings{
		ID: id, Name: id.String(), Path: "/", Policy: room.Escrow, QueueingMethod: room.FIFO, Suspended: true,
		TotalActiveUsers: int(limits.Places), NewUsersPerMinute: int(limits.Rate),
		SessionDuration: f.session,
	}.WithDefaults()
}

// succeed has a room be the one of this node's configuration that r was.
func (r *Room) succeed(before *Room) {
	s := *before.settings.Load()
	s.ID = r.id
	r.resting.Store(false)
	r.told, r.configured = false, before.configured
	r.settings.Store(&s)
	r.line.SetSettings(&s)
}

// abandon answers whoever still waits for a ticket of a room that is kept no longer, and has what is stored of it
// be dropped once it is gone for long enough; see strays.
func (r *Room) abandon(now time.Time) {
	if c := r.core; c.facts.room(r.id).retired {
		c.storing.over = append(c.storing.over, r)
	}
	if k := r.counters.Load(); k != nil {
		for _, w := range k.close() {
			r.core.settle(w, &Verdict{Pass: w.pass}, aTicket, now)
		}
	}
}

// keptAs returns the room that is kept in place of one that was of this id; nil: none.
func (c *Core) keptAs(id crdt.RoomID) *Room {
	for range maxSuccessors {
		if r := c.rooms[id]; r != nil || !c.facts.room(id).retired {
			return r
		}
		id = successor(id)
	}
	return nil
}
