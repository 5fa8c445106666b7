package ticket

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/packed"
)

// What a ledger keeps of nodes that have left. An account with one is closed once nothing is on its way
// between the two: from then on neither gives the other anything or takes anything of it, whatever comes late. It
// is folded once all other nodes go on without it: its sums go on counting, and the account is gone. Who keeps the
// rights of the one that left folds it first, with all that it has received for it. In the end
// the sums are added to those of all before, and nothing is left that names the node.
//
// What this node has dealt with nodes whose accounts are closed it tells the others (Closings): that is
// how its own rights can be recovered where nobody else knows any more what those gave it.

// closing is an account that is closed.
type closing struct {
	folded    bool
	kept      bool   // the rights of that node are here, and what it had minted is counted as in this one's closings
	recovered bool   // somebody has recovered it: what it had given, and nobody had taken, is among that
	gave, rcv Amount // in place of the account; nothing before it is folded
	minted    Amount // by that node, and by those whose rights it kept in turn
}

// sums are what is left of accounts that were folded and are named no more.
type sums struct {
	gave, rcv, minted Amount
	steps             int64 // that were taken to there
}

// Closings is what a node has dealt with nodes that have left, where their accounts are closed.
type Closings struct {
	Gave, Rcv Amount // with those that are named no more
	Minted    Amount // by those of them whose rights the node keeps
	Steps     int64  // how often the node has closed or folded an account: a ledger that says less is older
	Closed    []ClosedAccount
}

// ClosedAccount is what a node says of its account with one that has left: it stays so.
type ClosedAccount struct {
	Node      crdt.NodeID
	Gave, Rcv Amount
	Kept      bool // the rights of Node are among those of who says it, and Minted is what it had minted
	Recovered bool // somebody has recovered Node, and in Rcv is what was received of it for others too; see receivedForOthers
	Minted    Amount
}

// IsZero reports whether a node has none.
func (p Closings) IsZero() bool {
	return p.Gave.IsZero() && p.Rcv.IsZero() && p.Minted.IsZero() && len(p.Closed) == 0
}

// Names reports whether a node says of another one what it has dealt with it.
func (p Closings) Names(id crdt.NodeID) bool {
	return slices.ContainsFunc(p.Closed, func(c ClosedAccount) bool { return c.Node == id })
}

// Stands reports whether by, who has told p, is recovered by that alone as far as its dealings with another node go, and by nothing
// that is known of that one. Final is its last ledger, if there is one: it may have received something from by for leavers of
// which p does not say it. Where it was recovered, by may have received something of it for leavers, and have told p before.
func (p Closings) Stands(by, id crdt.NodeID, final Final, recovered bool) bool {
	return p.told(id, recovered) && final.receivedForOthers(by, p).IsZero()
}

func (p Closings) told(id crdt.NodeID, recovered bool) bool {
	return slices.ContainsFunc(p.Closed, func(c ClosedAccount) bool { return c.Node == id && (c.Recovered || !recovered) })
}

// Keeps reports whether a node says that it has the rights of another one for good.
func (p Closings) Keeps(id crdt.NodeID) bool {
	return slices.ContainsFunc(p.Closed, func(c ClosedAccount) bool { return c.Node == id && c.Kept })
}

// AllMinted returns what nodes had minted whose rights are a node's for good, but for some.
func (p Closings) AllMinted(but ...crdt.NodeID) Amount {
	sum := p.Minted
	for _, c := range p.Closed {
		if !slices.Contains(but, c.Node) {
			sum = sum.Add(c.Minted)
		}
	}
	return sum
}

// Closings returns what is confirmed of accounts that are closed. Of those whose rights this node has it says nothing
// before they are folded: until then they are recovered with its own.
func (r *Rights) Closings() Closings { return r.book.disk.closings() }

func (l *ledger) closings() Closings {
	p := Closings{Gave: l.sums.gave, Rcv: l.sums.rcv, Minted: l.sums.minted, Steps: l.sums.steps}
	for id, c := range l.closed {
		p.Steps += c.steps()
		if !c.folded && l.keeps(id) {
			continue
		}
		x := ClosedAccount{Node: id, Gave: c.gave, Rcv: c.rcv, Kept: c.kept, Recovered: c.recovered, Minted: c.minted}
		if !c.folded {
			a := l.accounts[id]
			x.Gave, x.Rcv = a.gave, a.rcv
		}
		if c.recovered {
			x.Rcv = x.Rcv.Add(l.receivedForOthers(id))
		}
		p.Closed = append(p.Closed, x)
	}
	slices.SortFunc(p.Closed, func(a, b ClosedAccount) int { return a.Node.Compare(b.Node) })
	return p
}

