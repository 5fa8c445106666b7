package node

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/transport"
)

// Mesh is what a node needs of the links to other nodes.
type Mesh interface {
	Members() []transport.Peer
	Send(to transport.PeerID, kind uint8, slot uint64, msg []byte)
	SetReady(ready bool)
	RTT(id transport.PeerID) (time.Duration, bool)
	Offset(id transport.PeerID) (time.Duration, bool)
}

var _ Mesh = (*transport.Mesh)(nil)

// Message is one one-way message to another node. A newer one with the same To,
// Kind and Slot may replace an older one that has not left yet.
type Message struct {
	To      crdt.NodeID
	Kind    uint8
	Slot    uint64
	Payload []byte
}

// Kinds of one-way messages.
const (
	kindReplica   = 1 // node/replica's own
	kindVisits    = 2 // to a visitor's owner
	kindVisitsAck = 3
	kindRenew     = 4 // to a ticket's anchor
	kindRenewAck  = 5
	kindAsk       = 6 // does this session go on? asked of a ticket's anchor
	kindAnswer    = 7
	kindCall      = 8 // tickets, please; to a counter
	kindGrant     = 9
	kindEnd       = 10 // to a ticket's anchor; answered by kindRenewAck
	kindClaims    = 11 // this node is the counter of these rooms; to its site

	// Of rooms whose limit is rights.
	kindLoanCall   = 12 // to a lender: what became of its loans, and more, please
	kindLoanAnswer = 13
	kindCancel     = 14 // to a ticket's anchor: nobody has used these
	kindTransfer   = 15 // rights given
	kindReceived   = 16
	kindWant       = 17 // rights, please
	kindHandover   = 18 // from a node that leaves to its heir
	kindHeir       = 19 // would you be the heir? from a node that is to leave
	kindAgreed     = 20
	kindPast       = 21 // a piece of what a node has recorded that has left
	kindPastTaken  = 22
	kindKnown      = 23 // do you know all this? from a node that leaves
	kindKept       = 24
	kindInquiry    = 25 // what have you got from this node? from one that has started
	kindReceipts   = 26

	kindRedeem   = 27 // has nobody redeemed these passes? asked of their visitors' owner
	kindRedeemed = 28

	kindLimitCounted = 29 // counts of rate limits, to the owners of their keys
	kindLimitKnown   = 30 // what an owner knows of them
	kindLimitAsked   = 32 // a question for that, from a node that starts

	kindRefused = 33 // messages of yours make no sense here; see refusals.go

	kindBootstrap = 31 // node/bootstrap's own
)

// alone is the mesh of a node that has no peers.
type alone struct{}

func (alone) Members() []transport.Peer                     { return nil }
func (alone) Send(transport.PeerID, uint8, uint64, []byte)  {}
func (alone) SetReady(bool)                                 {}
func (alone) RTT(transport.PeerID) (time.Duration, bool)    { return 0, false }
func (alone) Offset(transport.PeerID) (time.Duration, bool) { return 0, false }
