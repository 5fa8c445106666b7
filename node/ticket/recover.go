package ticket

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// ErrWords says that the word of a node is missing, or was given to another heir.
var ErrWords = errors.New("not everybody has given their word on the dead")

// Word is what a node has given to a dead one and received from it, and never
// will give or receive more, and for whom that is said: it stands until the node
// gives it in a later round. Without an heir it says that the node has taken over from
// that one, so that nobody is to recover it alone. The zero value is nobody's.
type Word struct {
	Node, Dead, Heir crdt.NodeID
	Round            int64
	Gave, Rcv        Amount
	For              []ReceivedFor
}

// ReceivedFor is what a node has received for one that has left its rights to it, beyond what that one had.
type ReceivedFor struct {
	Leaver crdt.NodeID
	Rcv    Amount
}

// Estate is all that has to be known to recover the rights of dead nodes. Their
// rights are what was minted by them, and given to them by others, without what
// others received from them: what went from one of them to another is in it
// either way. So all of them are recovered together.
type Estate struct {
	// Dead is every dead node whose rights no living node holds, having recovered
	// them or being the heir of who did and left; and every node that left with
	// one of these as its heir.
	Dead []crdt.NodeID

	// Minted is what each of Dead has minted, as far as anybody knows, with what was minted in its closings.
	Minted []Amount

	// Needed is every known node, this one too, that is not dead and has not left.
	Needed []crdt.NodeID

	// Words is all that were ever given, and Finals the ledger of every node that
	// has left: those that are not needed are passed over.
	Words  []Word
	Finals []Final

	// Recovered is every node whose rights were recovered before, and in which turn.
	Recovered map[crdt.NodeID]int64

	// Closings is what the dead have dealt with nodes that have left before, as they have told.
	Closings map[crdt.NodeID]Closings

	// Session is the longest that sessions of the dead may last, as far as is known;
	// those of this node may be longer.
	Session time.Duration
}

// Fence refuses a node that is dead, or left with a dead one as its heir, for
// good: nothing is given to it or received from it any more. From now on this
// node's word on it is for heir, if round, from 1, is later than the one in which
// it was given before. A round is a number that grows with what a node knows of who
// is dead, has left and may be heir, and is the same for all who know the same: so
// all come to agree, whatever each of them heard first.
//
// Who has left its rights to this node is not dead, whatever anybody says: they are
// here.
func (r *Rights) Fence(dead, heir crdt.NodeID, round int64, now time.Time) {
	was, fenced := r.book.next.dead[dead]
	_, done := r.book.next.recovered[dead]
	if fenced && (round <= was.round || done) || r.answersFor(dead) || r.book.next.closed[dead].folded {
		return
	}
	is := fence{heir, round, was.after}
	if fenced && was.heir != heir {
		is.after = max(1, was.round) // a version without rounds wrote 0
	}
	set(&r.book.next.own().dead, dead, is)
	r.mark(keyOf(keyDead, dead))
}

// fenced reports whether nothing is taken from a node or given to it. Whose recovered rights came with those of a leaver is, also
// where that is not known otherwise yet.
func (r *Rights) fenced(id crdt.NodeID) bool {
	_, dead := r.book.next.dead[id]
	_, recovered := r.book.next.recovered[id]
	return (dead || recovered || r.book.next.closed[id].recovered) && r.cfg.LeaveOut&Fence == 0
}

// refused reports whether even what is on its way to a node or from it is nobody's to
// take but who recovers its rights: it is fenced, and no keeper is known of it that is
// not.
func (r *Rights) refused(id crdt.NodeID) bool {
	keeper, left := r.keepers[id]
	return r.fenced(id) && (!left || r.fenced(keeper))
}

// Refuses reports whether this node has fenced another one, and does not have its rights.
func (r *Rights) Refuses(id crdt.NodeID) bool { return r.fenced(id) && !r.answersFor(id) }

