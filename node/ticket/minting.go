package ticket

import (
	"iter"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Who mints next must know all that was minted before. What nodes have heard of each
// other may be older than the rights that they hold, so it comes with the rights: in the
// last ledger of a node that leaves, and from the ledger of whoever recovered a dead one.

// Counted returns what a node that leaves had minted, less what it burnt, with what was minted in its closings.
func (f Final) Counted() Minting {
	is := f.Minting
	if is.Known {
		is.Minted = is.Minted.Add(f.Closings.AllMinted())
	}
	return is
}

// minting returns what a node whose rights have passed to this one has minted, as far as
// ledgers say it.
func (r *Rights) minting(id crdt.NodeID) (Amount, bool) {
	if r.cfg.LeaveOut&FreshMint != 0 {
		return Amount{}, false
	}
	if x, ok := r.book.next.recovered[id]; ok {
		return x.minted, true
	}
	x := r.book.next.taken[id]
	return x.Minted, x.Known
}

// OthersMinted returns what all other nodes have minted. Heard is what they were heard to
// say, each node once; of those whose rights have passed to this one the ledger holds.
func (r *Rights) OthersMinted(heard iter.Seq2[crdt.NodeID, Amount]) (sum Amount) {
	sum = r.book.next.closings().AllMinted()
	said := map[crdt.NodeID]bool{r.cfg.Self.Node: true}
	for id, c := range r.book.next.closed {
		said[id] = c.kept
	}
	for id, a := range heard {
		if said[id] {
			continue
		}
		said[id] = true
		if exact, ok := r.minting(id); ok {
			a = exact
		}
		sum = sum.Add(a)
	}
	for id := range r.Predecessors() {
		if a, ok := r.minting(id); ok && !said[id] {
			sum, said[id] = sum.Add(a), true
		}
	}
	return sum
}

// MintsFrom returns until when this node makes no rights though it is to; zero: it makes them at once.
func (r *Rights) MintsFrom(now time.Time) time.Time {
	if !r.mints() || now.UnixNano() >= r.limit.mintAfter {
		return time.Time{}
	}
	return r.mintAfter()
}

// mintAfter returns when this node may mint at the earliest; zero: at once.
func (r *Rights) mintAfter() time.Time {
	if r.limit.mintAfter == 0 {
		return time.Time{}
	}
	return time.Unix(0, r.limit.mintAfter)
}

// WaitToMint has this node mint nothing before a time.
func (r *Rights) WaitToMint(until time.Time) {
	if !until.IsZero() {
		r.limit.mintAfter = max(r.limit.mintAfter, until.UnixNano())
	}
}

// inheritMintAfter has this node mint no sooner than the leaver might have.
func (r *Rights) inheritMintAfter(f Final, now time.Time) {
	if r.cfg.LeaveOut&FreshMint != 0 {
		return
	}
	if !f.MintAfter.IsZero() { // by the leaver's clock; new visitors count for a minute whatever that says
		r.WaitToMint(later(f.MintAfter.Add(Guard), now.Add(NewFor)))
	}
}

// unknownEnd returns until when rights that a dead minter made, and of which nobody here has
// heard, may be in use or cool: who was let in by them may be on the site, or counts for a minute
// among the new ones.
func (r *Rights) unknownEnd(now time.Time) time.Time {
	return later(r.blockEnd(now), now.Add(NewFor))
}
