// Package record writes down what nodes grant, in true time, so that somebody
// else can find out afterwards whether they were allowed to.
//
// Every process of a machine reads the same clock ([Now]), whatever its own wall
// clock is made to say. An event is handed to the kernel, in one write, before
// the answer that it tells of leaves: kill −9 then loses no event that a visitor
// has seen. It does not outlive the machine, and need not.
//
// A [Writer] may be used by many goroutines.
package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// Kind says what happened.
type Kind uint8

const (
	// Entered: a visitor was let in with a new ticket.
	Entered Kind = iota + 1
	// Reanchored: a session went on with a new ticket, since the anchor of the
	// old one was out of reach.
	Reanchored
	// Renewed: a session went on with the ticket that it had, and a later end.
	Renewed
	// Borrowed: a session went on although no right was free for it, or had gone
	// on like that and got a later end.
	Borrowed
	// Ended: the site ended a session.
	Ended
	// Gave and Received are transfers of rights: what one node told that it gave
	// another so far, and what that one told that it received. See Moved.
	Gave
	Received
)

// Event is one thing that a node granted.
type Event struct {
	Kind    Kind
	Room    uint32 // the first bytes of the room's id
	Anchor  uint64 // the first bytes of the ticket's anchor
	Boot    uint32
	Block   uint32
	Seq     uint64
	Visitor uint64        // the first bytes of the visitor's id, which are random
	At      int64         // [Now] when the answer was about to leave
	Took    time.Duration // since the request was there; at most 71 minutes, in µs
	Left    time.Duration // of the session at At, by the node's own clock
}

// Called returns when the request was there.
func (e Event) Called() int64 { return e.At - int64(e.Took) }

// Ends returns when the session is over, by the shared clock.
func (e Event) Ends() int64 { return e.At + int64(e.Left) }

// Move is a transfer of rights. It stands in the fields of an [Event] that only
// tickets need.
type Move struct {
	From, To     uint64 // the first bytes of the nodes' ids
	Places, Rate int64  // all that was ever moved from one to the other
}

// Event returns the event that tells of m, of the kind Gave or Received.
func (m Move) Event(kind Kind, room uint32) Event {
	return Event{Kind: kind, Room: room, Anchor: m.From, Left: time.Duration(m.To), Seq: uint64(m.Places), Visitor: uint64(m.Rate)}
}

// Moved returns the transfer that an event of the kinds Gave and Received is.
func (e Event) Moved() Move {
	return Move{From: e.Anchor, To: uint64(e.Left), Places: int64(e.Seq), Rate: int64(e.Visitor)}
}

// Size is that of an encoded event. It divides the kernel's page, so that a
// process that is killed while it writes leaves whole events.
const Size = 64

// ErrDamaged is what errors about bytes that are no event wrap.
var ErrDamaged = errors.New("record: damaged event")

// Append appends the encoded event.
func (e Event) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, byte(e.Kind), 0, 0, 0)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, e.Room)
	dst = le.AppendUint64(dst, e.Anchor)
	dst = le.AppendUint32(dst, e.Boot)
	dst = le.AppendUint32(dst, e.Block)
	dst = le.AppendUint64(dst, e.Seq)
	dst = le.AppendUint64(dst, e.Visitor)
	dst = le.AppendUint64(dst, uint64(e.At))
	dst = le.AppendUint32(dst, uint32(min(max(e.Took, 0)/time.Microsecond, 1<<32-1)))
	dst = le.AppendUint64(dst, uint64(e.Left))
	return le.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}

// Decode reads an event of Size bytes.
func Decode(b []byte) (Event, error) {
	le := binary.LittleEndian
	if len(b) != Size || crc32.ChecksumIEEE(b[:Size-4]) != le.Uint32(b[Size-4:]) {
		return Event{}, ErrDamaged
	}
	e := Event{
		Kind: Kind(b[0]), Room: le.Uint32(b[4:]), Anchor: le.Uint64(b[8:]),
		Boot: le.Uint32(b[16:]), Block: le.Uint32(b[20:]), Seq: le.Uint64(b[24:]),
		Visitor: le.Uint64(b[32:]), At: int64(le.Uint64(b[40:])),
		Took: time.Duration(le.Uint32(b[48:])) * time.Microsecond, Left: time.Duration(le.Uint64(b[52:])),
	}
	if e.Kind < Entered || e.Kind > Received {
		return Event{}, fmt.Errorf("%w: kind %d", ErrDamaged, e.Kind)
	}
	return e, nil
}
