package node

import (
	"encoding/binary"
	"maps"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
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
}

// deletedRoom is a room that was deleted lately.
type deletedRoom struct {
	heard    time.Time      // when this node heard of that, or started if it may have heard just before
	settings *room.Settings // nil: where it has stood for the last minute is not known here
}

// whereabouts says since when a room has been where it is, as far as this node knows.
type whereabouts struct {
	version crdt.Stamp // of what the catalog says of that; zero: this node does not go by what it says
	since   brief      // when this node went by that
	made    bool       // this node has made the room there
}

// clockBehind is how far behind the clock of the node at which a room was deleted may have been.
// A node that starts does not know when it has heard of a deletion, only the stamp: by that
// alone it takes one for over that is older than this. Any other keeps rooms closed that are made
// within a minute of the start.
const clockBehind = 10 * time.Minute

// noteDeleted notes which rooms were deleted lately. It is called before rooms go that are kept no
// longer, with their settings.
func (c *Core) noteDeleted(now time.Time) {
	d := &c.deleted
	if d.known != nil && d.reading == c.facts.reading {
		return
	}
	d.reading = c.facts.reading
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
		value, at, _ := c.replica.Get(roomKey(factRetired, id))
		if !starts || now.Sub(time.UnixMilli(at.Wall)) <= clockBehind {
			d.rooms[id] = deletedRoom{now, c.stood(id, decodeRetired(value), now)}
		}
	}
}

// stood returns the settings of a room that is deleted if it has stood where they say for the last
// minute, as far as this node can know. It may never hear of a place of before, since the last one alone stays in the
// catalog. So the deletion says which was the last one, and this node has gone by that one for as long, or has made the room there.
func (c *Core) stood(id crdt.RoomID, last crdt.Stamp, now time.Time) *room.Settings {
	r := c.rooms[id]
	if r == nil || r.resting.Load() || last.IsZero() || r.stands.version != last ||
		!r.stands.made && now.Sub(r.stands.since.time()) <= ticket.NewFor {
		return nil
	}
	return r.settings.Load()
}

// noteStanding notes that this node goes by what the catalog says of where a room is: of one that it may have made just
// now itself, or has taken up just now, or had before.
func (r *Room) noteStanding(made, takenUp bool, now time.Time) {
	c := r.core
	_, version, _ := c.replica.Get(catalog.RoutesKey(r.id))
	if version != r.stands.version || takenUp {
		made = made && version.Node == c.self.Node && c.facts.room(r.id).minter == c.self.Node
		r.stands = whereabouts{version, briefOf(now), made}
	}
}

// encodeRetired writes that a room is gone: a version, and of what the catalog says of where it is the stamp, if it is in
// there: ms since 1970, the number among those of that ms, and the writer. Versions before write and read the version alone.
func (c *Core) encodeRetired(id crdt.RoomID) []byte {
	out := []byte{factVersion}
	if _, at, ok := c.replica.Get(catalog.RoutesKey(id)); ok {
		out = binary.BigEndian.AppendUint64(out, uint64(at.Wall))
		out = append(binary.BigEndian.AppendUint16(out, at.Logical), at.Node[:]...)
	}
	return out
}

// decodeRetired returns the stamp of where a room was that is gone; zero: nobody has said.
func decodeRetired(value []byte) (at crdt.Stamp) {
	if len(value) != 1+8+2+len(at.Node) || value[0] != factVersion {
		return at
	}
	at.Wall, at.Logical = int64(binary.BigEndian.Uint64(value[1:])), binary.BigEndian.Uint16(value[9:])
	copy(at.Node[:], value[11:])
	return at
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
