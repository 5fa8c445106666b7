package node

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// How a node knows that a later start of it has been: its data directory was copied, or rolled back. Each start
// writes into the last-writer map that it was, with a code that only the data directory can make. What else a peer
// says of other starts of this node is not believed: who has the secret of the mesh could say it, and this node
// would stop for good.

const factStart = "start" // start/<node>: the newest start of a node, as it has said

const startSize = 8 + 8 + 16 // boot, a number that no other start has, and the code

// starting is what a node has said of its start.
type starting struct {
	key   []byte // of the data directory; nil: what others say of this node's starts is believed
	says  []byte
	at    uint64 // MapChanges when it was looked at
	found error  // what was found against this node
}

func newStarting(key []byte, self crdt.Incarnation, unique VisitorID) starting {
	says := binary.BigEndian.AppendUint64(nil, self.Boot)
	says = append(says, unique[:8]...)
	return starting{key: key, says: append(says, startCode(key, self.Node, says)...)}
}

func startCode(key []byte, node crdt.NodeID, said []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("start of a node\x00"))
	mac.Write(node[:])
	mac.Write(said)
	return mac.Sum(nil)[:16]
}

// tellStart has it be known that this start is.
func (c *Core) tellStart(now time.Time) {
	if c.start.key != nil {
		c.setFact(nodeKey(factStart, c.self.Node), c.start.says, now)
	}
}

// laterStart returns that there was a start that this node's data directory knows nothing of; nil: none is known.
func (c *Core) laterStart() error {
	s := &c.start
	at := c.replica.MapChanges()
	if at == s.at || s.found != nil {
		return s.found // nearly always: it is asked before each tick
	}
	s.at = at
	said, _, _ := c.replica.Get(nodeKey(factStart, c.self.Node))
	if len(said) != startSize || !hmac.Equal(said[16:], startCode(s.key, c.self.Node, said[:16])) {
		return nil // not this node's
	}
	if boot := binary.BigEndian.Uint64(said); boot > c.self.Boot || boot == c.self.Boot && string(said) != string(s.says) {
		s.found = fmt.Errorf("another process runs or ran as this node with boot number %d, this one has %d: %w", boot, c.self.Boot, ErrCopied)
	}
	return s.found
}
