package ticket

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// limits is what the room's limits are, as far as this node knows.
type limits struct {
	known     bool
	limit     Amount
	others    Amount // minted by all other nodes
	minter    crdt.NodeID
	mintAfter int64 // Unix ns; nothing is minted before
}

// SetLimits tells what the room's limits are, how much all other nodes have
// minted, and who mints. The minter follows the limits: it mints what is missing,
// or burns what it has free. Call it at every tick.
func (r *Rights) SetLimits(limit, others Amount, minter crdt.NodeID, now time.Time) {
	was := r.limit
	r.limit = limits{known: true, limit: limit.Max(Amount{}), others: others, minter: minter, mintAfter: was.mintAfter}
	if was.known && r.limit.limit.Max(was.limit) != r.limit.limit {
		r.Recall() // tickets that were lent under the limit of before
	}
	if r.stopped() {
		return
	}
	if now.UnixNano() >= r.limit.mintAfter {
		r.limit.mintAfter = 0 // so that whoever takes over does not wait either
	}
	if r.mints() {
		r.mint(now)
	}
}

// mints reports whether it is for this node to mint.
func (r *Rights) mints() bool {
	return r.limit.minter == r.cfg.Self.Node || r.cfg.LeaveOut&OneMinter != 0
}

// mint follows the limits with what this node has minted.
func (r *Rights) mint(now time.Time) {
	diff := r.limit.limit.Sub(r.limit.others).Sub(r.book.next.minted)
	// Sessions on recovered rights may still go on; what others of the dead
	// minter's rights are in use is not known.
	if now.UnixNano() < r.limit.mintAfter {
		diff = diff.Min(Amount{})
	}
	free := r.physical(now).Max(Amount{})
	diff = diff.Max(Amount{}.Sub(free))
	if !diff.IsZero() {
		r.book.next.minted = r.book.next.minted.Add(diff)
		r.mark(keyMinted)
	}
}

// allowed returns how much of what is held may be in use. While more is minted than the
// limit is, the difference may be in use anywhere else: so it is taken off here, at every
// node alike. Then whoever lets somebody in knows that no more than the limit are inside,
// since all others together have no more in use than is minted less what is held here.
// The minter burns the difference as it comes free. More is minted than was heard of if more is
// held than that: what was minted comes with the rights, and may count here after them.
func (r *Rights) allowed() Amount {
	if !r.limit.known {
		return r.held
	}
	minted := r.limit.others.Add(r.Minted())
	if r.cfg.LeaveOut&MintedWithGifts == 0 {
		minted = minted.Max(r.held)
	}
	return r.held.Sub(minted.Sub(r.limit.limit).Max(Amount{}))
}

// Surplus returns what is free here and may not be used, since less shall be in
// use than is minted: it belongs with the minter. None for the minter itself.
func (r *Rights) Surplus(now time.Time) Amount {
	if r.stopped() || r.limit.minter == r.cfg.Self.Node {
		return Amount{}
	}
	return r.held.Sub(r.allowed()).Min(r.physical(now)).Max(Amount{})
}
