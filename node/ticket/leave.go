package ticket

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/packed"
)

// Reasons for which rights cannot be passed on now.
var (
	ErrBusy   = errors.New("writes or tokens are under way")
	ErrGone   = errors.New("rights were passed on already")
	ErrNoHeir = errors.New("heir is this node or a dead one")
)

// Account is one node's dealings with another, all in all.
type Account struct {
	Node      crdt.NodeID
	Gave, Rcv Amount
	Code      Code // of Rcv
}

// Final is the ledger of a node that leaves, as it stays for ever. The zero value
// is nobody's.
type Final struct {
	Node, Heir crdt.NodeID
	InUse      int64         // places that go over to the heir
	Span       time.Duration // the longest session that any of them may last
	Minting    Minting       // of the node itself
	MintAfter  time.Time     // its successor mints nothing before; zero: at once
	Accounts   []Account     // by node
	Inherited  []Inherited
	Recovered  []Recovery // dead nodes whose rights are among these
	Closings   Closings
}

// Minting is what a node has minted until it left, less what it burnt, as its last ledger
// says: exact, where what others have heard may be older. The zero value is not known, as of
// nodes whose rights were recovered.
type Minting struct {
	Known  bool
	Minted Amount
}

// Inherited is what an heir has received of what nodes gave to a leaver.
type Inherited struct {
	Leaver   crdt.NodeID
	Minting  Minting
	Accounts []Receipt // by node
}

// Receipt is what From gave to a leaver: Base was received before the present
// heir, Rcv all in all.
type Receipt struct {
	From      crdt.NodeID
	Base, Rcv Amount
	Code      Code // of Rcv
}

// gave returns what a final ledger has given to a node.
func (f Final) gave(to crdt.NodeID) Amount { return f.account(to).Gave }

// account returns the dealings of a final ledger with a node.
func (f Final) account(with crdt.NodeID) Account {
	for _, a := range f.Accounts {
		if a.Node == with {
			return a
		}
	}
	return Account{}
}

// DealtWith reports whether a final ledger says anything of another node, also of what was received for leavers.
func (f Final) DealtWith(id crdt.NodeID) bool {
	return f.account(id) != Account{} || !f.receivedForOthers(id, Closings{}).IsZero()
}

// received returns what a final ledger has received of a node, for itself and for
// those whose heir it was, but for those of which own says it.
func (f Final) received(from crdt.NodeID, own Closings) Amount {
	return f.account(from).Rcv.Add(f.receivedForOthers(from, own))
}

func (f Final) receivedForOthers(from crdt.NodeID, own Closings) (sum Amount) {
	for _, h := range f.Inherited {
		for _, x := range h.Accounts {
			if x.From == from && !own.Names(h.Leaver) {
				sum = sum.Add(x.Rcv.Sub(x.Base))
			}
		}
	}
	return sum
}

// Leave freezes this node's rights and passes all of them on to heir, with the
// leases that use them: from then on the heir answers for them. ErrBusy asks to
// try again when writes are confirmed and tokens closed.
func (r *Rights) Leave(heir crdt.NodeID, now time.Time) error {
	next := &r.book.next
	_, dead := next.dead[heir]
	switch {
	case next.leaving != nil:
		return ErrGone
	case heir == r.cfg.Self.Node, heir == crdt.NodeID{}, dead:
		return ErrNoHeir
	case !r.book.clean(), r.book.failed, r.use.tokens > 0, len(r.taking) > 0:
		return ErrBusy
	}
	x := next.accounts[heir]
	x.gave = x.gave.Add(r.held)
	set(&next.own().accounts, heir, x)
	next.leaving = &leaving{heir: heir, inUse: r.InUse()}
	if len(r.debts.line) > 0 || len(r.debts.repaid) > 0 {
		r.debts = debts{}
	}
	r.mark(keyOf(keyGave, heir))
	r.mark(keyLeaving)
	return nil
}

// Leaving returns to whom this node has passed on its rights; ok is false if it
// has not.
func (r *Rights) Leaving() (heir crdt.NodeID, ok bool) {
	if r.book.next.leaving == nil {
		return crdt.NodeID{}, false
	}
	return r.book.next.leaving.heir, true
}

// final returns the ledger as it is passed on; ok is false before that is written.
func (r *Rights) final() (f Final, ok bool) {
	if r.book.disk.leaving == nil {
		return Final{}, false
	}
	return r.lastLedger(*r.book.disk.leaving), true
}

// LedgerSize is how many bytes the last ledger of this node takes, as [AppendFinal] writes it.
func (r *Rights) LedgerSize() int { return len(AppendFinal(nil, r.lastLedger(leaving{}))) }

