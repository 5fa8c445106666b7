package node

import (
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// What an operator does at one node, on the disks of the others. It is answered once all
// nodes in reach have it there: then neither a crash nor a lost disk undoes it, and whoever
// asks another node next reads it.

// spreadPatience is how long an operator waits for the nodes in reach. The answer names those
// that have not confirmed by then.
const spreadPatience = 2 * time.Second

// slowPatience is the same for nodes that somebody has waited for in vain before, and that have confirmed nothing since: one whose
// loop or disk hangs stays a member for as long as its links answer. One that goes on again has confirmed by then, if it is not far;
// if it is, what it says later has it be waited for again.
const slowPatience = 250 * time.Millisecond

// Act is what an operator has done at this node.
type Act struct {
	told    uint64 // as Told has it
	written uint64 // as replica.Written has it
}

// Do has an operator do something, and tells all members of it at once.
func (c *Core) Do(do func(c *Core, now time.Time) error, now time.Time) (Act, error) {
	since := c.replica.Written()
	if err := do(c, now); err != nil {
		return Act{}, err
	}
	c.replica.Spread(since, now)
	return Act{told: c.Told(), written: c.replica.Written()}, nil
}

// NotYetAt returns, in order, the nodes that exist and have not said that an act is on
// their disks, and whether some of them are in reach.
func (c *Core) NotYetAt(a Act) (nodes []crdt.NodeID, inReach bool) {
	for id := range c.existing() {
		if !c.replica.KeepsWritten(id, a.written) {
			nodes = append(nodes, id)
			_, member := c.peers.Find(id)
			inReach = inReach || member
		}
	}
	slices.SortFunc(nodes, compareNodes)
	return nodes, inReach
}

// Answers reports whether an act is to be answered now, so long after it was done, and returns the nodes that the answer
// is to name.
func (c *Core) Answers(a Act, after time.Duration) (notYetAt []crdt.NodeID, now bool) {
	notYetAt, inReach := c.NotYetAt(a)
	if !inReach || after >= spreadPatience {
		for _, id := range notYetAt {
			c.replica.NoteSlow(id, a.written)
		}
		return notYetAt, true
	}
	waits := slices.ContainsFunc(notYetAt, func(id crdt.NodeID) bool {
		_, member := c.peers.Find(id)
		return member && !c.replica.Slow(id)
	})
	return notYetAt, !waits && after >= slowPatience
}

// Settled reports whether all nodes that exist have on their disks all that a node has
// written into the last-writer map up to a stamp, this one included. What other members have
// there is known as of the last answer to replica.Survey, or of an act.
func (c *Core) Settled(at crdt.Stamp) bool {
	for id := range c.existing() {
		if !c.replica.Keeps(id, at) {
			return false
		}
	}
	return true
}

// existing returns all nodes that may come to speak in the mesh: those that came, or may own rights,
// and have neither left nor been declared dead, be they in reach or not, all members, and
// this node.
func (c *Core) existing() map[crdt.NodeID]struct{} {
	all := map[crdt.NodeID]struct{}{c.self.Node: {}}
	for id := range c.facts.met() {
		all[id] = struct{}{}
	}
	for _, p := range c.peers {
		all[p.ID] = struct{}{}
	}
	maps.DeleteFunc(all, func(id crdt.NodeID, _ struct{}) bool { return c.facts.gone(id) })
	return all
}

// sendSpreads tells others what of the last-writer map is to be on their disks and what is
// on this one. Who hears that may ask here next, so this node goes by it before.
func (c *Core) sendSpreads(now time.Time) []Message {
	if c.replica.Answers() && c.open.Load() {
		c.heedFacts(now)
	}
	c.welcome(now)
	return c.replicate(c.replica.Spreads(now))
}
