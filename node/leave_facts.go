package node

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
)

// What a node knows when it leaves: it may be the only one that has been told of a room
// that is deleted, or of a node that is dead, and whoever said so was told that it holds.
// So it stays until another one, that stays itself, has all that on its disk.

// keepersAsked is how many nodes are asked at a time.
const keepersAsked = 4

// askKeepers asks others whether they know all that this node knows: its heir first, and
// then whoever is there.
func (c *Core) askKeepers(now time.Time) []Message {
	l := &c.leave
	if now.Sub(l.asked) < heirAnswers && !now.Before(l.asked) {
		return nil
	}
	l.asked = now
	payload := encodeKnown(c.facts.replica.MapDigest())
	heir := c.facts.heir(l.heir)
	var out []Message
	for i := range c.peers {
		// Others in turn, in case some of them do not answer.
		p := c.peers[(i+l.turn)%len(c.peers)]
		if len(out) < keepersAsked && p.ID != c.self.Node && (p.ID == heir || !c.facts.gone(p.ID)) {
			out = append(out, c.message(p.ID, kindKnown, payload))
		}
	}
	l.turn++
	return out
}

// takeKnown answers a node that leaves if all that it knows is known here, and on disk.
// Whoever leaves itself does not answer.
func (c *Core) takeKnown(from replica.Peer, payload []byte) ([]Message, error) {
	known, err := decodeKnown(payload)
	if err != nil {
		return nil, err
	}
	here := c.facts.replica.MapDigest()
	for id, stamp := range known {
		if here[id] < stamp {
			return nil, nil // it asks again
		}
	}
	if !c.open.Load() || c.leave.on || !c.Noted(c.Told()) {
		return nil, nil
	}
	return []Message{c.message(from.ID, kindKept, []byte{knownVersion})}, nil
}

// takeKept notes that another node knows all. What has been written since the question
// has been told to all when the rights were.
func (c *Core) takeKept(payload []byte) ([]Message, error) {
	if len(payload) != 1 || payload[0] != knownVersion {
		return nil, fmt.Errorf("%w: whether all is known", errMalformed)
	}
	c.leave.kept = c.leave.on
	return nil, nil
}

const (
	knownVersion = 1
	knownSize    = len(crdt.NodeID{}) + 8 // of an entry
	maxKnown     = 8192                   // entries
)

// encodeKnown writes a version, and of each writer its id and the stamp up to which all
// of it is known, in order.
func encodeKnown(known crdt.LWWDigest) []byte {
	out := make([]byte, 1, 1+len(known)*knownSize)
	out[0] = knownVersion
	for i, id := range slices.SortedFunc(maps.Keys(known), compareNodes) {
		if i == maxKnown {
			break
		}
		out = binary.BigEndian.AppendUint64(append(out, id[:]...), known[id])
	}
	return out
}

func decodeKnown(payload []byte) (crdt.LWWDigest, error) {
	if len(payload) == 0 || payload[0] != knownVersion || (len(payload)-1)%knownSize != 0 || len(payload) > 1+maxKnown*knownSize {
		return nil, fmt.Errorf("%w: what a node knows", errMalformed)
	}
	known := crdt.LWWDigest{}
	for rest := payload[1:]; len(rest) > 0; rest = rest[knownSize:] {
		id := crdt.NodeID(rest[:len(crdt.NodeID{})])
		known[id] = binary.BigEndian.Uint64(rest[len(id):])
	}
	return known, nil
}
