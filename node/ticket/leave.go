package ticket

import "github.com/ropeline/ropeline/crdt"

// Account is one node's dealings with another, all in all.
type Account struct {
	Node      crdt.NodeID
	Gave, Rcv Amount
}

// Final is the ledger of a node that leaves, as it stays for ever. The zero value
// is nobody's.
type Final struct {
	Node, Heir crdt.NodeID
	InUse      int64     // places that go over to the heir
	Accounts   []Account // by node
	Inherited  []Inherited
}

// Inherited is what an heir has received of what nodes gave to a leaver: Rcv of
// each, up to now, of which Base was received by those who answered before.
type Inherited struct {
	Leaver   crdt.NodeID
	Accounts []Receipt
}

// Receipt is what From gave to a leaver: Base was received before the present
// heir, Rcv all in all.
type Receipt struct {
	From      crdt.NodeID
	Base, Rcv Amount
}
