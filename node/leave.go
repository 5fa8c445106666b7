package node

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// How a node goes for good, with its rights passed on or left behind.

// leaveState is where this node's own leaving stands.
type leaveState struct {
	seeking seeking

	on   bool
	heir crdt.NodeID
	told time.Time // when this node told all that it has left; zero: not yet
	done bool      // the heir has all

	kept  bool      // another node knows all that this one does, and stays
	asked time.Time // when others were asked that last
	turn  int       // how often
}

// toldFor is how long a node stays after it has told that it has left, so that
// others have heard: its heir may be dead by then, and nobody else would say so.
const toldFor = 2 * time.Second

// ErrNoHeir says that no other node is there to take this one's rights.
var ErrNoHeir = errors.New("no other node is there to take over")

// Leave has this node look for another one that takes over, of its own site if there
// is one, then give no ticket any more and pass all its rights on. It takes a few
// round trips and writes; Left tells when all is done and the process may end. Its
// data is of no use after that: a node that comes back has to be a new one. Visitors
// whose anchor it was go on with the heir. As long as no node agrees to take over,
// since all others leave as well or do not answer, this one goes on as it was and
// asks again.
func (c *Core) Leave(now time.Time) error {
	if c.leave.on {
		return nil
	}
	if _, ok := c.chooseHeir(nil); !ok {
		return fmt.Errorf("leave: %w", ErrNoHeir)
	}
	for _, r := range c.order {
		if err := r.canLeave(); err != nil {
			return fmt.Errorf("leave: %w", err)
		}
	}
	c.leave.seeking.on = true
	return nil
}

// ledgerMost is how large a ledger may be of a node that leaves: it is told as one fact, and
// may grow until then.
const ledgerMost = crdt.MaxValue * 7 / 8

// canLeave returns why a node cannot leave a room: nobody could be told what it had.
func (r *Room) canLeave() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rights == nil {
		return nil
	}
	if n := r.rights.LedgerSize(); n > ledgerMost {
		return fmt.Errorf("its ledger of room %s has %d bytes, of all the nodes that have left to it, and %d are allowed: have it go on, or stop it for good and declare it dead",
			r.id, n, ledgerMost)
	}
	return nil
}

func (c *Core) leaveTo(heir crdt.NodeID, now time.Time) []Message {
	c.leave.seeking.on = false
	c.leave.on, c.leave.heir = true, heir
	c.health.leaving.Store(true)
	out := c.stopIssuing(now)
	for _, r := range c.order {
		if r.id != c.mesh.room {
			r.leave(now)
		}
	}
	return out
}

// goOnLeaving has a node that was leaving when it stopped go on with it: what it has
// passed on it has for good, and to one heir. Any other may have agreed to be an heir
// just before it stopped. It takes no visitors any more, since it takes up no rooms and hears of
// no settings: it would let everybody pass whose room it does not have.
func (c *Core) goOnLeaving(now time.Time) {
	c.leave.seeking.stays = now.Add(heirStays)
	for _, r := range c.order {
		r.mu.Lock()
		heir, is := r.rights.Leaving()
		r.mu.Unlock()
		if is {
			c.health.resumed.Store(true)
			c.takeNothingUp(now)
			c.leaveTo(heir, now) // it leads nothing yet, and has nothing to say
			return
		}
	}
}

// takeNothingUp drops the rooms of which this node never had a ledger, and has come to know while it left:
// others may have said by now that it has left them, and to whom.
func (c *Core) takeNothingUp(now time.Time) {
	rooms := maps.Clone(c.rooms)
	for _, r := range c.order {
		r.mu.Lock()
		none := r.rights != nil && len(r.rights.Stored()) == 0
		r.mu.Unlock()
		if none && r.id != c.mesh.room && !c.facts.room(r.id).kept.has(c.self.Node) {
			delete(rooms, r.id)
		}
	}
	if !maps.Equal(rooms, c.rooms) {
		c.setRooms(rooms)
	}
}

// leave freezes a room's rights, unless writes or tokens are under way: then it
// does so a tick later.
func (r *Room) leave(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rights == nil || !r.hasLedger() {
		return
	}
	if _, is := r.rights.Leaving(); !is && r.rights.Leave(r.core.leave.heir, now) == nil {
		r.core.storing.touch(r)
	}
}