// Frozen returns this node's word on a dead node, once its fence is written. On one from which it has
// taken over it gives none: see Taken.
func (r *Rights) Frozen(dead crdt.NodeID) (Word, bool) {
	by, fenced := r.book.disk.dead[dead]
	if _, taken := r.book.disk.taken[dead]; !fenced || taken {
		return Word{}, false
	}
	w := r.dealt(dead)
	w.Heir, w.Round = by.heir, by.round
	return w, true
}

// Taken returns the word without an heir on one that has left its rights to this node, once these are
// written. It is told in place of one that this node may have given before, and by which nobody recovers
// the leaver any more: it was only ever for this node, or for one whose rights it has.
func (r *Rights) Taken(leaver crdt.NodeID) (Word, bool) {
	_, taken := r.book.disk.taken[leaver]
	return r.dealt(leaver), taken
}

// dealt returns what this node has dealt with another one, as far as it is written.
func (r *Rights) dealt(id crdt.NodeID) Word {
	disk := &r.book.disk
	x := disk.accounts[id]
	w := Word{Node: r.cfg.Self.Node, Dead: id, Gave: x.gave, Rcv: x.rcv}
	for leaver, m := range disk.inherited {
		if more := m[id].Rcv.Sub(m[id].Base); !more.IsZero() {
			w.For = append(w.For, ReceivedFor{leaver, more})
		}
	}
	slices.SortFunc(w.For, func(a, b ReceivedFor) int { return a.Leaver.Compare(b.Leaver) })
	return w
}

// Recover takes over the rights of dead nodes whose heir this node is. Once that
// is written, sessions that they anchored may go on here, and what they had is
// locked for as long as such sessions may last elsewhere. What is recovered
// already is left alone. It fails with ErrWords while words are missing, and with
// ErrBusy if nothing can be written.
func (r *Rights) Recover(in Estate, now time.Time) error {
	if len(in.Minted) != len(in.Dead) {
		panic("ticket: an estate says how much each of the dead has minted")
	}
	in = in.without(r.book.next.recovered)
	switch {
	case len(in.Dead) == 0:
		return nil
	case r.stopped(), len(r.estate) > 0:
		return ErrBusy
	}
	if err := r.agreed(in); err != nil {
		return err
	}
	sum := in.sum(r.cfg.LeaveOut&FinalLedgers == 0)
	next := &r.book.next
	turn := in.nextTurn()
	for i, id := range in.Dead {
		x := recovery{minted: in.Minted[i], turn: cmp.Or(in.Recovered[id], turn)}
		if i == 0 {
			x.rights = sum
		}
		set(&next.own().recovered, id, x)
		r.mark(keyOf(keyRecovered, id))
	}
	// Others hold more than the dead are known to have minted: they did mint it.
	if missing := (Amount{}).Sub(sum).Max(Amount{}); !missing.IsZero() {
		next.minted = next.minted.Add(missing)
		r.mark(keyMinted)
	}
	next.bound = next.bound.Add(sum.Max(Amount{}))
	r.book.mark(keyBound)
	r.outlast(in.Session, now)
	rare := r.ownRare()
	rare.estate, rare.estateSum = in.Dead, sum
	r.limit.mintAfter = r.unknownEnd(now).UnixNano()
	return nil
}

// without returns the estate without those who were recovered already.
func (in Estate) without(done map[crdt.NodeID]recovery) Estate {
	out := in
	out.Dead, out.Minted = nil, nil
	for i, id := range in.Dead {
		if _, ok := done[id]; !ok {
			out.Dead, out.Minted = append(out.Dead, id), append(out.Minted, in.Minted[i])
		}
	}
	return out
}

// nextTurn returns the number of a recovery that comes after those before.
func (in Estate) nextTurn() (turn int64) {
	for _, n := range in.Recovered {
		turn = max(turn, n)
	}
	return turn + 1
}

