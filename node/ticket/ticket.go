// Package ticket holds tickets and the anchored leases behind them. A ticket is
// the use of one place by one visitor; its anchor is the node that issued it,
// and only the anchor extends or ends the lease.
//
// The package is a set of state machines: it is given messages and the time and
// returns messages. It starts no goroutine, reads no clock and opens no socket.
package ticket

import "github.com/ropeline/ropeline/crdt"

// Ticket names one admission. It is issued at most once: an anchor raises Boot
// at every start and Seq at every ticket. The zero value is no ticket.
type Ticket struct {
	Anchor crdt.NodeID
	Boot   uint64
	Block  uint32 // of the loan it came with; 0: issued by its anchor
	Seq    uint64
}

// IsZero reports whether t is no ticket.
func (t Ticket) IsZero() bool { return t == Ticket{} }

// BorrowedBlock marks, as Block, the tickets of sessions that go on without a
// place because their anchor is out of reach.
const BorrowedBlock = 1<<32 - 1

// Borrowed reports whether t stands for a session that had no place when it was
// issued.
func (t Ticket) Borrowed() bool { return t.Block == BorrowedBlock }
