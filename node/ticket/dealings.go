package ticket

import (
	"maps"
	"slices"

	"github.com/ropeline/ropeline/crdt"
)

// Dealings is what a node has dealt with another one, all in all.
type Dealings struct {
	Node     crdt.NodeID
	Gave     Amount // to it
	Received Amount // from it, and on this node's disk
	Pending  bool   // the other one has not said yet that it has all that was given
}

// Dealings returns what this node has dealt with each of the others, by their ids.
func (r *Rights) Dealings() (all []Dealings) {
	for _, id := range slices.SortedFunc(maps.Keys(r.book.next.accounts), crdt.NodeID.Compare) {
		_, pending := r.out.find(id)
		all = append(all, Dealings{Node: id, Gave: r.book.next.accounts[id].gave, Received: r.book.disk.accounts[id].rcv, Pending: pending})
	}
	return all
}
