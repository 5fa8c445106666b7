package crdt

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
)

// NodeID names one node for as long as its data directory lives. It is random;
// the zero value names no node.
type NodeID [16]byte

// nobody is no node. In an LWW it stands for all writers that were dropped; see DropWriter.
var nobody NodeID

// RoomID names one room. A room that is deleted and made again has a new id.
// The zero value names no room.
type RoomID [16]byte

// Incarnation is one start of one node: its id and its boot number, which is
// raised and stored before the node says anything. The zero value names nobody.
type Incarnation struct {
	Node NodeID
	Boot uint64
}

// String returns the id as 32 hexadecimal digits.
func (id NodeID) String() string { return hex.EncodeToString(id[:]) }

// String returns the id as 32 hexadecimal digits.
func (id RoomID) String() string { return hex.EncodeToString(id[:]) }

// String returns the node id and the boot number, joined by a dot.
func (i Incarnation) String() string { return fmt.Sprintf("%s.%d", i.Node, i.Boot) }

// ParseNodeID reads the form that String writes.
func ParseNodeID(s string) (NodeID, error) {
	var id NodeID
	return id, parseID(id[:], s, "node")
}

// ParseRoomID reads the form that String writes.
func ParseRoomID(s string) (RoomID, error) {
	var id RoomID
	return id, parseID(id[:], s, "room")
}

func parseID(dst []byte, s, what string) error {
	if len(s) != 2*len(dst) {
		return fmt.Errorf("%s id %q: want %d hexadecimal digits", what, s, 2*len(dst))
	}
	if _, err := hex.Decode(dst, []byte(s)); err != nil {
		return fmt.Errorf("%s id %q: %w", what, s, err)
	}
	return nil
}

// Compare orders ids by their bytes.
func (id NodeID) Compare(o NodeID) int { return bytes.Compare(id[:], o[:]) }

// Compare orders ids by their bytes.
func (id RoomID) Compare(o RoomID) int { return bytes.Compare(id[:], o[:]) }

// Compare orders by node, then by boot number.
func (i Incarnation) Compare(o Incarnation) int {
	return cmp.Or(i.Node.Compare(o.Node), cmp.Compare(i.Boot, o.Boot))
}
