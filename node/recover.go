package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// What becomes of the rights of a node whose disk is lost. An operator says that
// it is dead; all refuse it from then on, for good, and say what they gave it and
// received from it; and one of them, its heir, takes what it must have had.

// recoverInterval is how often the heir of a dead node looks whether all have
// spoken.
const recoverInterval = time.Second

var (
	// ErrAlive says that a node cannot be declared dead, since it lives.
	ErrAlive = errors.New("the node is alive; stop it first, and never start it again")
	// ErrUnknownNode says that no node of that id is known.
	ErrUnknownNode = errors.New("no such node")
)

// DeclareDead says that a node will never run again: its disk is lost, or thrown
// away. Its rights come back once every node that is neither dead nor has left has
// said what it dealt with it, to this node, which becomes its heir; they can be
// used a session later. To declare a node dead that runs on somewhere is the one
// way to break the limit: what it gives out then, somebody else has as well.
//
// As long as Noted does not say that it is on disk, a crash may undo it.
func (c *Core) DeclareDead(id crdt.NodeID, now time.Time) error {
	_, member := c.peers.Find(id)
	_, came := c.facts.came[id]
	known := came || c.knows(id)
	_, declared := c.facts.dead[id]
	if declared {
		_, declared = c.facts.present(noFacts, c.facts.named[id]) // else somebody has to be named who can
	}
	var err error
	switch {
	case !c.open.Load():
		err = ErrNotReady
	case c.toldAll():
		err = ErrLeaving
	case c.facts.hasLeft(id) && !c.facts.leftBehind(id):
		err = fmt.Errorf("it has left, and %s is its heir", c.facts.left[id])
	case declared:
		return nil
	case member || id == c.self.Node:
		err = ErrAlive
	case !known:
		err = ErrUnknownNode
	case id == c.mesh.is.Record.Minter && !c.knowsMesh():
		rec := c.mesh.is.Record
		err = fmt.Errorf("it was to mint the capacity of mesh %s, and this node is none of the bootstrap nodes %v and cannot know whether that mesh was ever complete; declare it dead at one of these", rec.Mesh, rec.Names)
	default:
		c.tellOfMinter(id, now)
		err = c.facts.set(nodeKey(factDead, id)+"/"+c.self.Node.String(), []byte{factVersion}, now)
	}
	if err != nil {
		return fmt.Errorf("declare node %s dead: %w", id, err)
	}
	c.heedFacts(now)
	return nil
}

// HeardOf reports whether this node knows that another one may own rights. A node that
// it has not heard of is asked for no word on the dead: to say that a node is dead is
// for where all are known that run.
func (c *Core) HeardOf(id crdt.NodeID) bool { return c.knows(id) }

// Told returns a number for all that the mesh has been told until now, as far as
// this node knows; Noted reports whether all of that is on disk here.
func (c *Core) Told() uint64 {
	_, now := c.replica.MapParts(c.storing.saved)
	return now
}

// Noted reports whether what a number from Told stands for is on disk.
func (c *Core) Noted(told uint64) bool { return c.storing.saved >= told }

// unrecovered returns, in order, the lost nodes whose rights in a room nobody has,
// and those that have left to one of them. Who has left the room is not lost, whatever an
// operator says: somebody has its rights.
func (f *facts) unrecovered(r *roomFacts) []crdt.NodeID {
	if len(f.dead) == 0 {
		return nil
	}
	in := map[crdt.NodeID]bool{}
	for id := range f.dead {
		_, left := f.leftTo(r, id)
		x, done := r.again[id]
		if _, lost := f.dead[f.keeper(r, x.by)]; !left && (!done || lost) && !r.keptForGood(id) {
			in[id] = true
		}
	}
	left := func(id crdt.NodeID) {
		if in[f.keeper(r, id)] && !r.keptForGood(id) {
			in[id] = true
		}
	}
	for id := range f.left {
		left(id)
	}
	for id := range r.finals {
		left(id)
	}
	for id := range r.inherited {
		left(id)
	}
	return slices.SortedFunc(maps.Keys(in), compareNodes)
}

