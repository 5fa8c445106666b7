package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/transport"
)

// Whether any bootstrap node is still of the mesh. Nodes go on trying to reach those that are
// down, and not those that have left. Once all bootstrap nodes have left, empty machines that
// are started under their names hear of nobody but each other, and make a second mesh. So
// operators are told before the last of them leaves, and afterwards.

// namedNodes is what the loop has found of the bootstrap nodes.
type namedNodes struct {
	names  []string
	met    bool     // this node has had time to hear of all others
	self   bool     // this node is one of them
	others bool     // another one that has not left is
	stay   []string // names of nodes that have not left, without this one; in order
}

// lookForNamed notes which bootstrap nodes there are, and has the log say that there are none
// any more. It is the loop's.
func (n *Node) lookForNamed(members []transport.Peer, now time.Time) {
	if n.boot == nil || !n.core.open.Load() {
		return
	}
	is := &namedNodes{names: n.boot.cfg.Names, stay: n.core.staying(members), met: now.Sub(n.core.openedAt) >= downAfter}
	if len(is.names) == 0 { // since there is a mesh, the list may be left out
		is.names = n.cfg.Data.Mesh().Record.Names
	}
	is.self = slices.Contains(is.names, n.cfg.Name)
	is.others = slices.ContainsFunc(is.stay, func(name string) bool { return slices.Contains(is.names, name) })
	before := n.boot.named.Swap(is).warning(false)
	if why := is.warning(false); why != "" && before == "" {
		n.log.Warn("no bootstrap node is in this mesh any more", "reason", why)
	}
}

// staying returns, in order, the names of the other nodes that have neither left nor been
// declared dead. A node of an older version has told its name to nobody but members.
func (c *Core) staying(members []transport.Peer) (names []string) {
	for id := range c.facts.sites {
		if name := c.facts.names[id]; name != "" && id != c.self.Node && !c.facts.gone(id) {
			names = append(names, name)
		}
	}
	for _, p := range members {
		if p.State == transport.Alive && p.Name != "" && !c.facts.gone(crdt.NodeID(p.ID)) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// newNamed is how many names a warning proposes for a new list.
const newNamed = 3

// warning says that no bootstrap node is left, or, of a node that leaves, that none is going
// to be, and what to do; "": nothing is to be said.
func (s *namedNodes) warning(leaving bool) string {
	if s == nil || len(s.names) == 0 || s.others || s.self != leaving || !leaving && !s.met {
		return ""
	}
	names, next := strings.Join(s.names, ","), "nodes that stay"
	if len(s.stay) > 0 {
		next = strings.Join(s.stay[:min(len(s.stay), newNamed)], ",")
	}
	is := "none of the bootstrap nodes " + names + " is in the mesh any more"
	if leaving {
		is = "this is the last of the bootstrap nodes " + names + " that is in the mesh"
	}
	return fmt.Sprintf("%s: from then on, machines with empty data directories that are started with --bootstrap-nodes %s make a second mesh, with the whole limit; give all nodes --bootstrap-nodes %s instead, and --join with the address of one of these",
		is, names, next)
}

// BootstrapWarning says that no bootstrap node is in the mesh any more, or, with leave, that
// none is going to be once this node has left, and what to do. "": there are others. Any
// goroutine may call it.
func (n *Node) BootstrapWarning(leave bool) string {
	if n.boot == nil {
		return ""
	}
	return n.boot.named.Load().warning(leave)
}
