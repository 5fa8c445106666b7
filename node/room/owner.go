package room

import (
	"encoding/binary"

	"golang.org/x/crypto/blake2b"

	"github.com/ropeline/ropeline/crdt"
)

// Owner returns the node of a site that keeps the table entry of one visitor of
// one room. Nodes that hold the same key and see the same nodes agree, in any
// order of nodes; when one goes, only its own visitors move. The key keeps
// visitors from choosing their owner, and with it from crowding one node. It
// returns the zero id if nodes is empty. A key shall have 32 bytes; a longer one
// is shortened at each call.
func Owner(key []byte, room crdt.RoomID, visitor [16]byte, nodes []crdt.NodeID) crdt.NodeID {
	return Chooser(keyedHash(key, room, visitor)).Of(nodes)
}

// Chooser is what Owner makes of all but the nodes. Who asks again and again for the
// same room need not hash each time.
type Chooser uint64

// NewChooser returns what chooses for a room, and no visitor in particular: as Owner
// does for the zero id.
func NewChooser(key []byte, room crdt.RoomID) Chooser {
	return Chooser(keyedHash(key, room, [16]byte{}))
}

// Of returns the choice among nodes, in any order; the zero id if there are none.
func (c Chooser) Of(nodes []crdt.NodeID) crdt.NodeID {
	var best crdt.NodeID
	var bestScore uint64
	for i, id := range nodes {
		score := mix(uint64(c) ^ fold(id))
		if i == 0 || score > bestScore || score == bestScore && less(id, best) {
			best, bestScore = id, score
		}
	}
	return best
}

// keyedHash hashes exactly one block, so the fixed lengths leave no way to move
// bytes between the fields, and BLAKE2b needs no construction around it to be
// keyed by a prefix.
func keyedHash(key []byte, room crdt.RoomID, visitor [16]byte) uint64 {
	var block [64]byte
	if len(key) > 32 {
		short := blake2b.Sum256(key)
		key = short[:]
	}
	copy(block[:32], key)
	copy(block[32:48], room[:])
	copy(block[48:], visitor[:])
	sum := blake2b.Sum256(block[:])
	return binary.LittleEndian.Uint64(sum[:8])
}

// fold shortens an id that is random already.
func fold(id [16]byte) uint64 {
	return mix(binary.LittleEndian.Uint64(id[:8])) ^ binary.LittleEndian.Uint64(id[8:])
}

// mix is the finalizer of SplitMix64: every bit of x moves every bit of the
// result.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func less(a, b crdt.NodeID) bool { return string(a[:]) < string(b[:]) }
