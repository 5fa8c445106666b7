package ticket

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Put is one change of the durable state of a room: a value under a key. A nil
// Value deletes the key.
type Put struct {
	Key   string
	Value []byte
}

// RightsConfig says whose rights, of which room.
type RightsConfig struct {
	Self crdt.Incarnation
	Room crdt.RoomID

	// Session is how long a check-in lasts. Longer sessions keep rights aside for
	// longer after a restart.
	Session time.Duration

	// Unlimited is for rooms in which rights limit nothing: nothing is written
	// about what is in use, and what turns up beyond a block is let in.
	Unlimited bool

	// Before is how many leases an earlier start may have had, for rooms without
	// limits; others know it from their bound.
	Before int64

	// Seqs takes n successive ticket numbers of this start and returns the first.
	// The caller draws its own tickets from the same numbers. Nil: numbers are
	// taken by nobody else, and begin with 1.
	Seqs func(n uint64) (first uint64)

	// LeaveOut names rules that are left out, for simulations that show what a
	// rule is for.
	LeaveOut Rules
}

// Rights is what one node owns of one room: its ledger of rights, and the leases
// and loans that use them. Create it with OpenRights. It is not safe for
// concurrent use.
type Rights struct {
	cfg    RightsConfig
	leases *Leases
}

// OpenRights returns the rights of a node that starts at now with what is stored.
// The delta is what counts as active from the start.
func OpenRights(cfg RightsConfig, stored []Put, now time.Time) (*Rights, Delta, error) {
	r := &Rights{cfg: cfg}
	var d Delta
	r.leases, d = NewLeases(cfg.Self, cfg.Session, int(cfg.Before), now)
	return r, d, nil
}

// Writes returns the next batch to be written at once, or nil: there is nothing
// to write, or a batch is under way, or the store has failed.
func (r *Rights) Writes() []Put { return nil }

// Confirmed says that the batch under way is durable.
func (r *Rights) Confirmed(now time.Time) {}

// Failed says that nobody knows whether the batch under way is durable. From then
// on nothing is issued, lent or given until StoreBack.
func (r *Rights) Failed(now time.Time) {}

// StoreBack says that a new store holds what Stored returned.
func (r *Rights) StoreBack(now time.Time) {}

// Stored returns all that is confirmed: the content of a new store.
func (r *Rights) Stored() []Put { return nil }

// Held returns the rights that this node owns.
func (r *Rights) Held() Amount { return Amount{} }

// Free returns what may be used now, limits considered.
func (r *Rights) Free() Amount { return Amount{} }

// InUse returns how many places are taken: leases, blocks, loans, open tokens.
func (r *Rights) InUse() int64 { return 0 }

// Active returns how many places are taken by leases and blocks: P − N over all
// deltas.
func (r *Rights) Active() int64 { return int64(r.leases.InUse()) }

// Lent returns how many tickets are lent and not known to be used.
func (r *Rights) Lent() int64 { return 0 }

// Borrowed returns how many sessions go on without a place.
func (r *Rights) Borrowed() int64 { return 0 }

// Minted returns what this node has minted at most; negative if it burnt more.
func (r *Rights) Minted() Amount { return Amount{} }

// Bound returns the confirmed bound of places in use.
func (r *Rights) Bound() int64 { return 0 }

// Open returns how many of want tokens requests may take from now on: each has a
// place and a rate right aside until Enter or Close.
func (r *Rights) Open(want int64, now time.Time) int64 { return 0 }

// Close takes back n open tokens that no request has taken or will take.
func (r *Rights) Close(n int64) {}

// Tokens returns how many tokens are open.
func (r *Rights) Tokens() int64 { return 0 }

// Enter starts the lease of a ticket of this node for which a request took a
// token at at. Its rate right cools from now.
func (r *Rights) Enter(t Ticket, at, now time.Time) (end time.Time, d Delta, err error) {
	return r.leases.Open(t, at, now)
}

// Issue gives out up to n own tickets at once, for visitors of other nodes: each
// has a provisional lease, whose end the first check-in sets.
func (r *Rights) Issue(n int64, now time.Time) ([]Range, Delta) { return nil, Delta{} }

// Lend lends up to n tickets to a counter and returns how many. The loan is sent
// by LoansDue.
func (r *Rights) Lend(to crdt.Incarnation, n int64, now time.Time) int64 { return 0 }

// LoansDue returns the loans that are to be sent now: each as soon as it is
// written, and again every 200 ms until a report on it has arrived or it is void,
// since a lost one would lie idle for a session.
func (r *Rights) LoansDue(now time.Time) []Loan { return nil }

