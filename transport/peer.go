package transport

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
)

// PeerID names a node for as long as its data directory lives. The zero value
// names nobody.
type PeerID [16]byte

// ParsePeerID reads the 32 hexadecimal digits that [PeerID.String] writes.
func ParsePeerID(s string) (PeerID, error) {
	var id PeerID
	if len(s) != hex.EncodedLen(len(id)) {
		return PeerID{}, fmt.Errorf("peer id has %d characters, want %d", len(s), hex.EncodedLen(len(id)))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return PeerID{}, fmt.Errorf("peer id %q: %w", s, err)
	}
	if id.IsZero() {
		return PeerID{}, errors.New("peer id is all zeros")
	}
	return id, nil
}

// MeshID names a mesh, which is a set of nodes with one state and one capacity.
type MeshID [16]byte

// String returns the id as 32 lower-case hexadecimal digits.
func (id MeshID) String() string { return hex.EncodeToString(id[:]) }

// String returns the id as 32 lower-case hexadecimal digits.
func (id PeerID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether id names nobody.
func (id PeerID) IsZero() bool { return id == PeerID{} }

// Short returns the first eight digits, enough for a log line.
func (id PeerID) Short() string { return hex.EncodeToString(id[:4]) }

// State says what the mesh believes about a peer.
type State uint8

const (
	// Alive peers answered a direct call in their present incarnation.
	Alive State = iota + 1
	// Failed peers answer neither gossip nor a direct call. They are tried
	// again every few seconds.
	Failed
	// Left peers said that they were going.
	Left
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case Alive:
		return "alive"
	case Failed:
		return "failed"
	case Left:
		return "left"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Peer is another node, as last known. ID and Site are proven by its
// certificate; Name, Boot and Ready are what it says about itself.
type Peer struct {
	ID    PeerID
	Name  string // chosen by the operator; no two living nodes have the same
	Site  string
	Boot  uint64         // counts the starts of that node; ID and Boot make an incarnation
	Ready bool           // the node takes traffic
	Addr  netip.AddrPort // where it is reached; may change
	State State

	Pending bool // of no mesh yet: it has no state, and gets none
}

// EventType says what happened to a peer.
type EventType uint8

const (
	// Join: a peer that was unknown, or had left, is there.
	Join EventType = iota + 1
	// Leave: the peer said that it is going.
	Leave
	// Fail: the peer is gone without a word, and a direct call confirmed it.
	Fail
	// Rejoin: a failed peer is back, or a known one is back as a newer
	// incarnation. Peer.Boot tells which.
	Rejoin
	// Update: name, readiness or address of a living peer changed.
	Update
)

// String returns the type in lower case.
func (t EventType) String() string {
	switch t {
	case Join:
		return "join"
	case Leave:
		return "leave"
	case Fail:
		return "fail"
	case Rejoin:
		return "rejoin"
	case Update:
		return "update"
	}
	return fmt.Sprintf("event(%d)", uint8(t))
}

// Event is one change in the membership, with the peer as it is afterwards.
type Event struct {
	Type EventType
	Peer Peer
}
