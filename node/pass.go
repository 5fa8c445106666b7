package node

import (
	"encoding/binary"
	"time"

	"golang.org/x/crypto/blake2b"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// VisitorID names one browser or app. It is random; the zero value names nobody.
type VisitorID [16]byte

// after returns the id by which somebody waits who has lost a session that began at
// accepted, through a fault of ours. The old id has been let in: wherever that is
// remembered, it is no reason to let it wait, or in, again. All requests of one browser
// get the same id, at whichever node.
func (id VisitorID) after(accepted time.Time) VisitorID {
	sum := blake2b.Sum256(binary.BigEndian.AppendUint64(id[:], uint64(accepted.UnixMilli())))
	return VisitorID(sum[:16])
}

// Pass is what a visitor carries in the cookie. The zero value is a new visitor.
type Pass struct {
	Visitor    VisitorID
	Room       crdt.RoomID
	Arrival    time.Time     // first asked
	LastPoll   time.Time     // last request that counted while waiting
	Refresh    time.Duration // the interval the visitor was told
	AcceptedAt time.Time     // zero: waiting
	LeaseEnd   time.Time     // zero: waiting
	Ticket     ticket.Ticket // zero: waiting
	Borrowed   bool          // the session has no right of its own; see room.PartitionOpen
	Shown      room.Shown    // what the visitor was told last while waiting

	// Foreign says that it was of a session in another mesh, which is none here: LastPoll is
	// when that would have ended. It is not stored.
	Foreign bool
}

// Accepted reports whether the visitor was let in, whatever became of the lease.
func (p Pass) Accepted() bool { return !p.AcceptedAt.IsZero() }

// blank reports whether p is of nobody yet. Every other pass says which room it is of.
func (p *Pass) blank() bool { return p.Room == (crdt.RoomID{}) && p.Arrival.IsZero() }

// Verdict is the answer to one request.
type Verdict struct {
	Admit     bool
	Pass      Pass          // what the visitor shall carry from now on
	SetPass   bool          // whether Pass differs from what the visitor sent
	ClearPass bool          // whether the visitor shall carry none any more
	New       bool          // somebody who was not known waits from now on; see Room.Queue
	Estimate  room.Estimate // while waiting
	Refresh   time.Duration // when to ask again, while waiting; 0 is never: the room rejects
	View      *room.View    // what this was decided from; nil if nothing was looked at

	// Asked is how long Decide waited for a word that this node's memory did not have, and
	// Word whose: "anchor", "owner" or "counter", the first where there were several. 0 and ""
	// if it waited for none.
	Asked time.Duration
	Word  string
}
