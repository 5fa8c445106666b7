package node

import (
	"iter"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// How a node comes to be of the mesh. Nobody is given what the mesh knows whom nobody knows: what was deleted is forgotten once
// all have it whom others know of, and one that came, was ready and was cut off before anybody heard of it would have
// it for good. So who is asked by a joiner writes down that it came, tells all, and answers once that is on its disk.
//
// Nodes that begin with each other, before there is anything, are not let in by anybody: each tells of itself.

// welcome has all know of the joiners that have asked this node what there is.
func (c *Core) welcome(now time.Time) {
	if !c.open.Load() || c.toldAll() || !c.health.clockOK.Load() {
		return // nobody would hear it; they ask others
	}
	since := c.replica.Written()
	for _, p := range c.replica.Strangers() {
		if key := nodeKey(factCame, p.ID); !c.isSet(key) && !c.isSet(nodeKey(factNode, p.ID)) {
			// It fits where other facts do not: else nobody could join a mesh that is full.
			if c.replica.SetAll([]crdt.Write{{Key: key, Value: []byte(p.Site)}}, crdt.Change, now) != nil {
				c.factsFull.Add(1)
			}
		}
	}
	if c.replica.Written() > since {
		c.replica.Spread(since, now)
	}
}

// hasMet reports whether a node is known, on this node's disk.
func (c *Core) hasMet(id crdt.NodeID) bool {
	for _, kind := range [...]string{factCame, factNode} {
		key := nodeKey(kind, id)
		if at, _ := c.replica.TellerOf(key); c.isSet(key) && c.replica.Keeps(c.self.Node, at) {
			return true
		}
	}
	return c.facts.gone(id)
}

// met yields the nodes that came, or may own rights, in no order.
func (f *facts) met() iter.Seq[crdt.NodeID] {
	return func(yield func(crdt.NodeID) bool) {
		for id := range f.came {
			if !yield(id) {
				return
			}
		}
		for id := range f.sites {
			if _, came := f.came[id]; !came && !yield(id) {
				return
			}
		}
	}
}
