package replica

import (
	"slices"

	"github.com/ropeline/ropeline/crdt"
)

// Members are nodes of a mesh in order of id. A list is never changed, so that
// any number of nodes of one process may share one: a mesh of thousands of nodes
// has lists of millions of entries. The zero value is empty.
type Members []Peer

// NewMembers returns peers as Members: the very list if it is in order, else a
// copy. The caller must not change it any more.
func NewMembers(peers []Peer) Members {
	compare := func(a, b Peer) int { return a.ID.Compare(b.ID) }
	if !slices.IsSortedFunc(peers, compare) {
		peers = slices.SortedFunc(slices.Values(peers), compare)
	}
	return peers
}

// Find returns the member with an id.
func (m Members) Find(id crdt.NodeID) (Peer, bool) {
	i, ok := slices.BinarySearchFunc(m, id, func(p Peer, id crdt.NodeID) int { return p.ID.Compare(id) })
	if !ok {
		return Peer{}, false
	}
	return m[i], true
}
