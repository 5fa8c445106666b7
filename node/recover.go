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
	// ErrUnknownNode says that no node of that id is known to have had rights.
	ErrUnknownNode = errors.New("no such node")
)

// DeclareDead says that a node will never run again: its disk is lost, or thrown
// away. Its rights come back once every node that is neither dead nor has left has
// said what it dealt with it, to this node, which becomes its heir; they can be
// used a session later. To declare a node dead that runs on somewhere is the one
// way to break the limit: what it gives out then, somebody else has as well.
func (c *Core) DeclareDead(id crdt.NodeID, now time.Time) error {
	_, member := c.peers.Find(id)
	_, known := c.facts.sites[id]
	var err error
	switch {
	case c.facts.dead[id]:
		return nil
	case c.facts.gone(id):
		err = fmt.Errorf("it has left, and %s is its heir", c.facts.heirs[id])
	case member || id == c.self.Node:
		err = ErrAlive
	case !known:
		err = ErrUnknownNode
	default:
		err = c.facts.set(nodeKey(factDead, id), c.self.Node[:], now)
	}
	if err != nil {
		return fmt.Errorf("declare node %s dead: %w", id, err)
	}
	c.heedFacts(now)
	return nil
}

// fenceTheDead has all rooms refuse the dead.
func (c *Core) fenceTheDead(now time.Time) {
	for _, id := range slices.SortedFunc(maps.Keys(c.facts.dead), compareNodes) {
		for _, r := range c.order {
			r.mu.Lock()
			if r.hasLedger() {
				r.rights.Fence(id, c.facts.heirs[id], now)
				c.storing.touch(r)
			}
			r.mu.Unlock()
		}
	}
}

// recoverTheDead says what this node has dealt with the dead, and takes the rights
// of those whose heir it is once all have spoken.
func (c *Core) recoverTheDead(now time.Time) {
	if len(c.facts.dead) == 0 || now.Sub(c.recovered) < recoverInterval && !now.Before(c.recovered) {
		return
	}
	c.recovered = now
	dead := slices.SortedFunc(maps.Keys(c.facts.dead), compareNodes)
	for _, r := range c.order {
		if !r.escrow() {
			continue
		}
		for _, id := range dead {
			r.mu.Lock()
			word, ok := r.rights.Frozen(id)
			r.mu.Unlock()
			if ok {
				c.setFact(wordKey(r.id, id, c.self.Node), ticket.AppendWord(nil, word), now)
			}
		}
		if mine := slices.DeleteFunc(slices.Clone(dead), func(id crdt.NodeID) bool {
			return c.facts.heir(id) != c.self.Node
		}); len(mine) > 0 {
			r.recoverFrom(mine, now)
		}
	}
}

func wordKey(room crdt.RoomID, dead, by crdt.NodeID) string {
	return roomNodeKey(factWord, room, dead) + "/" + by.String()
}

// recoverFrom takes the rights of dead nodes if everybody has spoken. If not, it
// does so the next time.
func (r *Room) recoverFrom(dead []crdt.NodeID, now time.Time) {
	c := r.core
	f := c.facts.room(r.id)
	in := ticket.Estate{Dead: dead, Words: f.words}
	for _, id := range dead {
		in.Minted = append(in.Minted, f.by[id])
	}
	for _, id := range c.facts.known() {
		if !c.facts.gone(id) {
			in.Needed = append(in.Needed, id)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(f.finals), compareNodes) {
		in.Finals = append(in.Finals, f.finals[id])
	}
	r.mu.Lock()
	err := r.rights.Recover(in, now)
	r.mu.Unlock()
	c.storing.touch(r)
	if err == nil && slices.Contains(dead, f.minter) {
		c.setFact(roomKey(factMinter, r.id), c.self.Node[:], now)
	}
}
