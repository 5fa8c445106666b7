package manage

import (
	"context"
	"errors"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/history"
)

// Mesh is what is asked: a node, and through it the others.
type Mesh interface {
	// Status returns what this node sees.
	Status() node.Status
	// Snapshot returns the mesh as this node sees it, with what others say of themselves.
	Snapshot(now time.Time) dashboard.Snapshot
	// Ledgers returns what each node has of a room's rights, and the names of those that
	// did not say.
	Ledgers(ctx context.Context, room crdt.RoomID) (all []node.Ledger, missing []string)
	// History returns how a room was, over all nodes, and the names of those that did not
	// say what they know of it.
	History(ctx context.Context, room crdt.RoomID, from, to time.Time) (s history.Series, missing []string, err error)
	// Explain says how requests of a visitor would be decided by the node that knows the
	// visitor. The error may be node.ErrUnknownVisitor or node.ErrUnknownRoom.
	Explain(ctx context.Context, room crdt.RoomID, visitor node.VisitorID) (node.Explanation, error)
	// ExplainRequest says what would become of a request at this node.
	ExplainRequest(q *httpfront.Question) httpfront.Explained
	// Drain has a node stop as on SIGTERM; with leave, its rights go to another one first,
	// and it is not to be started again. The warning says what to do because it leaves; "":
	// nothing. The error may be ErrUnknownNode or ErrNotNow.
	Drain(ctx context.Context, id crdt.NodeID, leave bool) (warning string, err error)
	// DeclareDead says that a node is gone for good, as node.Node.DeclareDead does.
	DeclareDead(ctx context.Context, id crdt.NodeID) error
	// Recovered reports whether other nodes have all capacity of a dead one, as
	// node.Node.Recovered does.
	Recovered(ctx context.Context, id crdt.NodeID) (bool, error)
	// Keys returns the secrets of the mesh by their ids, the newest first.
	Keys() []Key
	// RotateKeys has a new secret take the place of the one that is used, at all nodes. While
	// one is on its way, that one is given to those who have not got it. The error may be
	// ErrNotNow.
	RotateKeys(ctx context.Context) (Rotation, error)
}

// ErrUnknownNode says that a node that is to be told something cannot be reached.
var ErrUnknownNode = errors.New("no such node is alive")

// ErrNotNow says that something cannot be done as things are, and that asking again does not
// help.
var ErrNotNow = errors.New("it cannot be done as things are")

// Key is one secret of the mesh, without what is secret.
type Key struct {
	ID string `json:"id"`
	// State is "used", "next" (accepted, and newer), or "accepted" (older).
	State string `json:"state"`
	// Listed says that it stands in the file.
	Listed bool `json:"listed"`
	// WaitsFor are the nodes that have not had it for long enough.
	WaitsFor []string `json:"waits_for,omitempty"`
}

// Rotation is what became of a new secret.
type Rotation struct {
	ID string `json:"id"` // of the new secret
	// Given are the names of the nodes that have it in their file now. It is used five
	// minutes after all have it.
	Given []string `json:"given"`
	// Refused says by their names what nodes do not have it, and why. They are to be given
	// a file with it by other means.
	Refused map[string]string `json:"refused"`
}