func (r *Rights) lastLedger(to leaving) (f Final) {
	disk := &r.book.disk
	f = Final{
		Node: r.cfg.Self.Node, Heir: to.heir, InUse: to.inUse,
		Span: time.Duration(disk.span) * time.Millisecond,
	}
	if r.cfg.LeaveOut&FreshMint == 0 {
		f.Minting, f.MintAfter = Minting{true, disk.minted}, r.mintAfter()
	}
	for id, a := range disk.accounts {
		f.Accounts = append(f.Accounts, Account{id, a.gave, a.rcv, a.code})
	}
	slices.SortFunc(f.Accounts, func(a, b Account) int { return a.Node.Compare(b.Node) })
	for leaver, minting := range disk.taken {
		h := Inherited{Leaver: leaver, Minting: minting}
		for _, x := range disk.inherited[leaver] {
			h.Accounts = append(h.Accounts, x)
		}
		slices.SortFunc(h.Accounts, func(a, b Receipt) int { return a.From.Compare(b.From) })
		f.Inherited = append(f.Inherited, h)
	}
	slices.SortFunc(f.Inherited, func(a, b Inherited) int { return a.Leaver.Compare(b.Leaver) })
	f.Recovered, f.Closings = r.Recovered(), disk.closings()
	return f
}

// HandsOver reports whether the heir has not acknowledged yet what this node passes on.
func (r *Rights) HandsOver() bool { return r.book.disk.leaving != nil && !r.left }

// HandoverDue returns what is to be sent now to the heir, or to whoever answers
// for it, until it is acknowledged.
func (r *Rights) HandoverDue(now time.Time) (Handover, bool) {
	if r.book.disk.leaving == nil || r.left || r.book.failed || !r.ownRare().out.hand.due(r.elapsed(now)) {
		return Handover{}, false
	}
	f, _ := r.final()
	return Handover{Room: r.cfg.Room, Final: f, Code: r.cfg.Code(r.cfg.Room, f.Heir, f.gave(f.Heir))}, true
}

// Left returns the final ledger of this node once its heir has taken over, or was
// declared dead: then whoever recovers the heir's rights finds them among those.
func (r *Rights) Left() (Final, bool) {
	l := r.book.disk.leaving
	if l == nil {
		return Final{}, false
	}
	if _, dead := r.book.disk.dead[l.heir]; !dead && !r.left {
		return Final{}, false
	}
	return r.final()
}

// TakeOver takes what a leaver passes on to this node, its heir. It counts, its
// block opens and it is acknowledged once it is written. It returns false where that
// is not for this node to take: the leaver's rights may be recovered then.
func (r *Rights) TakeOver(h Handover, now time.Time) bool {
	f := h.Final
	sum := f.gave(f.Heir)
	if r.promised(f.Node) || r.stopped() || f.Node == r.cfg.Self.Node || !sane(sum) || f.InUse < 0 || f.InUse > maxRights || !r.answersFor(f.Heir) {
		return false
	}
	if !r.answersFor(f.Node) {
		if r.closed(f.Node) {
			return false // it comes late: somebody has all that it says
		}
		r.bookTakeover(h, now)
	}
	if ack := (Received{Room: h.Room, From: f.Node, To: f.Heir, Gave: sum, Handover: true}); !slices.Contains(r.out.acks, ack) && len(r.out.acks) < maxAcks {
		r.ownRare().out.acks = append(r.out.acks, ack)
	}
	return true
}

// promised reports whether anybody else may recover a node's rights by the word of this one, or this one has. A
// word that was only ever for this node, or for one whose rights it has, is nobody else's to go by: without it
// nobody has recovered that node, nor will.
func (r *Rights) promised(id crdt.NodeID) bool {
	by, fenced := r.book.next.dead[id]
	_, done := r.book.next.recovered[id]
	return done || fenced && (by.after > 0 || !r.answersFor(by.heir))
}

// takeover is a hand-over that is being written.
type takeover struct {
	final Final
	rate  int64 // rate rights that came with it
}

// bookTakeover books a hand-over, which is written in one batch.
func (r *Rights) bookTakeover(h Handover, now time.Time) {
	f, next := h.Final, &r.book.next
	before := next.received()
	r.accept(f.Node, f.Heir, f.gave(f.Heir), h.Code) // also of one that is fenced: see promised
	rate := next.received().Sub(before).Rate
	r.answerFor(f.Node, f.Counted())
	for _, a := range f.Accounts {
		if sane(a.Rcv) && !a.Rcv.IsZero() {
			r.inherit(f.Node, Receipt{From: a.Node, Base: a.Rcv, Rcv: a.Rcv, Code: a.Code})
		}
	}
	for _, h := range f.Inherited {
		r.answerFor(h.Leaver, h.Minting)
		for _, x := range h.Accounts {
			if sane(x.Rcv) {
				r.inherit(h.Leaver, Receipt{From: x.From, Base: x.Rcv, Rcv: x.Rcv, Code: x.Code})
			}
		}
	}
	for _, x := range f.Recovered {
		if _, known := next.recovered[x.Dead]; !known {
			set(&next.own().recovered, x.Dead, recovery{minted: x.Minted, turn: x.Turn})
			r.mark(keyOf(keyRecovered, x.Dead))
		}
	}
	// What this node itself has given to them is on no way any more.
	for id := range next.taken {
		r.credit(Transfer{From: r.cfg.Self.Node, To: id, Gave: next.accounts[id].gave})
	}
	r.inheritClosings(f.Node, f.Closings)
	r.Settle(f, r.cfg.Self.Node)
	r.inheritMintAfter(f, now)
	set(&r.ownRare().taking, f.Node, takeover{f, rate})
	next.bound = next.bound.Add(Amount{f.InUse, rate})
	r.book.mark(keyBound)
	r.leases.longest = max(r.leases.longest, f.Span.Milliseconds())
	r.setSpan()
}

