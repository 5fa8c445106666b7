package ticket

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// TakeUp is how long after it was granted a ticket may be taken up by its
	// visitor at the latest, with time to spare.
	TakeUp = time.Second

	// LoanValid is for how long a loan may be used at most.
	LoanValid = 3 * time.Second
)

// Range is tickets of one anchor with successive numbers, beginning with First.
type Range struct {
	Anchor crdt.NodeID
	Boot   uint64
	Block  uint32
	First  uint64
	N      uint64

	// Session is how long the first pass with one of them may last at most, from
	// when its visitor is let in: for so long the anchor keeps the place. It is not
	// sent with a Cancel.
	Session time.Duration
}

// Ticket returns the ticket that is i places behind the first.
func (g Range) Ticket(i uint64) Ticket {
	return Ticket{Anchor: g.Anchor, Boot: g.Boot, Block: g.Block, Seq: g.First + i}
}

// Loan is tickets that a node lends to the counter of its site. The lender stays
// the anchor of all of them. It is sent again until a Report on it has arrived or
// it is void: one that is lost would lie idle for a session. One of no tickets,
// Block 0, says that there are none to lend.
type Loan struct {
	Room       crdt.RoomID
	To         crdt.Incarnation // the borrower; no later start of it uses the loan
	Lender     crdt.Incarnation
	Block      uint32 // ≥ 1, once per incarnation
	First, N   uint64
	ValidUntil time.Time     // by the borrower's wall clock at the moment of issue
	Session    time.Duration // as Range has it
	Left       int64         // what the lender could lend besides
}

// Range returns the tickets of the loan.
func (l Loan) Range() Range {
	return Range{Anchor: l.Lender.Node, Boot: l.Lender.Boot, Block: l.Block, First: l.First, N: l.N, Session: l.Session}
}

// Borrow is a counter's wish for a loan of up to N tickets.
type Borrow struct {
	Room crdt.RoomID
	N    int64
}

// Used is tickets of a loan that were issued Age ago, by the clock of whom
// reports it, at the moment of sending.
type Used struct {
	First, N uint64
	Age      time.Duration
}

// Report is what became of a loan. It holds at least all uses of which no earlier
// report was acknowledged, so reports may be lost, doubled and overtaken. Final
// says that no ticket of the loan will be issued any more.
type Report struct {
	Room   crdt.RoomID
	Lender crdt.Incarnation
	Block  uint32
	Number uint64 // of this report among those of the loan
	Used   []Used
	Final  bool
}

// ReportAck says that a report, and those before it, have arrived.
type ReportAck struct {
	Room   crdt.RoomID
	Lender crdt.Incarnation
	Block  uint32
	Number uint64
}

// Cancel says that tickets were not used and never will be. Who sends it has
// deleted them before.
type Cancel struct {
	Room   crdt.RoomID
	Anchor crdt.NodeID // of all ranges
	Ranges []Range
}

// Told is what a node has minted, less what it burnt, as somebody said it at some time. Of two
// the later one holds.
type Told struct {
	Node   crdt.NodeID
	Minted Amount
	At     crdt.Stamp
}

// MaxTold is of how many minters a message says what they have minted. With rights that pass to another
// node comes all that was minted, as far as whoever passes them on knows. So whoever holds rights knows of
// what was minted at least what was when these were, whatever else it has heard.
const MaxTold = 1000

// Code is what a giver says with a gift, all in all, that nobody else can say: who returns it with a receipt
// has got that much. Nobody but the giver can check it, who is sent every guess; so 64 bits will do. Zero: none
// is known.
type Code uint64

// Transfer is rights that one node has given another, all in all: it may be lost,
// doubled and overtaken. To differs from the receiver where that is the heir of
// a node that left.
type Transfer struct {
	Room     crdt.RoomID
	From, To crdt.NodeID
	Gave     Amount
	Code     Code // of Gave
	Minted   []Told
}

// Received acknowledges a Transfer or a Handover.
type Received struct {
	Room     crdt.RoomID
	From, To crdt.NodeID // as in the Transfer
	Gave     Amount
	Code     Code // of Gave; in Receipts only
	Handover bool
}

// Want asks whoever gets it to give To up to Amount of what it has free.
type Want struct {
	Room   crdt.RoomID
	To     crdt.NodeID
	Amount Amount
}

// Handover is all that a node which leaves passes on to its heir: its rights, the
// places in use that go with them, and what it has received so far, so that the
// heir takes what others still send to the leaver.
type Handover struct {
	Room   crdt.RoomID
	Final  Final
	Code   Code // of what the leaver has given its heir
	Minted []Told
}
