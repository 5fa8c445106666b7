package ticket

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// A counter is one node that hands out the tickets of a room, to itself and to
// other nodes that call it. Three state machines belong to it: a Desk at each
// node that calls, the Accounts at the counter, and a Lead that says who the
// counter is.
//
//	applicants ──▶ Desk ──── Call: how many, what became of earlier ones ───▶ Accounts
//	           ◀──      ◀─── Grant: how many, when to come again ────────────
//
// A desk has one call under way. Calls are numbered, a call that comes twice
// gets the same grant, and a grant that comes too late is taken up by nobody:
// the next call says so, and its tickets are free again.
//
// What there is to hand out is up to the counter. Where places are counted, it
// says how many a node may take, which are then tickets of that node. Where they
// are rights, it says which tickets: its own, or those of its Stock, which the
// other nodes of the site have lent it and stay the anchors of.

// Scope is what a counter counts for.
type Scope uint8

const (
	SiteCounter     Scope = iota // a site's part of a room
	AnywhereCounter              // the part that no site has a claim to
	Scopes                       // how many there are
)

// Places is a number of tickets of each kind.
type Places struct {
	Reserved  int // for waiting visitors who have a place reserved
	Contested int // for all others
}

// Sum returns how many there are in all.
func (p Places) Sum() int { return p.Reserved + p.Contested }

// MaxWant bounds the tickets of each kind that one call may ask for.
const MaxWant = 1 << 20

// Call asks a counter for tickets, and tells what became of those of earlier
// calls. A call for none only tells.
type Call struct {
	Room   crdt.RoomID
	Scope  Scope
	Number uint64 // later calls of a node have higher ones
	Want   Places

	// Void is the first call behind the newest of which a grant was taken up.
	// From there on up to this one, all were given up, whomever they went to: what
	// they were granted is nobody's.
	// Invariant: 1 <= Void <= Number.
	Void uint64

	// Got is how many tickets of all earlier calls together were taken up. What
	// was granted beyond that was not, and never will be.
	Got uint64

	// Booked is how many of those the counter need not remember any more, once
	// it has the caller's row up to Seq: they are counted there, or were not used.
	// Invariant: Booked <= Got.
	Booked uint64
	Seq    uint64
}

// Grant answers a call.
type Grant struct {
	Room   crdt.RoomID
	Scope  Scope
	Number uint64 // of the call
	Given  Places // never more than was wanted

	// Tickets are the ones given, in any order, where places are rights and have
	// anchors. None: the caller numbers its tickets itself.
	// Invariant: none, or Given.Sum() of them.
	Tickets []Range

	// Retry is how long whoever was refused need not ask again: there will be
	// nothing new.
	Retry time.Duration

	// Leader is who hands the tickets out. Zero: the sender does. Else the sender
	// does not, and gave none.
	Leader crdt.NodeID
}

// MaxRetry bounds how long a refusal is remembered, whatever a counter says.
const MaxRetry = time.Second
