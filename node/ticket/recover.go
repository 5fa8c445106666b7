package ticket

import "github.com/ropeline/ropeline/crdt"

// Word is what a node has given to a dead one and received from it, and never
// will give or receive more. The zero value is nobody's.
type Word struct {
	Node, Dead, Heir crdt.NodeID
	Gave, Rcv        Amount
}

// Estate is all that has to be known to recover the rights of dead nodes.
type Estate struct {
	Dead   []crdt.NodeID // declared dead, rights not recovered yet; all of them
	Minted Amount        // by them, as far as anybody knows
	Needed []crdt.NodeID // every known node that is neither dead nor has left
	Words  []Word
	Finals []Final
}
