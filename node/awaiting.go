package node

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/transport"
)

// naming is how long it takes from the first news of members to all of it: gossip may
// name nodes of other sites before those of the own, who know this node's past.
const naming = 300 * time.Millisecond

// awaiting is the time in which a starting node does not know yet whom to ask.
type awaiting struct {
	site     string
	patience time.Duration // how long it waits for the first peer; 0: not at all
	since    time.Time
	named    time.Time // when the first peer was; zero: none has been
}

// on reports whether the node is to wait still. Once it need not, it is not asked
// again.
func (a *awaiting) on(members []transport.Peer, now time.Time) bool {
	if a.patience == 0 {
		return false
	}
	peers := alive(members)
	if len(peers) == 0 {
		return now.Sub(a.since) < a.patience
	}
	if a.named.IsZero() {
		a.named = now
	}
	mate := func(p transport.Peer) bool { return p.State == transport.Alive && p.Site == a.site }
	return !slices.ContainsFunc(members, mate) && now.Sub(a.named) < naming
}

// patience returns how long to wait for the first of the others.
func (n *Node) patience() time.Duration {
	if n.core.acquainted() {
		return max(n.cfg.AwaitPeers, n.cfg.AwaitKnown)
	}
	return n.cfg.AwaitPeers
}

// acquainted reports whether this node knows of others that have not gone.
func (c *Core) acquainted() bool {
	for id := range c.facts.sites {
		if id != c.self.Node && !c.facts.gone(id) {
			return true
		}
	}
	return false
}