// steps returns how many were taken with an account.
func (c closing) steps() int64 {
	if c.folded {
		return 2
	}
	return 1
}

// ClosedSteps returns Closings.Steps of what an earlier start of a node has stored of a room. It returns false if
// there is nothing, or it cannot be read.
func ClosedSteps(stored []Put) (int64, bool) {
	b, err := openBook(stored)
	return b.disk.closings().Steps, err == nil && len(stored) > 0
}

// receivedForOthers returns what came from a node for those that have left to this one and whose accounts are not folded,
// beyond what these had. Of a node that was recovered no last ledger says that: it counts as what nobody had taken.
func (l *ledger) receivedForOthers(from crdt.NodeID) (sum Amount) {
	for _, m := range l.inherited {
		sum = sum.Add(m[from].Rcv.Sub(m[from].Base))
	}
	return sum
}

// keeps reports whether the rights of another node are among those of this ledger.
func (l *ledger) keeps(id crdt.NodeID) bool {
	_, taken := l.taken[id]
	_, recovered := l.recovered[id]
	return taken || recovered
}

// NeverDealt reports whether this ledger says nothing of another node.
func (r *Rights) NeverDealt(id crdt.NodeID) bool {
	next := &r.book.next
	_, dealt := next.accounts[id]
	_, refused := next.dead[id]
	return !dealt && !refused && !next.keeps(id) && !r.closed(id)
}

// CloseDead closes the account with a node whose rights somebody has recovered. Nothing has come of it since it is refused.
// It goes on being refused until it is named no more, also where it was closed as one that had left. CloseDead reports
// whether that is confirmed.
func (r *Rights) CloseDead(id crdt.NodeID) bool {
	c := r.book.next.closed[id]
	if c.recovered {
		return r.book.disk.closed[id].recovered
	}
	if _, refused := r.book.disk.dead[id]; r.stopped() || !refused && !c.folded || len(r.estate) > 0 {
		return false
	}
	c.recovered = true
	set(&r.book.next.own().closed, id, c)
	r.mark(keyOf(keyClosed, id))
	return false
}

// CloseAccount closes the account with a node that has left, as its last ledger has it, unless something
// is on its way between the two, or a recovery may hang on it. It reports whether that is confirmed.
func (r *Rights) CloseAccount(f Final) bool {
	if _, closed := r.book.next.closed[f.Node]; closed {
		_, confirmed := r.book.disk.closed[f.Node]
		return confirmed
	}
	if r.stopped() || r.refused(f.Node) || f.Node == r.cfg.Self.Node || !r.nothingOpen(f) {
		return false
	}
	set(&r.book.next.own().closed, f.Node, closing{})
	r.mark(keyOf(keyClosed, f.Node))
	return false
}

// nothingOpen reports whether all has arrived, and is confirmed, that this node and one that has left have given each other.
func (r *Rights) nothingOpen(f Final) bool {
	disk := &r.book.disk
	if _, sends := r.out.find(f.Node); sends || disk.accounts[f.Node] != r.book.next.accounts[f.Node] {
		return false
	}
	if _, confirmed := disk.taken[f.Node]; r.answersFor(f.Node) && (!confirmed || len(r.taking) > 0) {
		return false
	}
	return disk.accounts[f.Node].rcv == f.gave(r.cfg.Self.Node)
}

// Folded reports whether the account with a node is folded and that is confirmed.
func (r *Rights) Folded(id crdt.NodeID) bool { return r.book.disk.closed[id].folded }

// Anchors reports whether somebody may come back here by a ticket of another node, whose rights this one has.
func (r *Rights) Anchors(id crdt.NodeID) bool { return r.book.disk.keeps(id) && r.leases.anchored(id) }

// MayFold reports whether an account that is closed may be folded as far as this node is concerned: nothing of it is being
// written.
func (r *Rights) MayFold(id crdt.NodeID) bool {
	disk, next := &r.book.disk, &r.book.next
	c, closed := disk.closed[id]
	if r.stopped() || !closed || next.closed[id].folded || next.closed[id] != c || disk.accounts[id] != next.accounts[id] || disk.keeps(id) != next.keeps(id) {
		return false
	}
	if was, taken := disk.taken[id]; taken && !was.Known {
		return false
	}
	for from, x := range next.inherited[id] {
		if disk.inherited[id][from] != x {
			return false
		}
	}
	return true
}

