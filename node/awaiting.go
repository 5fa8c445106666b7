package node

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/transport"
)

// naming is how long it takes from the first news of members to all of it: gossip may
// name nodes of other sites before those of the own, who know this node's past.
const naming = 300 * time.Millisecond

// timing is how long a node waits for the first word of how its clock stands to those of the others: it must
// neither open nor write anything with one that is off.
const timing = 2 * time.Second

// awaiting is the time in which a starting node does not know yet whom to ask.
type awaiting struct {
	site     string
	patience time.Duration // how long it waits for the first peer; 0: not at all
	since    time.Time
	named    time.Time // when the first peer was; zero: none has been
}

// on reports whether the node is to wait still. Once it need not, it is not asked
// again.
func (a *awaiting) on(members []transport.Peer, mesh Mesh, now time.Time) bool {
	peers := alive(members)
	if len(peers) == 0 {
		return now.Sub(a.since) < a.patience
	}
	if a.named.IsZero() {
		a.named = now
	}
	if !timed(members, mesh) && now.Sub(a.named) < timing {
		return true
	}
	if a.patience == 0 {
		return false
	}
	mate := func(p transport.Peer) bool { return p.State == transport.Alive && p.Site == a.site }
	return !slices.ContainsFunc(members, mate) && now.Sub(a.named) < naming
}

// timed reports whether it is known how the clock of any peer stands to this node's.
func timed(members []transport.Peer, mesh Mesh) bool {
	return slices.ContainsFunc(members, func(p transport.Peer) bool {
		_, known := mesh.Offset(p.ID)
		return known && p.State == transport.Alive
	})
}

// patience returns how long to wait for the first of the others. One that is new in a mesh knows nothing
// of what operators have set, and what nodes of bootstrap know is on their disks before they are of it.
func (n *Node) patience() time.Duration {
	if n.core.joins() {
		return math.MaxInt64
	}
	if n.core.acquainted() {
		return max(n.cfg.AwaitPeers, n.cfg.AwaitKnown)
	}
	return n.cfg.AwaitPeers
}

// joins reports whether this node came to a mesh that others have made, and has never been ready in it.
func (c *Core) joins() bool {
	rec := c.mesh.is.Record
	return !rec.Mesh.IsZero() && len(rec.Names) > 0 && !slices.Contains(rec.Names, c.name) && c.replica.Written() == 0
}

// unfitAfter is how long a node has started until the log says whose state it waits for.
const unfitAfter = 2 * time.Second

// noteUnfit keeps in mind, for whoever asks, whose state this node waits for.
func (n *Node) noteUnfit(since time.Duration) {
	if n.clockOff.Load() != nil {
		return // of which the log says more
	}
	who := "no other node is in reach"
	if from := n.core.replica.FillsFrom(); len(from) > 0 {
		who = "from " + strings.Join(n.namesOf(from), ", ")
	}
	if n.unfit.Store(&who); since >= unfitAfter && !n.saidUnfit {
		n.saidUnfit = true
		n.log.Warn("this node takes no visitors before it has the state of the mesh", "waits", who)
	}
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