// agreed fails unless every node that is needed has given its word on every dead
// one to this node, in a round later than the last in which this node itself was for
// another one.
//
// So nobody recovers a node twice. Of two who might, each needs the other's word. Who
// has recovered gives none any more, so the second would have to rest on one that the
// first gave before it was for itself: in a round before that of the word of the
// second that it rested on, and that in turn the second gave before it was for itself.
// A word so old does not count.
//
// All words of one node have to be of one round, which it gives together: until it
// refuses whoever keeps the rights of one that has left, it may still take what that
// one had given it, and what it said of that one before is no longer true.
func (r *Rights) agreed(in Estate) error {
	words := map[wordOn]Word{}
	for _, w := range in.Words {
		words[wordOn{w.Node, w.Dead}] = w
	}
	rounds := map[crdt.NodeID]int64{}
	for _, dead := range in.Dead {
		mine := r.book.next.dead[dead]
		if _, taken := r.book.next.taken[dead]; taken {
			return fmt.Errorf("%s has left to this node: %w", dead, ErrWords)
		}
		for _, node := range in.Needed {
			w, ok := words[wordOn{node, dead}]
			if !ok || w.Heir != r.cfg.Self.Node || mine.heir != w.Heir || w.Round <= mine.after {
				return fmt.Errorf("%s on %s: %w", node, dead, ErrWords)
			}
			if round, known := rounds[node]; known && round != w.Round {
				return fmt.Errorf("%s on %s, in round %d and not %d: %w", node, dead, w.Round, round, ErrWords)
			}
			rounds[node] = w.Round
		}
	}
	return nil
}

type wordOn struct{ node, dead crdt.NodeID }

// sum returns what the dead own: what they minted, and what came in from each node
// that is not one of them. It is less than nothing only if they minted more than
// is known.
func (in Estate) sum(finals bool) (sum Amount) {
	for _, a := range in.Minted {
		sum = sum.Add(a)
	}
	for _, dead := range in.Dead {
		p := in.Closings[dead]
		sum = sum.Add(p.Rcv).Sub(p.Gave).Sub(p.AllMinted(in.Dead...))
		for _, c := range p.Closed {
			if !slices.Contains(in.Dead, c.Node) {
				sum = sum.Add(c.Rcv).Sub(c.Gave)
			}
		}
	}
	b := in.dealings(finals)
	for _, dead := range in.Dead {
		for _, with := range b.nodes {
			sum = sum.Add(b.between(dead, with))
		}
	}
	return sum
}

// papers are the words and final ledgers of an estate, by node.
type papers struct {
	nodes     []crdt.NodeID // all but the dead, each once
	living    map[crdt.NodeID]bool
	recovered map[crdt.NodeID]int64
	words     map[wordOn]Word
	finals    map[crdt.NodeID]Final
	closings  map[crdt.NodeID]Closings
}

func (in Estate) dealings(finals bool) papers {
	b := papers{living: map[crdt.NodeID]bool{}, recovered: in.Recovered, words: map[wordOn]Word{}, finals: map[crdt.NodeID]Final{}, closings: in.Closings}
	for _, id := range in.Needed {
		b.living[id] = true
		b.nodes = append(b.nodes, id)
	}
	for _, w := range in.Words {
		b.words[wordOn{w.Node, w.Dead}] = w
		b.nodes = append(b.nodes, w.Node, w.Dead)
	}
	for _, f := range in.Finals {
		if finals {
			b.finals[f.Node] = f
		}
		b.nodes = append(b.nodes, f.Node)
		for _, a := range f.Accounts {
			b.nodes = append(b.nodes, a.Node)
		}
	}
	slices.SortFunc(b.nodes, crdt.NodeID.Compare)
	b.nodes = slices.DeleteFunc(slices.Compact(b.nodes), func(id crdt.NodeID) bool { return slices.Contains(in.Dead, id) })
	return b
}

