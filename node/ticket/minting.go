package ticket

import (
	"iter"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Who mints next must know all that was minted before. What nodes have heard of each
// other may be older than the rights that they hold, so it comes with the rights: in the
// last ledger of a node that leaves, and from the ledger of whoever recovered a dead one.

// Counted returns what a node that leaves had minted, less what it burnt, with what was minted in its closings. Its last ledger says
// so, in whichever version it is written, but of one of the version before that had recovered a
// dead node: then it is not known, and what the node was heard to say counts, or Accounted if that
// is more.
func (f Final) Counted(leaveOut Rules) Minting {
	if f.Minting.Known {
		return Minting{true, f.Minting.Minted.Add(f.Closings.AllMinted())}
	}
	if leaveOut&FreshMint != 0 || len(f.Recovered) > 0 {
		return f.Minting
	}
	return Minting{true, f.Accounted()}
}

// Accounted returns what a node that leaves had minted if it recovered nobody: it holds nothing any
// more, so what it gave and had not received. It is off by the rights of those that it did recover,
// which may be more than nothing or less.
func (f Final) Accounted() (minted Amount) {
	for _, a := range f.Accounts {
		minted = minted.Add(a.Gave).Sub(a.Rcv)
	}
	for _, h := range f.Inherited {
		for _, x := range h.Accounts {
			minted = minted.Sub(x.Rcv.Sub(x.Base))
		}
	}
	return minted
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
	for _, id := range r.AnswersFor() {
		if a, ok := r.minting(id); ok && !said[id] {
			sum = sum.Add(a)
		}
	}
	return sum
}

// uncounted reports whether the rights of a node are here that has not said what it had
// minted: it ran an older version.
func (l *ledger) uncounted() bool {
	for id, x := range l.taken {
		if _, recovered := l.recovered[id]; !x.Known && !recovered {
			return true
		}
	}
	return false
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

// inheritMintAfter has this node mint no sooner than the leaver might have. One of the version
// before does not say until when that is.
func (r *Rights) inheritMintAfter(f Final, now time.Time) {
	if r.cfg.LeaveOut&FreshMint != 0 {
		return
	}
	after := f.MintAfter
	if !f.MintAfter.IsZero() { // by the leaver's clock; new visitors count for a minute whatever that says
		after = later(f.MintAfter.Add(Guard), now.Add(NewFor))
	}
	if !f.Minting.Known && len(f.Recovered) > 0 || r.book.next.uncounted() {
		after = later(after, r.unknownEnd(now))
	}
	r.WaitToMint(after)
}

// unknownEnd returns until when rights that a dead minter made, and of which nobody here has
// heard, may be in use or cool: who was let in by them may be on the site, or counts for a minute
// among the new ones.
func (r *Rights) unknownEnd(now time.Time) time.Time {
	return later(r.blockEnd(now), now.Add(NewFor))
}
