package node

import (
	"slices"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// View returns the picture that requests are decided from now. It is shared;
// nobody changes it. Any goroutine may call it.
func (r *Room) View() *room.View { return r.view.Load().View }

// View returns how this node sees a room now; nil if there is none that takes requests.
// Any goroutine may call it.
func (c *Core) View(id crdt.RoomID) *room.View {
	r := c.shownRoom(id)
	if r == nil || r.resting.Load() {
		return nil
	}
	return r.View()
}

// shownRoom returns a room that this node keeps; nil if there is none. Any goroutine may
// call it.
func (c *Core) shownRoom(id crdt.RoomID) *Room {
	rooms := *c.shown.Load()
	i, ok := slices.BinarySearchFunc(rooms, id, func(r *Room, id crdt.RoomID) int { return r.id.Compare(id) })
	if !ok {
		return nil
	}
	return rooms[i]
}
