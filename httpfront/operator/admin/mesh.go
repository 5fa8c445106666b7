package admin

import (
	"context"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// Mesh is what an API is asked of: a node, and through it all others.
type Mesh interface {
	// Catalog returns what operators have set, as this node knows it now; nil if it does not. It is for reading.
	Catalog() *catalog.Catalog
	// Edit calls edit with the newest catalog, one caller at a time, and has the mesh hold
	// what it returns to be written. It returns edit's error as it is, and otherwise once
	// the writes are on the disks of this node and, unless that takes too long, of all in
	// reach. It names the nodes that have not said so. No writes: nothing happens.
	Edit(ctx context.Context, edit func(*catalog.Catalog) ([]catalog.Write, error)) (notYetAt []string, err error)
	// Check reports what of a room's settings this node's front cannot do (expressions,
	// templates); for catalog.Catalog.Check.
	Check(s *room.Settings) error
	// CheckLimit is the same for rate limits; for catalog.CheckLimits.
	CheckLimit(r *limit.Rule) (steps int, err error)
	// Room returns what goes on in a room; false if this node does not run it (yet).
	Room(id crdt.RoomID, now time.Time) (RoomState, bool)
	// Preview keeps a template for a while and returns the path (below the admin listener) under which it is shown.
	Preview(html string) (path string, err error)
}

// RoomState is what goes on in a room, over the whole mesh.
type RoomState struct {
	Status          string // "not_queueing", "queueing", "event_prequeueing" or "suspended"
	Event           string // name of the event that is under way or in its pre-queue; "": none
	Waiting, Active int64
	Wait            time.Duration // how long who comes now is expected to wait at most; negative: nobody can tell
}