// Reported takes what became of a loan. It reports whether the report shall be
// acknowledged.
func (r *Rights) Reported(from crdt.NodeID, rep Report, now time.Time) (Delta, bool) {
	return Delta{}, false
}

// Cancel takes back tickets of this node that were never used.
func (r *Rights) Cancel(ranges []Range, now time.Time) Delta { return Delta{} }

// CheckIn extends a lease, as Leases.CheckIn does.
func (r *Rights) CheckIn(t Ticket, passEnd, at, now time.Time) (end time.Time, d Delta, err error) {
	return r.leases.CheckIn(t, passEnd, at, now)
}

// End ends a lease before its time.
func (r *Rights) End(t Ticket, now time.Time) Delta { return r.leases.End(t) }

// Expire ends what the clock has passed: leases, blocks, loans. It repays
// borrowed sessions with the places that come free.
func (r *Rights) Expire(now time.Time) Delta { return r.leases.Expire(now) }

// SetSession changes how long a check-in lasts.
func (r *Rights) SetSession(session time.Duration) { r.leases.SetSession(session) }

// SetRenewal says whether check-ins extend leases; at first they do.
func (r *Rights) SetRenewal(on bool) { r.leases.SetRenewal(on) }

// SetUnlimited says whether rights limit nothing, as RightsConfig has it.
func (r *Rights) SetUnlimited(on bool) {}

// SetOpen says whether sessions may be borrowed while an anchor is out of reach:
// whoever slept must then reckon with others having gone on with its sessions.
func (r *Rights) SetOpen(on bool) {}

// Reanchor gives a session whose anchor is out of reach the place of t, a new
// ticket of this node, without a rate right. Without a free place, and if
// mayBorrow, the session is borrowed: the ticket returned has Borrowed set.
func (r *Rights) Reanchor(t Ticket, at, now time.Time, mayBorrow bool) (Ticket, time.Time, Delta, bool) {
	return Ticket{}, time.Time{}, Delta{}, false
}

// Give gives up to a of what is free to another node and returns how much. It is
// sent by TransfersDue.
func (r *Rights) Give(to crdt.NodeID, a Amount, now time.Time) Amount { return Amount{} }

// TransfersDue returns the gifts to be sent now: to whoever answers for To.
func (r *Rights) TransfersDue(now time.Time) []Transfer { return nil }

// Acked takes an acknowledgement of a Transfer or Handover of this node.
func (r *Rights) Acked(a Received) {}

// Receive takes a gift. It counts, and is acknowledged, once it is written.
func (r *Rights) Receive(t Transfer, now time.Time) {}

// AcksDue returns the acknowledgements to be sent to their From, each once.
func (r *Rights) AcksDue(now time.Time) []Received { return nil }

// SetLimits tells what the room's limits are, how much all other nodes have
// minted, and who mints. The minter follows the limits.
func (r *Rights) SetLimits(limit, others Amount, minter crdt.NodeID, now time.Time) {}

// Surplus returns what is free here and may not be used, since less shall be in
// use than is minted: it belongs with the minter. None for the minter itself.
func (r *Rights) Surplus(now time.Time) Amount { return Amount{} }

// Retire has the room refuse everything, for good.
func (r *Rights) Retire() {}

// Retired reports whether the room was retired.
func (r *Rights) Retired() bool { return false }

// Leave freezes this node's rights and passes all of them on to heir.
func (r *Rights) Leave(heir crdt.NodeID, now time.Time) error { return nil }

// Leaving returns to whom this node has passed on its rights; ok is false if it
// has not.
func (r *Rights) Leaving() (heir crdt.NodeID, ok bool) { return crdt.NodeID{}, false }

// HandoverDue returns what is to be sent to the heir now.
func (r *Rights) HandoverDue(now time.Time) (Handover, bool) { return Handover{}, false }

// Left returns the final ledger of this node once its heir has taken over.
func (r *Rights) Left() (Final, bool) { return Final{}, false }

// TakeOver takes what a leaver passes on to this node, its heir. It is
// acknowledged by AcksDue once it is written.
func (r *Rights) TakeOver(h Handover, now time.Time) {}

// AnswersFor returns, in order, the nodes whose tickets this node answers for.
func (r *Rights) AnswersFor() []crdt.NodeID { return nil }

// Fence refuses a node that is dead, for good, in favour of heir. The first fence
// stands.
func (r *Rights) Fence(dead, heir crdt.NodeID, now time.Time) {}

// Frozen returns this node's word on a dead node, once its fence is written.
func (r *Rights) Frozen(dead crdt.NodeID) (Word, bool) { return Word{}, false }

// Recover takes over the rights of dead nodes whose heir this node is.
func (r *Rights) Recover(in Estate, now time.Time) error { return nil }