// recovers returns who recovers the rights of lost nodes in a room: the least of those who
// were named, or whoever answers for it. Where all of these are gone, and those whom
// they named in turn, it is the least of all who are there: whoever was named may
// have been leaving to a node that was lost. Zero: nobody is there.
func (f *facts) recovers(r *roomFacts, dead []crdt.NodeID) crdt.NodeID {
	var named []crdt.NodeID
	for _, id := range dead {
		named = append(named, f.named[id]...)
	}
	least, ok := f.present(r, named)
	if !ok {
		least, _ = f.present(r, slices.Collect(maps.Keys(f.sites)))
	}
	return least
}

// round returns a number that grows with all that recovers and unrecovered go by, and
// is the same wherever the same is known.
func (f *facts) round(r *roomFacts) (n int64) {
	for _, heirs := range f.named {
		n += int64(len(heirs))
	}
	for _, x := range f.forgot {
		n += x.rounds
	}
	known := len(f.sites) // and those that have left, of which no more may be known
	for id := range f.left {
		if _, site := f.sites[id]; !site {
			known++
		}
	}
	return n + int64(known+len(f.left)+len(r.again)+len(r.finals))
}

// present returns the least of those who answer for nodes in a room and are there; ok is
// false if none is.
func (f *facts) present(r *roomFacts, nodes []crdt.NodeID) (least crdt.NodeID, ok bool) {
	for _, id := range nodes {
		if heir := f.heir(r, id); !f.gone(heir) && (!ok || compareNodes(heir, least) < 0) {
			least, ok = heir, true
		}
	}
	return least, ok
}

// recoverTheDead refuses the dead, says what this node has dealt with them, and
// takes the rights of those whose heir it is once all have spoken.
func (c *Core) recoverTheDead(now time.Time) {
	if len(c.facts.dead)+len(c.facts.left) == 0 || now.Sub(c.recovered) < recoverInterval && !now.Before(c.recovered) {
		return
	}
	c.recovered = now
	for _, r := range c.order {
		if r.hasRights() && !c.facts.room(r.id).retired {
			r.recover(now)
		}
	}
}

func wordKey(room crdt.RoomID, dead, by crdt.NodeID) string {
	return roomNodeKey(factWord, room, dead) + "/" + by.String()
}

// recover does what recoverTheDead promises, in one room. Where nothing was left to do, it is not asked
// again before something else is known.
func (r *Room) recover(now time.Time) {
	c := r.core
	if r.recovered == c.facts.readingOf(r.id) {
		return
	}
	f, reading := c.facts.room(r.id), c.facts.readingOf(r.id)
	dead := c.facts.unrecovered(f)
	heir := c.facts.recovers(f, dead)
	r.inheritUnsent(f, now)
	r.mu.Lock()
	quiet := r.refuse(f, dead, heir, now) && len(dead) == 0
	words := r.words(dead)
	if heir == c.self.Node && len(dead) > 0 {
		r.gets(now)
		// It fails until all have spoken, and is tried again.
		in := c.estate(f, dead)
		in.Session = r.longestSession(f, dead)
		_ = r.rights.Recover(in, now)
	}
	done := r.rights.Recovered()
	_, leaving := r.rights.Leaving()
	if _, left := c.facts.leftTo(f, c.self.Node); left || leaving {
		words = nil // its last ledger says it. If others went by a word, who recovers its heir would not take what it was given
		done = nil  // its heir says so. If both did, each would take the word of the other back, for ever
	}
	quiet = quiet && r.rights.Written()
	mine := r.rights.Minted()
	r.mu.Unlock()
	c.storing.touch(r)
	if !r.escrow() && mine != f.by.of(c.self.Node) { // what a dead one had minted and nobody knew of; else mint says it
		c.setFact(roomNodeKey(factMinted, r.id, c.self.Node), encodeAmount(mine), now)
	}
	if quiet {
		r.recovered = reading
	}
	for _, w := range words {
		c.setFact(wordKey(r.id, w.Dead, c.self.Node), ticket.AppendWord(nil, w), now)
	}
	for _, x := range done {
		if f.again[x.Dead].by != c.self.Node {
			c.setFact(roomNodeKey(factRecovered, r.id, x.Dead), recovered{c.self.Node, x.Minted, x.Turn}.encode(), now)
		}
	}
}

