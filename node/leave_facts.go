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
// So it stays until another one, that stays itself, has all that on its disk. What replicas
// tell each other says what is known, and not what is on a disk, hence the question.

// keepersAsked is how many nodes are asked at a time.
const keepersAsked = 4

// askKeepers asks others, in turn, whether they know all that this node knows.
func (c *Core) askKeepers(now time.Time) []Message {
	l := &c.leave
	if now.Sub(l.asked) < heirAnswers && !now.Before(l.asked) {
		return nil
	}
	l.asked = now
	payload := encodeKnown(c.tellable(), c.self.Node)
	var out []Message
	for i := range c.peers {
		p := c.peers[(i+l.turn)%len(c.peers)]
		if len(out) < keepersAsked && p.ID != c.self.Node && !c.facts.gone(p.ID) {
			out = append(out, c.message(p.ID, kindKnown, payload))
		}
	}
	l.turn++
	return out
}

// tellable returns up to where this node knows the writers of which something is left to be told, and
// itself: of others nobody has to know.
func (c *Core) tellable() crdt.LWWDigest {
	all := c.facts.replica.MapDigest()
	known := crdt.LWWDigest{}
	for writer := range c.facts.replica.Tellers() {
		known[writer] = all[writer]
	}
	if n := all[c.self.Node]; n > 0 {
		known[c.self.Node] = n
	}
	return known
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

// takeKept notes that another node knows all.
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
	maxKnown     = 8192                   // entries, so that a message holds them
)

// encodeKnown writes a version, and of each writer its id and the stamp up to which all
// of it is known: self, who may be the only one to know what it wrote, and then the others
// in order. Of a mesh that has had more nodes than maxKnown the last ones are left out, and
// not asked for.
func encodeKnown(known crdt.LWWDigest, self crdt.NodeID) []byte {
	writers := slices.SortedFunc(maps.Keys(known), compareNodes)
	if i := slices.Index(writers, self); i > 0 {
		writers = slices.Insert(slices.Delete(writers, i, i+1), 0, self)
	}
	writers = writers[:min(len(writers), maxKnown)]
	out := make([]byte, 1, 1+len(writers)*knownSize)
	out[0] = knownVersion
	for _, id := range writers {
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
