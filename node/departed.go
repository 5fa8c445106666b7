package node

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// What a node that has left said of itself: its site, its name, its starts. Nobody needs that any more once all know that
// it has left, and left no room behind. That it has left stays known for as long as anybody has taken over from it.

// ofNodes are the kinds of these facts.
var ofNodes = [...]string{factCame, factStart, factName, factNode}

// departed returns, in order, the nodes that have left and of which more is known than that.
func (c *Core) departed() (all []crdt.NodeID) {
	behind := c.leftBehind()
	for id := range c.facts.left {
		_, dead := c.facts.dead[id]
		_, member := c.peers.Find(id)
		if dead || member || behind[id] || id == c.self.Node || !c.facts.hasLeft(id) {
			continue
		}
		if slices.ContainsFunc(ofNodes[:], func(kind string) bool { return c.isSet(nodeKey(kind, id)) }) {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, compareNodes)
	return all
}

func (c *Core) isSet(key string) bool {
	_, _, ok := c.replica.Get(key)
	return ok
}

// dropDeparted deletes what nodes have said of themselves that have left, as all nodes know.
func (c *Core) dropDeparted(departed []crdt.NodeID, settled crdt.LWWDigest, now time.Time) {
	for _, id := range departed {
		left, _ := c.replica.TellerOf(nodeKey(factLeft, id))
		over, _ := c.replica.TellerOf(nodeKey(factOver, id))
		if !settled.Holds(left) || !settled.Holds(over) || !c.adopts(id, now) {
			continue
		}
		for _, kind := range ofNodes {
			if key := nodeKey(kind, id); c.isSet(key) {
				c.setFact(key, nil, now)
			}
		}
	}
}