// leaving reports whether this node has passed its rights to the room on. Any goroutine
// may call it.
func (r *Room) leaving() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rights == nil {
		return false
	}
	_, is := r.rights.Leaving()
	return is
}

// owns is hasLedger for whoever does not hold mu.
func (r *Room) owns() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasLedger()
}

// hasLedger reports whether there is anything of a room to pass on: others wait for
// the last ledger of whoever has ever kept one. It is called with mu held.
func (r *Room) hasLedger() bool {
	if r.rights.Retired() {
		return false
	}
	return r.escrow() || !r.rights.Held().IsZero() || r.core.facts.room(r.id).kept.has(r.core.self.Node) ||
		r.rights.TakesOver() || len(r.rights.AnswersFor()) > 0
}

// toldAll reports whether this node has told all that it has left. It takes no order any more then:
// who has the rest of what it knows may have said so already, and nobody would hear of it.
func (c *Core) toldAll() bool { return !c.leave.told.IsZero() }

// Left reports whether this node has left: its heir answers for it.
func (c *Core) Left() bool { return c.leave.done }

// handOver returns what goes to this node's heir now, and sees whether all has
// arrived.
func (c *Core) handOver(now time.Time) (out []Message) {
	if !c.leave.on || c.leave.done {
		return c.seekHeir(now)
	}
	if c.heirLost() {
		c.leave.seeking.on = true
		out = c.seekHeir(now) // what this node has not passed on yet goes to another one
	}
	done := true
	for _, r := range c.order {
		if r.id != c.mesh.room {
			done = r.handOver(&out, now) && done
		}
	}
	if own := c.rooms[c.mesh.room]; done && own != nil {
		done = own.handOver(&out, now) // last: see meshing.go
	}
	if done && c.leave.told.IsZero() {
		heir := c.lastHeir()
		c.setFact(nodeKey(factLeft, c.self.Node), heir[:], now)
		c.setFact(nodeKey(factOver, c.self.Node), []byte{factVersion}, now)
		c.leave.told = now
	}
	if done && now.Sub(c.leave.told) >= toldFor && !c.leave.kept {
		out = append(out, c.askKeepers(now)...)
	}
	if done {
		pieces, passed := c.passPast(now)
		out, done = append(out, pieces...), passed
	}
	c.leave.done = done && now.Sub(c.leave.told) >= toldFor && c.leave.kept
	return out
}

// lastHeir returns whom this node names as its heir once it has left all rooms, which it may have left to
// several: whoever has said so already, or else one that is not lost.
func (c *Core) lastHeir() crdt.NodeID {
	if heir, told := c.facts.left[c.self.Node]; told {
		return heir
	}
	last := c.leave.heir
	for _, r := range c.order {
		if _, lost := c.facts.dead[last]; !lost {
			break
		}
		r.mu.Lock()
		if heir, is := r.rights.Leaving(); is {
			last = heir
		}
		r.mu.Unlock()
	}
	return last
}

