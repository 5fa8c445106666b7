package node

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
)

// What nodes refuse of each other. Whoever refuses a message tells its sender, so that both ends
// show it: a node whose clock is ahead is believed by nobody, and would not know.

const (
	refusalEvery = 10 * time.Second // the sender is told no more often
	refusalShown = 10 * time.Minute // after the last one
	refusalsKept = 1024             // peers; whoever has the secret of the mesh can go by any number of ids

	refusalVersion = 1
)

// A reason is why a message is refused.
type reason uint64

const (
	reasonMalformed reason = iota
	reasonClock
	reasonForged
	reasons
)

func (r reason) String() string {
	return [reasons]string{"malformed", "clock", "not the sender's to say"}[r]
}

func reasonOf(err error) reason {
	switch {
	case errors.Is(err, crdt.ErrAhead):
		return reasonClock
	case errors.Is(err, replica.ErrForged):
		return reasonForged
	}
	return reasonMalformed
}

// remedy is what the log says of a reason.
func (r reason) remedy() string {
	return [reasons]string{
		"the two run versions that do not understand each other, or one is no node of this mesh: compare version in the status of both",
		"the clock of one of the two is wrong: set it (chronyc tracking, timedatectl) and restart ropeline there",
		"the peer says what only another node may say: if it goes on, replace the secret of the mesh",
	}[r]
}

// PeerRefusalStatus says that messages from one node to another are refused.
type PeerRefusalStatus struct {
	Reason string    `json:"reason"` // of the last: "clock", "malformed" or "not the sender's to say"
	Count  uint64    `json:"count"`  // since ten minutes passed without any
	At     time.Time `json:"at"`     // when this node refused the last, or was told of it
}

// refusal is what became of messages in one direction. The zero value: all were taken.
type refusal struct {
	reason reason
	count  uint64
	at     time.Time

	logged   uint64 // count, when the log was last told
	loggedAt time.Time
}

func (r *refusal) status() *PeerRefusalStatus {
	if r.count == 0 {
		return nil
	}
	return &PeerRefusalStatus{Reason: r.reason.String(), Count: r.count, At: r.at.UTC()}
}

// refusedPeer is a peer of which messages are refused, or that refuses this node's.
type refusedPeer struct {
	here  refusal // this node refuses the peer's messages
	there refusal // the peer refuses this node's
	told  time.Time
}

// refusals are known by peer.
type refusals struct {
	total atomic.Uint64 // messages that made no sense, or were not the sender's to say

	mu sync.Mutex // guards the following; Status reads it
	by map[crdt.NodeID]*refusedPeer
}

// of returns what is known of a peer, which the caller may change while it holds mu; nil: nothing, and there is no room for more.
func (r *refusals) of(id crdt.NodeID) *refusedPeer {
	p := r.by[id]
	if p == nil && len(r.by) < refusalsKept {
		if r.by == nil {
			r.by = map[crdt.NodeID]*refusedPeer{}
		}
		p = &refusedPeer{}
		r.by[id] = p
	}
	return p
}

// refuse notes that a message was refused, and returns what its sender is to be told.
func (c *Core) refuse(from replica.Peer, kind uint8, why error, now time.Time) []Message {
	c.refusals.total.Add(1)
	if is, member := c.peers.Find(from.ID); from.ID == c.self.Node || member && from.Boot < is.Boot {
		return nil // what an earlier start has sent is no fault of this one
	}
	c.refusals.mu.Lock()
	defer c.refusals.mu.Unlock()
	p := c.refusals.of(from.ID)
	if p == nil {
		return nil
	}
	p.here.reason, p.here.at = reasonOf(why), now
	p.here.count++
	if kind == kindRefused || now.Sub(p.told) < refusalEvery {
		return nil // two nodes that do not understand each other would tell each other without an end
	}
	p.told = now
	return []Message{{To: from.ID, Kind: kindRefused, Payload: encodeRefusal(p.here.reason, p.here.count)}}
}

// takeRefusal takes a peer's word that it refuses what this node says.
func (c *Core) takeRefusal(from replica.Peer, payload []byte, now time.Time) error {
	reason, count, err := decodeRefusal(payload)
	if err != nil {
		return err
	}
	c.refusals.mu.Lock()
	defer c.refusals.mu.Unlock()
	if p := c.refusals.of(from.ID); p != nil {
		if count < p.there.count {
			p.there.logged = 0 // it has begun to count again
		}
		p.there.reason, p.there.count, p.there.at = reason, count, now
	}
	return nil
}

// forget drops what has been over for a while.
func (r *refusals) forget(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.by, func(_ crdt.NodeID, p *refusedPeer) bool {
		for _, side := range []*refusal{&p.here, &p.there} {
			if now.Sub(side.at) >= refusalShown {
				*side = refusal{}
			}
		}
		return p.here.count == 0 && p.there.count == 0
	})
}

// status returns what is refused of a peer, and what it refuses; nil: nothing.
func (r *refusals) status(id crdt.NodeID) (here, there *PeerRefusalStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.by[id]; p != nil {
		return p.here.status(), p.there.status()
	}
	return nil, nil
}

// refusalNews is what the log is to be told.
type refusalNews struct {
	peer   crdt.NodeID
	here   bool // this node refuses; else the peer does
	reason reason
	count  uint64
}

// refusalLogged is how often the log is told of a peer and a direction.
const refusalLogged = time.Minute

// news returns what has been refused since the log was told, in order of peers.
func (r *refusals) news(now time.Time) (all []refusalNews) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.by {
		for _, side := range []*refusal{&p.here, &p.there} {
			if side.count > side.logged && now.Sub(side.loggedAt) >= refusalLogged {
				side.logged, side.loggedAt = side.count, now
				all = append(all, refusalNews{id, side == &p.here, side.reason, side.count})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b refusalNews) int { return compareNodes(a.peer, b.peer) })
	return all
}

// sayRefusals tells the log of them.
func (n *Node) sayRefusals(now time.Time) {
	for _, x := range n.core.refusals.news(now) {
		what := "a peer refuses messages of this node: "
		if x.here {
			what = "messages of a peer are refused: "
		}
		n.log.Warn(what+x.reason.remedy(), "peer", x.peer.String(), "name", cmp.Or(n.namesOf([]crdt.NodeID{x.peer})...), "reason", x.reason.String(), "count", x.count)
	}
}

func encodeRefusal(r reason, count uint64) []byte {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	e.EncodeArrayLen(3)
	e.EncodeUint(refusalVersion)
	e.EncodeUint(uint64(r))
	e.EncodeUint(count)
	return buf.Bytes()
}

func decodeRefusal(msg []byte) (reason, uint64, error) {
	r := bytes.NewReader(msg)
	d := msgpack.NewDecoder(r)
	if err := expectHeader(d, 3, refusalVersion); err != nil {
		return 0, 0, err
	}
	why, err := d.DecodeUint64()
	if err != nil || reason(why) >= reasons {
		return 0, 0, errMalformed
	}
	count, err := d.DecodeUint64()
	if err != nil || count == 0 || r.Len() > 0 {
		return 0, 0, errMalformed
	}
	return reason(why), count, nil
}