// Fold folds an account for which MayFold holds. What a node whose rights are here had minted counts from now on as this
// one's closings.
func (r *Rights) Fold(id crdt.NodeID) {
	if !r.MayFold(id) {
		return
	}
	next := &r.book.next
	l := next.own()
	a := next.accounts[id]
	c := closing{folded: true, recovered: next.closed[id].recovered, gave: a.gave, rcv: a.rcv}
	if minting, taken := next.taken[id]; taken {
		c.kept, c.minted = true, minting.Minted
		for from, x := range next.inherited[id] {
			c.rcv = c.rcv.Add(x.Rcv.Sub(x.Base))
			r.mark(keyOf(keyInherited, id, from))
		}
		packed.Delete(&l.taken, id)
		packed.Delete(&l.inherited, id)
		r.mark(keyOf(keyTaken, id))
	}
	if x, recovered := next.recovered[id]; recovered {
		c.kept, c.recovered, c.minted = true, true, x.minted
		c.rcv = c.rcv.Add(x.rights.Max(Amount{}))
		c.gave = c.gave.Sub(x.rights.Min(Amount{}))
		packed.Delete(&l.recovered, id)
		r.mark(keyOf(keyRecovered, id))
	}
	if _, refused := next.dead[id]; refused {
		packed.Delete(&l.dead, id)
		r.mark(keyOf(keyDead, id))
	}
	packed.Delete(&l.accounts, id)
	l.closed[id] = c
	for _, kind := range []string{keyGave, keyRcv, keyClosed} {
		r.mark(keyOf(kind, id))
	}
	packed.Delete(&r.keepers, id)
	r.out.drop(id) // of who was recovered: what it was given, and had not taken, is with the rest of its rights
}

// MayKeep returns those of some nodes, whose rights this node has and whose accounts all have closed, that it may fold. Some
// hang together, and are folded at once or not at all: a node had received something for another one that had left to it, or
// this node has for one of them from another one that has left. Kept are nodes that were folded before, there those that have
// not left, and finals the last ledgers of all others.
func (r *Rights) MayKeep(may []crdt.NodeID, kept, there func(crdt.NodeID) bool, finals map[crdt.NodeID]Final) []crdt.NodeID {
	in := slices.DeleteFunc(slices.Clone(may), func(id crdt.NodeID) bool { return !r.MayFold(id) })
	goes := func(id crdt.NodeID) bool {
		return kept(id) || r.book.next.closed[id].folded || slices.Contains(in, id)
	}
	for {
		n := len(in)
		in = slices.DeleteFunc(slices.Clone(in), func(id crdt.NodeID) bool {
			return r.hangs(id, goes, there, finals)
		})
		if len(in) == n {
			return in
		}
	}
}

// hangs reports whether an account may not be folded, as one that does not go with it hangs together with it.
func (r *Rights) hangs(id crdt.NodeID, goes, there func(crdt.NodeID) bool, finals map[crdt.NodeID]Final) bool {
	next := &r.book.next
	for from, x := range next.inherited[id] {
		if x.Rcv != x.Base && !there(from) && !goes(from) {
			return true
		}
	}
	if _, recovered := next.recovered[id]; recovered { // several may have been at once, and the first has the rights of all
		for dead := range next.recovered {
			if !goes(dead) {
				return true
			}
		}
	}
	_, taken := next.taken[id]
	for of, f := range finals {
		if got := next.inherited[id][of].Rcv; taken && !next.closed[of].recovered && got.Max(f.gave(id)) != got {
			return true // it has not come from the last ledger yet
		}
		for _, h := range f.Inherited {
			if (of == id && !goes(h.Leaver) || h.Leaver == id && !goes(of)) && h.received() {
				return true
			}
		}
		for _, x := range f.Recovered {
			if of == id && !goes(x.Dead) || x.Dead == id && !goes(of) {
				return true
			}
		}
	}
	return false
}

// received reports whether anything was received for the leaver.
func (h Inherited) received() bool {
	return slices.ContainsFunc(h.Accounts, func(x Receipt) bool { return x.Rcv != x.Base })
}

// Unname adds an account that is folded to those that are named no more, unless something that was received of that node
// for one that has left is still told with it. It is for when nothing comes any more that the node in question has sent.
func (r *Rights) Unname(id crdt.NodeID) {
	next := &r.book.next
	c := next.closed[id]
	if r.stopped() || !c.folded || r.book.disk.closed[id] != c || !next.receivedForOthers(id).IsZero() {
		return
	}
	l := next.own()
	l.sums = sums{l.sums.gave.Add(c.gave), l.sums.rcv.Add(c.rcv), l.sums.minted.Add(c.minted), l.sums.steps + c.steps()}
	packed.Delete(&l.closed, id)
	r.mark(keySums)
	r.mark(keyOf(keyClosed, id))
}