// answerFor takes what others gave to a node from now on, and knows what that has minted.
func (r *Rights) answerFor(of crdt.NodeID, minting Minting) {
	set(&r.book.next.own().taken, of, minting)
	r.mark(keyOf(keyTaken, of))
}

func (r *Rights) inherit(leaver crdt.NodeID, x Receipt) {
	r.book.next.inherit(leaver, x)
	r.mark(keyOf(keyInherited, leaver, x.From))
}

// tookOver opens the block of a leaver whose hand-over is written.
func (r *Rights) tookOver(leaver crdt.NodeID, now time.Time) {
	r.out.drop(leaver)
	taken, ok := r.taking[leaver]
	if !ok { // came along with another
		return
	}
	delete(r.taking, leaver)
	f := taken.final
	b := block{anchors: []crdt.NodeID{leaver}}
	for _, h := range f.Inherited {
		b.anchors = append(b.anchors, h.Leaver)
	}
	for _, x := range f.Recovered {
		b.anchors = append(b.anchors, x.Dead)
	}
	r.leases.openBlock(int(f.InUse), b, r.blockEnd(now).UnixMilli())
	r.reckon(now)
	// Which of them were used, and when, stays with the leaver.
	r.cool(taken.rate, r.elapsed(now)+ms(NewFor))
}

// Written reports whether all of the ledger is written.
func (r *Rights) Written() bool { return r.book.clean() }

// TakesOver reports whether something is taken over that is not written yet.
func (r *Rights) TakesOver() bool { return len(r.taking) > 0 }

// Receives reports whether something came from other nodes that is not written yet.
func (r *Rights) Receives() bool {
	for key := range r.book.dirty {
		if strings.HasPrefix(key, keyRcv) || strings.HasPrefix(key, keyInherited) {
			return true
		}
	}
	return r.TakesOver()
}

// answersFor reports whether this node answers for what that one gave and was
// given.
func (r *Rights) answersFor(id crdt.NodeID) bool {
	_, taken := r.book.next.taken[id]
	return taken || id == r.cfg.Self.Node
}

// AnswersFor returns, in order, the other nodes whose tickets this node answers
// for.
func (r *Rights) AnswersFor() []crdt.NodeID {
	return slices.Compact(slices.SortedFunc(r.Predecessors(), crdt.NodeID.Compare))
}

// Predecessors yields what AnswersFor returns, in no order, and some of it twice.
func (r *Rights) Predecessors() iter.Seq[crdt.NodeID] {
	return func(yield func(crdt.NodeID) bool) {
		for id := range r.book.disk.taken {
			if !yield(id) {
				return
			}
		}
		for id := range r.book.disk.recovered {
			if !yield(id) {
				return
			}
		}
	}
}

// Settle takes what a node that has left had given to this one, or to one whose
// heir it is, from its final ledger: there is nobody any more to send it. A node
// that passes on its own rights takes nothing; its heir will.
//
// Keeper is who answers for the leaver by now; zero if nobody is known to. Who has a
// keeper is not dead, though a node may have been told so that had not heard of the
// leaving, and refuses it: gifts that were on their way between those two arrive all
// the same, as long as the keeper is not refused as well. Where the leaver is refused
// here, a keeper is to be named only once it has told that it has taken over: before that, it
// may recover the leaver by the word that this node has given, with the gifts in it.
func (r *Rights) Settle(f Final, keeper crdt.NodeID) {
	if (keeper != crdt.NodeID{}) && !r.book.next.closed[f.Node].folded {
		set(&r.ownRare().keepers, f.Node, keeper)
	}
	if r.book.next.leaving != nil || r.refused(f.Node) {
		return
	}
	for _, a := range f.Accounts {
		if a.Node != f.Heir && r.answersFor(a.Node) {
			r.accept(f.Node, a.Node, a.Gave, 0)
		}
	}
}

// ForgetKeepers forgets who answers for nodes of which nothing is known any more.
func (r *Rights) ForgetKeepers(unknown func(crdt.NodeID) bool) {
	for id := range r.keepers {
		if unknown(id) && !r.answersFor(id) {
			packed.Delete(&r.keepers, id)
		}
	}
}
