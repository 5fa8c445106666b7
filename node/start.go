package node

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// How a node knows that a later start of it has been, or one that has told more: its data directory was copied, or
// rolled back. Each start writes into the last-writer map that it was, with a code that only the data directory can
// make. So it does with what it says of nodes that are gone (closings.go): by that others forget what they knew of it, also
// that it had given something to one of these. What else a peer says of other starts of this node is not believed: who has
// the secret of the mesh could say it, and this node would stop for good.

const factStart = "start" // start/<node>: the newest start of a node, as it has said

const startSize = 8 + 8 // boot, and a number that no other start has

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
	return starting{key: key, says: withCode(key, nodeKey(factStart, self.Node), says)}
}

const codeSize = 16

// withCode returns what a node says under a key of the map, with the code of that.
func withCode(secret []byte, key string, said []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(key + "\x00"))
	mac.Write(said)
	return append(slices.Clip(said), mac.Sum(nil)[:codeSize]...)
}

// withoutCode returns what a value says; false: who has the secret has not said it.
func withoutCode(secret []byte, key string, value []byte) (said []byte, ok bool) {
	if len(value) < codeSize {
		return nil, false
	}
	said = value[:len(value)-codeSize]
	return said, hmac.Equal(value, withCode(secret, key, said))
}

// tellStart has it be known that this start is.
func (c *Core) tellStart(now time.Time) {
	if c.start.key != nil {
		c.setFact(nodeKey(factStart, c.self.Node), c.start.says, now)
	}
}

// laterStart returns that there was a start that this node's data directory knows nothing of, or one that has told
// what it does not know; nil: none is known.
func (c *Core) laterStart() error {
	s := &c.start
	at := c.replica.MapChanges()
	if at == s.at || s.found != nil {
		return s.found // nearly always: it is asked before each tick
	}
	self := c.self.Node.String()
	for key := range c.replica.MapChanged(s.at) {
		if strings.HasPrefix(key, factStart+"/") && strings.HasSuffix(key, self) {
			s.found = cmp.Or(s.found, c.laterBoot(key))
		} else if strings.HasPrefix(key, factClosed+"/") && strings.HasSuffix(key, self) {
			s.found = cmp.Or(s.found, c.toldMore(key))
		}
	}
	s.at = at
	return s.found
}

func (c *Core) laterBoot(key string) error {
	value, _, _ := c.replica.Get(key)
	said, ok := withoutCode(c.start.key, key, value)
	if !ok || len(said) != startSize {
		return nil // not this node's
	}
	if boot := binary.BigEndian.Uint64(said); boot > c.self.Boot || boot == c.self.Boot && string(value) != string(c.start.says) {
		return fmt.Errorf("another process runs or ran as this node with boot number %d, this one has %d: %w", boot, c.self.Boot, ErrCopied)
	}
	return nil
}

// toldMore returns that this node has told of more closed accounts than its ledger has; nil: it has not, or has none any more.
func (c *Core) toldMore(key string) error {
	value, _, _ := c.replica.Get(key)
	said, ok := withoutCode(c.start.key, key, value)
	told, err := ticket.DecodeClosings(said)
	if !ok || err != nil {
		return nil // not this node's
	}
	_, name, _ := strings.Cut(key, "/")
	name, _, _ = strings.Cut(name, "/")
	room, err := crdt.ParseRoomID(name)
	if err != nil || c.facts.room(room).retired {
		return nil
	}
	if has, any := c.closedSteps(room); any && has < told.Steps {
		return fmt.Errorf("this node has closed accounts of room %s in %d steps, its data directory has %d of them: %w", room, told.Steps, has, ErrCopied)
	}
	return nil
}

// closedSteps returns how often this node has closed or folded an account of a room, as is on its disk; false: it has no ledger of it.
func (c *Core) closedSteps(id crdt.RoomID) (int64, bool) {
	if r := c.rooms[id]; r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.rights != nil {
			return r.rights.Closings().Steps, true
		}
	}
	return ticket.ClosedSteps(c.storing.found[id])
}