// heirLost reports whether there is a room that this node has not passed on, and whose heir is lost: the
// node's, or the one to which that has left the room.
func (c *Core) heirLost() bool {
	return slices.ContainsFunc(c.order, func(r *Room) bool {
		if _, lost := c.facts.dead[c.facts.keeper(c.facts.room(r.id), c.leave.heir)]; !lost {
			return false
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.rights == nil || !r.hasLedger() {
			return false
		}
		_, leaving := r.rights.Leaving()
		return !leaving
	})
}

// handOver appends what of a room goes to the heir now, and reports whether that has it all.
func (r *Room) handOver(out *[]Message, now time.Time) (done bool) {
	c := r.core
	r.leave(now)
	r.mu.Lock()
	if r.rights == nil || !r.hasLedger() {
		r.mu.Unlock()
		return true
	}
	final, left := r.rights.Left()
	r.mu.Unlock()
	if left {
		r.tellFinal(final, now)
	}
	if h, due := r.handoverDue(now); due {
		*out = append(*out, c.message(r.heir(h.Final.Heir), kindHandover, ticket.AppendHandover(nil, h)))
	}
	return left
}

// takeHandover takes over from a node that leaves.
func (c *Core) takeHandover(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	h, err := ticket.DecodeHandover(payload)
	if err != nil {
		return nil, err
	}
	r := c.roused(h.Room)
	if r == nil {
		return nil, nil // see Core.keepRooms
	}
	if h.Final.Node != from.ID {
		return nil, fmt.Errorf("%w: hand-over of room %s by %s", errMalformed, h.Room, h.Final.Node)
	}
	_, known := c.facts.sites[from.ID]
	if !known || !c.open.Load() || c.leave.on || !r.answersFor(h.Final.Heir) {
		return nil, nil // it comes again, perhaps to another
	}
	c.takeMinted(h.Room, h.Minted, now)
	if r = c.roused(h.Room); r == nil {
		return nil, nil // it is gone by what came with it
	}
	if c.facts.hasLeft(h.Final.Heir) {
		r.inheritNothing(h.Final.Heir, now)
	}
	r.inherit(h.Final, now)
	return nil, nil
}

// inherit takes what a node passes on, and has all know its last ledger: whoever is declared
// dead has left the rooms in which that is known, and so it is known only where somebody takes
// over by it.
func (r *Room) inherit(final ticket.Final, now time.Time) {
	c := r.core
	r.gets(now)
	r.mu.Lock()
	r.refuseRecovered(c.facts.room(r.id), now) // before anything can come for the leaver
	taken := r.rights.TakeOver(ticket.Handover{Room: r.id, Final: final}, now)
	r.mu.Unlock()
	if taken {
		r.tellFinal(final, now)
		c.storing.touch(r)
	}
}

// inheritNothing takes over from a node that had left to this one before it had the room: it had nothing in it
// to pass on. What comes to it all the same is this node's.
func (r *Room) inheritNothing(of crdt.NodeID, now time.Time) {
	if self := r.core.self.Node; r.core.facts.neverHad(r.id, of, self) {
		r.inherit(ticket.Final{Node: of, Heir: self, Minting: ticket.Minting{Known: true}}, now)
	}
}

// gets has all know that this node has a ledger of a room before it has, where rights do not limit the room here.
func (r *Room) gets(now time.Time) {
	if c := r.core; !r.escrow() && !c.facts.room(r.id).kept.has(c.self.Node) {
		r.tellLedger(now)
	}
}

// tellFinal has all know a last ledger, and before it what was minted: what the leaver gave somebody
// that never arrived is taken by it.
func (r *Room) tellFinal(final ticket.Final, now time.Time) {
	key, value := roomNodeKey(factFinal, r.id, final.Node), ticket.AppendFinal(nil, final)
	if known, _, _ := r.core.replica.Get(key); bytes.Equal(known, value) {
		return
	}
	r.tellKnew(final.Node, mintedLately, now)
	r.core.setFact(key, value, now)
}

// announceHeirs tells all that this node answers for others. It is a fact once
// what they passed on is on disk, in all rooms.
func (r *Room) announceHeirs(now time.Time) {
	c := r.core
	var untold []crdt.NodeID
	r.mu.Lock()
	for id := range r.rights.Predecessors() {
		if _, told := c.facts.left[id]; !told {
			untold = append(untold, id)
		}
	}
	var recovered []ticket.Recovery
	if len(untold) > 0 {
		recovered = r.rights.Recovered()
	}
	r.mu.Unlock()
	slices.SortFunc(untold, compareNodes)
	for _, id := range slices.Compact(untold) {
		lost := slices.ContainsFunc(recovered, func(x ticket.Recovery) bool { return x.Dead == id })
		if !lost && c.facts.handedOver(id) {
			c.setFact(nodeKey(factLeft, id), c.self.Node[:], now)
		}
	}
}

// Retire ends a room for good, at every node: nobody is let in, and no right of it is
// ever made or used again. Nodes that do not have the room configured forget it; the
// others keep refusing everybody until they are started without it. The node that
// mints for the mesh and is started with it all the same makes it again, under an id of its
// own; see Core.keepRooms. As long as Noted does not say that it is on disk, a crash may
// undo it.
func (c *Core) Retire(id crdt.RoomID, now time.Time) error {
	if c.rooms[id] == nil && c.facts.rooms[id] == nil {
		return fmt.Errorf("node: retire room %s: %w", id, ErrUnknownRoom)
	}
	if c.toldAll() {
		return fmt.Errorf("node: retire room %s: %w", id, ErrLeaving)
	}
	if err := c.facts.set(roomKey(factRetired, id), []byte{factVersion}, now); err != nil {
		return fmt.Errorf("node: retire room %s: %w", id, err)
	}
	if c.open.Load() {
		c.heedFacts(now)
	}
	return nil
}