// between returns what a dead node has of its dealings with another one. With a node whose rights
// were recovered earlier, that is what was reckoned with then: the word that the dead one gave on
// it, or that it gave on the dead one, if that was recovered first and its heir is lost as well; or
// the last ledger of the dead one, if it had left before, and was not recovered first. Who has left gives no words, so there is
// one of the two at most. A gift of the other that was on its way went back
// to the giver with that, and one that the other's heir had taken stayed there, also if the other
// had left and its last ledger has it otherwise.
//
// What a dead node says itself of one that has left counts, where it says so: others may not know it any more. What
// somebody has received from it for that one is in what it says, and is in no word and no last ledger, then. What
// either has received from the other for leavers of which it says nothing is not in what it says of the two, unless it has
// heard that the other one was recovered.
func (b papers) between(dead, with crdt.NodeID) Amount {
	own := b.closings[dead]
	w, spoke := b.words[wordOn{dead, with}]
	if own.Names(with) {
		return b.forOthers(dead, with)
	}
	o, answered := b.words[wordOn{with, dead}]
	f, left := b.finals[dead]
	switch was := b.before(with); {
	case was && spoke:
		return w.received(own).Sub(w.Gave)
	case was && b.before(dead) && answered:
		return o.Gave.Sub(o.received(own))
	case was && left && !b.first(dead, with):
		return f.received(with, own).Sub(f.gave(with))
	}
	if g, gone := b.finals[with]; gone && !b.living[with] {
		return g.gave(dead).Sub(g.received(dead, own))
	}
	switch {
	case b.living[with]:
	case left:
		return f.received(with, own).Sub(f.gave(with))
	case spoke:
		return w.received(own).Sub(w.Gave)
	}
	return o.Gave.Sub(o.received(own))
}

// before reports whether a node was recovered before.
func (b papers) before(id crdt.NodeID) bool {
	_, was := b.recovered[id]
	return was
}

// first reports whether a dead node was recovered before another one was: what the other one said of the two was reckoned with then, and
// nothing else ever is.
func (b papers) first(dead, with crdt.NodeID) bool {
	return b.before(dead) && b.recovered[dead] < b.recovered[with]
}

// forOthers returns what a dead node has of its dealings with another one beyond what it says itself of them.
func (b papers) forOthers(dead, with crdt.NodeID) (none Amount) {
	own := b.closings[dead]
	w, spoke := b.words[wordOn{dead, with}]
	f, left := b.finals[dead]
	switch {
	case !b.before(with), b.first(dead, with):
		return none.Sub(b.finals[with].receivedForOthers(dead, own))
	case own.told(with, true):
	case spoke:
		return w.receivedForOthers(own)
	case left:
		return f.receivedForOthers(with, own)
	}
	return none
}

// received returns all that the word says was received, but for nodes of which own says it.
func (w Word) received(own Closings) Amount { return w.Rcv.Add(w.receivedForOthers(own)) }

func (w Word) receivedForOthers(own Closings) (sum Amount) {
	for _, x := range w.For {
		if !own.Names(x.Leaver) {
			sum = sum.Add(x.Rcv)
		}
	}
	return sum
}

// lock keeps rights whose recovery is written aside until no session that used
// them can last any more.
func (r *Rights) lock(id crdt.NodeID, now time.Time) {
	if len(r.estate) == 0 || id != r.estate[0] {
		return
	}
	anchors := r.estate
	r.estate, r.estateSum = nil, Amount{}
	r.limit.mintAfter = r.unknownEnd(now).UnixNano()
	if r.cfg.LeaveOut&RecoveryLock != 0 {
		return
	}
	sum := r.book.disk.recovered[id].rights.Max(Amount{})
	r.leases.openBlock(int(sum.Places), block{anchors: anchors}, r.blockEnd(now).UnixMilli())
	r.reckon(now)
	r.cool(sum.Rate, r.elapsed(now)+ms(NewFor))
}

// Recovery says that a dead node's rights were recovered, and what it had minted
// as far as that was known then. From then on this is what it has minted: if it
// was more, that is lost or was minted once more. Recoveries are numbered in turn, and a node keeps the number of its first.
type Recovery struct {
	Dead   crdt.NodeID
	Minted Amount
	Turn   int64
}

// Recovered returns the nodes whose rights are among this one's, in order.
func (r *Rights) Recovered() []Recovery {
	var out []Recovery
	for id, x := range r.book.disk.recovered {
		out = append(out, Recovery{id, x.minted, x.turn})
	}
	slices.SortFunc(out, func(a, b Recovery) int { return a.Dead.Compare(b.Dead) })
	return out
}