// refuse refuses the dead, for who recovers them, and takes what is for this node of those that have
// left. It returns false if something of that is left. It is called with mu held.
func (r *Room) refuse(f *roomFacts, dead []crdt.NodeID, heir crdt.NodeID, now time.Time) bool {
	c := r.core
	r.refuseRecovered(f, now)
	all := r.takeOverByFinals(f, now)
	if round := c.facts.round(f); heir != (crdt.NodeID{}) {
		for _, id := range dead {
			r.rights.Fence(id, heir, round, now)
		}
	}
	// Once all are refused that have to be: who left to one of these is refused by that.
	for _, id := range f.leavers {
		var keeper crdt.NodeID
		_, recovered := f.again[id] // by those who did not know of the last ledger: what it had given is with the rest
		if _, left := c.facts.leftTo(f, id); left && !recovered {
			keeper = c.facts.keeper(f, id)
		}
		if r.rights.Refuses(id) && !f.tookOver(keeper, id) {
			keeper = crdt.NodeID{} // it may recover the leaver yet, by the word of this node
		}
		r.rights.Settle(f.finals[id], keeper)
	}
	return all
}

// refuseRecovered refuses those who were recovered, also where this node was not there yet. It is called with mu held.
func (r *Room) refuseRecovered(f *roomFacts, now time.Time) {
	for _, id := range slices.SortedFunc(maps.Keys(f.again), compareNodes) {
		r.rights.Fence(id, f.again[id].by, 1, now)
	}
}

// words returns what this node has dealt with the dead, as far as its refusal is on disk, and on which
// of those that others may refuse it has the rights. It is called with mu held.
func (r *Room) words(dead []crdt.NodeID) []ticket.Word {
	c := r.core
	var words []ticket.Word
	for _, id := range r.rights.AnswersFor() {
		// As soon as anybody is dead: others may know that this leaver left to that one, and refuse it, where the last ledger here names another.
		if w, ok := r.rights.Taken(id); ok && len(c.facts.dead) > 0 {
			words = append(words, w)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(c.facts.dead), compareNodes) {
		if w, ok := r.rights.Frozen(id); ok {
			words = append(words, w)
		}
	}
	for _, id := range dead {
		if w, ok := r.rights.Frozen(id); ok && c.facts.dead[id] == (crdt.NodeID{}) {
			words = append(words, w) // it left, to one that is dead
		}
	}
	return words
}

// inheritUnsent takes over from those that had left to this node before they had the room, and to whom one
// that has left as well had given something that never arrived: nobody sends it any more. It stands in a last ledger.
func (r *Room) inheritUnsent(f *roomFacts, now time.Time) {
	if r.core.leave.on {
		return // who leaves takes nothing up any more
	}
	for _, id := range f.leavers {
		for _, a := range f.finals[id].Accounts {
			if !a.Gave.IsZero() {
				r.inheritNothing(a.Node, now)
			}
		}
	}
}

// takeOverByFinals takes over from those that have left, to this node by now, and may not hand over
// any more. It returns false if something is left that it could not take. It is called with mu held.
func (r *Room) takeOverByFinals(f *roomFacts, now time.Time) bool {
	c, all := r.core, true
	if len(f.finals) == 0 {
		return true
	}
	have := r.rights.AnswersFor()
	for _, id := range f.leavers {
		_, recovered := f.again[id]
		if id != c.self.Node && !recovered && !f.keptForGood(id) && c.facts.keeper(f, id) == c.self.Node && !slices.Contains(have, id) {
			r.gets(now)
			all = r.rights.TakeOver(ticket.Handover{Room: r.id, Final: f.finals[id]}, now) && all
			c.storing.touch(r)
		}
	}
	return all
}

// estate gathers what has to be known to recover the rights of lost nodes.
func (c *Core) estate(f *roomFacts, dead []crdt.NodeID) ticket.Estate {
	in := ticket.Estate{
		Dead: dead, Words: f.words, Needed: c.facts.speakers(f),
		Recovered: make(map[crdt.NodeID]int64, len(f.again)),
	}
	for id, x := range f.again {
		in.Recovered[id] = x.turn
	}
	for _, id := range dead {
		in.Minted = append(in.Minted, f.mintedBy(id))
		noteFact(&in.Closings, id, f.closingsOf(id))
	}
	for _, id := range f.leavers {
		in.Finals = append(in.Finals, f.finals[id])
	}
	return in
}