// inheritClosings has this node take nothing any more of what nodes gave a leaver that had closed its accounts with them, and
// nothing at all from those whose rights were the leaver's for good.
func (r *Rights) inheritClosings(leaver crdt.NodeID, p Closings) {
	for _, c := range p.Closed {
		if !c.Rcv.IsZero() {
			r.inherit(leaver, Receipt{From: c.Node, Base: c.Rcv, Rcv: c.Rcv})
		}
		if _, known := r.book.next.closed[c.Node]; c.Kept && !known {
			set(&r.book.next.own().closed, c.Node, closing{folded: true, recovered: c.Recovered})
			r.mark(keyOf(keyClosed, c.Node))
		}
	}
}

func (r *Rights) closed(id crdt.NodeID) bool {
	_, closed := r.book.next.closed[id]
	return closed
}

// anchored reports whether tickets of another node may still come back here, or have.
func (l *Leases) anchored(id crdt.NodeID) bool {
	for _, b := range l.blocks {
		if slices.Contains(b.anchors, id) {
			return true
		}
	}
	for t := range l.claims {
		if t.Anchor == id {
			return true
		}
	}
	return false
}

// closing reads what appendClosing writes.
func (c *cursor) closing() (x closing) {
	flags := c.bytes(1)
	if len(flags) == 1 {
		x.folded, x.kept, x.recovered = flags[0]&1 != 0, flags[0]&2 != 0, flags[0]&4 != 0
	}
	x.gave, x.rcv, x.minted = c.amount(), c.amount(), c.amount()
	return x
}

func appendClosing(c closing) []byte {
	var flags byte
	if c.folded {
		flags |= 1
	}
	if c.kept {
		flags |= 2
	}
	if c.recovered {
		flags |= 4
	}
	return appendAmount(appendAmount(appendAmount([]byte{flags}, c.gave), c.rcv), c.minted)
}

func appendSums(s sums) []byte {
	return binary.AppendVarint(appendAmount(appendAmount(appendAmount(nil, s.gave), s.rcv), s.minted), s.steps)
}

// remove drops what stands under a key.
func (l *ledger) remove(key string) {
	kind, ids, err := splitKey(key)
	if err != nil {
		panic("ticket: " + err.Error())
	}
	id, of := ids[0], l.own()
	a := of.accounts[id]
	switch kind {
	case keyGave, keyRcv:
		if kind == keyGave {
			a.gave = Amount{}
		} else {
			a.rcv, a.code = Amount{}, 0
		}
		if set(&of.accounts, id, a); a == (dealings{}) {
			packed.Delete(&of.accounts, id)
		}
	case keyTaken:
		packed.Delete(&of.taken, id)
	case keyClosed:
		packed.Delete(&of.closed, id)
	case keyRecovered:
		packed.Delete(&of.recovered, id)
	case keyDead:
		packed.Delete(&of.dead, id)
	case keyInherited:
		if delete(of.inherited[id], ids[1]); len(of.inherited[id]) == 0 {
			packed.Delete(&of.inherited, id)
		}
	default:
		panic("ticket: " + key + " is never removed")
	}
}

// closingsVersion is that of what AppendClosings writes.
const closingsVersion = 1

// AppendClosings appends the encoding of p to dst.
func AppendClosings(dst []byte, p Closings) []byte {
	w := newBareWriter(dst, closingsVersion)
	w.closings(p)
	return w.buf.Bytes()
}

// DecodeClosings takes apart what AppendClosings wrote. What is not well formed is an error that
// wraps ErrMalformed.
func DecodeClosings(data []byte) (p Closings, err error) {
	r := newReader(data)
	r.version(closingsVersion)
	p = r.closings()
	if err := r.finish(); err != nil {
		return Closings{}, fmt.Errorf("closings: %w", err)
	}
	return p, nil
}

// minClosed is the least that a closed account takes: an id, three amounts and two flags.
const minClosed = 2 + 16 + 8

func (w writer) closings(p Closings) {
	w.amount(p.Gave)
	w.amount(p.Rcv)
	w.signed(p.Minted)
	w.number(uint64(max(0, p.Steps)))
	w.keep(w.enc.EncodeArrayLen(len(p.Closed)))
	for _, c := range p.Closed {
		w.keep(w.enc.EncodeBytes(c.Node[:]))
		w.amount(c.Gave)
		w.amount(c.Rcv)
		w.flag(c.Kept)
		w.flag(c.Recovered)
		w.signed(c.Minted)
	}
}

func (r *reader) closings() (p Closings) {
	p.Gave, p.Rcv, p.Minted, p.Steps = r.amount(), r.amount(), r.signed(), int64(r.number(maxCounted))
	for range r.items(minClosed) {
		var c ClosedAccount
		r.id(c.Node[:])
		c.Gave, c.Rcv, c.Kept, c.Recovered, c.Minted = r.amount(), r.amount(), r.flag(), r.flag(), r.signed()
		p.Closed = append(p.Closed, c)
	}
	return p
}
