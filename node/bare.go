package node

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// Bare is as much of a node as has a part in the limit of one room: its ledger, and what it
// makes of the facts. It runs the code of Core and has no requests, counts and replication,
// so that a search can go on from one state in every way; see bench/explore.
type Bare struct {
	core    *Core
	room    *Room
	was     map[string][]byte
	halfway bool
}

// BareState is all that a Bare goes by, and what is left when it has done something.
type BareState struct {
	Self   crdt.Incarnation
	Room   crdt.RoomID
	Peers  []crdt.NodeID  // that are members
	Rights *ticket.Rights // which changes
	Facts  map[string][]byte

	Session  time.Duration
	Heir     crdt.NodeID // of a node that leaves; zero: it does not
	Told     bool        // it has told that it has left
	Halfway  bool        // there is another room, of which nothing is ever handed over
	LeaveOut ticket.Rules
}

// Kinds of messages that a Bare takes and sends.
const (
	BareTransfer = kindTransfer
	BareReceived = kindReceived
	BareHandover = kindHandover
)

// bareSite is where all of them are. Rights go by no site.
const bareSite = "site"

// NewBare returns a node in a state, at now.
func NewBare(s BareState, now time.Time) (*Bare, error) {
	c := &Core{self: s.Self, site: bareSite, rooms: map[crdt.RoomID]*Room{}}
	c.leaveOut = s.LeaveOut | ticket.MintedWithGifts // facts are set here as if this node had written all of them
	c.health.clockOK.Store(true)
	c.open.Store(true)
	var err error
	if c.replica, err = replica.New(replica.Config{Self: s.Self, Site: bareSite, Rand: rand.New(rand.NewPCG(1, 1))}); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	c.facts = newFacts(c.replica, c.leaveOut)
	for _, key := range slices.Sorted(maps.Keys(s.Facts)) {
		if err := c.facts.set(key, s.Facts[key], now); err != nil {
			return nil, err
		}
	}
	c.facts.update()
	for _, id := range s.Peers {
		c.peers = append(c.peers, replica.Peer{ID: id, Boot: 1, Site: bareSite, Ready: true})
	}
	slices.SortFunc(c.peers, func(a, b replica.Peer) int { return compareNodes(a.ID, b.ID) })
	limits := c.facts.room(s.Room).limits.Max(ticket.Amount{Places: 1, Rate: 1})
	r := newRoom(c, room.Settings{
		ID: s.Room, Name: "room", Path: "/", Policy: room.Escrow, QueueingMethod: room.FIFO, SessionDuration: s.Session,
		TotalActiveUsers: int(limits.Places), NewUsersPerMinute: int(limits.Rate),
	}.WithDefaults())
	r.rights = s.Rights
	r.configured = limits
	c.rooms[s.Room], c.order = r, []*Room{r}
	if (s.Heir != crdt.NodeID{}) {
		c.leave.on, c.leave.heir = true, s.Heir
	}
	if s.Told {
		c.leave.told = now
	}
	return &Bare{c, r, s.Facts, s.Halfway}, nil
}

// Step does what is due, as Core.Tick does, and returns what is to be sent.
func (b *Bare) Step(now time.Time) []Message {
	c, r := b.core, b.room
	r.mu.Lock()
	r.rights.Expire(now)
	r.lasts = r.lasting()
	r.mu.Unlock()
	if !c.facts.room(r.id).kept.has(c.self.Node) {
		r.tell(now)
		c.facts.update()
	}
	r.mint(now)
	c.facts.update()
	c.recovered = time.Time{}
	c.recoverTheDead(now)
	c.facts.update()
	out := r.tickRights(now)
	if b.halfway && c.leave.on {
		r.handOver(&out, now)
		return out
	}
	return append(out, c.handOver(now)...)
}

// Receive takes a message of another node.
func (b *Bare) Receive(from crdt.NodeID, kind uint8, payload []byte, now time.Time) []Message {
	out, err := b.core.receive(replica.Peer{ID: from, Boot: 1, Site: bareSite, Ready: true}, kind, payload, now)
	if err != nil {
		return nil // it is refused, as in a node
	}
	return out
}

// Leave has the node pass on all it has to an heir that has agreed.
func (b *Bare) Leave(heir crdt.NodeID, now time.Time) {
	b.core.leave.on, b.core.leave.heir = true, heir
	b.room.leave(now)
}

// SetLimits has an operator change the limits here.
func (b *Bare) SetLimits(a ticket.Amount, now time.Time) {
	b.core.setFact(roomKey(factLimits, b.room.id), encodeAmount(a), now)
}

// Found has the node be the one that makes the rights of the room.
func (b *Bare) Found(now time.Time) {
	b.core.setFact(roomKey(factMinter, b.room.id), b.core.self.Node[:], now)
}

// Keeps has another node have a ledger of some other room.
func (b *Bare) Keeps(other crdt.RoomID, id crdt.NodeID, now time.Time) {
	b.core.setFact(roomNodeKey(factTold, other, id), said{}.encode(), now)
}

// DeclareDead has an operator say here that another node is lost.
func (b *Bare) DeclareDead(id crdt.NodeID, now time.Time) error {
	b.core.facts.update()
	_, member := b.core.peers.Find(id)
	if member || b.core.facts.hasLeft(id) && !b.core.facts.leftBehind(id) {
		return ErrAlive
	}
	return b.core.facts.set(nodeKey(factDead, id)+"/"+b.core.self.Node.String(), []byte{factVersion}, now)
}

// Limits returns the limits as this node knows them.
func (b *Bare) Limits() ticket.Amount { return b.core.facts.room(b.room.id).limits }

// Changed returns the facts that the node has set since it was made, and whether it has
// told that it has left.
func (b *Bare) Changed() (set map[string][]byte, told bool) {
	set = map[string][]byte{}
	for key := range b.core.replica.Stamps() {
		if v, _, ok := b.core.replica.Get(key); ok && !bytes.Equal(v, b.was[key]) {
			set[key] = v
		}
	}
	return set, !b.core.leave.told.IsZero()
}
