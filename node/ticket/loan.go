package ticket

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// loans is what a node has lent to the counters of its site. The zero value is
// nothing.
//
// Invariant: places is the sum of what open loans have not registered, and rate
// that of their rate rights which were neither used nor given back.
type loans struct {
	open   []*lending // by block
	blocks uint32
	recall uint32 // the last block that is wanted back
	places int64
	rate   int64
}

// lending is one loan. Each of its tickets registers once: when it is reported, when
// it checks in, or when it is cancelled.
type lending struct {
	Loan
	at     int64 // when it was lent, elapsed ms
	heard  bool  // a report has arrived
	resend resend
	born   []uint64 // bits: tickets that have registered
	places int64    // not registered
	rate   int64    // rate rights aside
	until  int64    // of the unregistered, Unix ms
	cooled int64    // when their rate rights are ready, elapsed ms
}

// Lend lends up to n tickets to a counter and returns how many. LoansDue sends
// the loan; that there is none, the caller says.
func (r *Rights) Lend(to crdt.Incarnation, n int64, now time.Time) int64 {
	if r.cfg.Unlimited || to.Node == r.cfg.Self.Node || n <= 0 {
		return 0
	}
	free := r.usable(now)
	n = r.reserve(min(n, maxLoan), min(free.Places, free.Rate), Amount{1, 1}, now)
	if n <= 0 {
		return 0
	}
	r.ownRare().loans.blocks++
	x := &lending{
		Loan: Loan{
			Room: r.cfg.Room, To: to, Lender: r.cfg.Self, Block: r.loans.blocks,
			First: r.cfg.Seqs(uint64(n)), N: uint64(n), ValidUntil: now.Add(LoanValid), Session: r.Session(), Left: min(free.Places, free.Rate) - n,
		},
		at: r.elapsed(now), born: make([]uint64, (n+63)/64), places: n, rate: n,
		until: r.blockEnd(now).UnixMilli(), cooled: r.elapsed(now) + ms(loanTail+rateSpan),
	}
	if r.cfg.LeaveOut&LoanKept != 0 {
		x.until = x.ValidUntil.Add(Guard).UnixMilli()
		x.cooled = x.at + ms(LoanValid+Guard)
	}
	r.loans.open = append(r.loans.open, x)
	r.loans.places += n
	r.loans.rate += n
	return n
}

// maxLoan bounds the tickets of one loan, and so the memory that it takes.
const maxLoan = 1 << 20

// loanResend is how often a loan is sent until a report on it arrives.
const loanResend = 200 * time.Millisecond

// LoansDue returns the loans that are to be sent now: each at once, and again
// every 200 ms until a report on it has arrived or it is void, since a lost one
// would lie idle for a session.
func (r *Rights) LoansDue(now time.Time) (due []Loan) {
	elapsed := r.elapsed(now)
	for _, x := range r.loans.open {
		if x.Block > r.loans.recall && !x.heard && elapsed >= x.resend.next && now.Before(x.ValidUntil) {
			x.resend.next = elapsed + ms(loanResend)
			due = append(due, x.Loan)
		}
	}
	return due
}

// Recall has all loans come back that were lent until now: nothing more of them shall be
// handed out. A node that may not issue wants it, and one that hears of a lower limit.
func (r *Rights) Recall() {
	if r.loans.recall != r.loans.blocks {
		r.ownRare().loans.recall = r.loans.blocks
	}
}

// Recalls returns what is to be told now, and again with every tick, of loans that shall
// come back. Each borrower hears it until its final reports have come or the loans are
// void. Loans that it may not know come along: of what it does not know it cannot say that
// it is unused.
func (r *Rights) Recalls(now time.Time) (out []LoanAnswer) {
	for _, x := range r.loans.open {
		if x.Block > r.loans.recall || now.After(x.ValidUntil.Add(Guard)) {
			continue
		}
		i := slices.IndexFunc(out, func(a LoanAnswer) bool { return a.To == x.To })
		if i < 0 {
			i = len(out)
			out = append(out, LoanAnswer{Room: r.cfg.Room, Lender: r.cfg.Self, To: x.To})
		}
		out[i].Recalled = x.Block
		if !x.heard && len(out[i].Loans) < MaxBatch {
			out[i].Loans = append(out[i].Loans, x.Loan)
		}
	}
	return out
}

// Lent returns how many tickets are lent and not known to be used.
func (r *Rights) Lent() int64 { return r.loans.places }

func (l *loans) find(block uint32) *lending {
	i, known := slices.BinarySearchFunc(l.open, block, func(x *lending, b uint32) int { return int(int64(x.Block) - int64(b)) })
	if !known {
		return nil
	}
	return l.open[i]
}

// has reports whether a number is one of the loan's.
func (x *lending) has(seq uint64) bool { return seq-x.First < x.N }

// register counts a ticket of the loan as used, once, and reports whether it did. After
// the loan's end its place is back already; its rate right is aside for longer.
func (l *loans) register(x *lending, seq uint64, again bool) bool {
	i := seq - x.First
	if x.born[i/64]&(1<<(i%64)) != 0 && !again {
		return false
	}
	x.born[i/64] |= 1 << (i % 64)
	if x.places > 0 {
		x.places--
		l.places--
	}
	return true
}

// spend takes the rate right of a registered ticket from those aside, and reports
// whether there was one: after the loan's own span none is.
func (l *loans) spend(x *lending) bool {
	if x.rate == 0 {
		return false
	}
	x.rate--
	l.rate--
	return true
}

// Reported takes what became of a loan. It reports whether the report shall be
// acknowledged: also if the loan is over, or was of an earlier start.
func (r *Rights) Reported(from crdt.NodeID, rep Report, now time.Time) (Delta, bool) {
	if rep.Lender.Node != r.cfg.Self.Node || rep.Lender.Boot > r.cfg.Self.Boot {
		return r.take(), false
	}
	x := r.loans.find(rep.Block)
	if rep.Lender.Boot < r.cfg.Self.Boot || x == nil {
		return r.take(), true
	}
	if x.To.Node != from {
		return r.take(), false
	}
	x.heard = true
	for _, u := range rep.Used {
		r.used(x, u, now)
	}
	if rep.Final {
		r.loans.drop(x)
	}
	return r.take(), true
}

// used registers tickets that were issued some time ago. Nobody has used them
// before the loan was given.
func (r *Rights) used(x *lending, u Used, now time.Time) {
	elapsed := r.elapsed(now)
	age := max(0, min(ms(u.Age), elapsed-x.at))
	end := now.UnixMilli() - age + ms(TakeUp) + r.leases.longest
	again := r.cfg.LeaveOut&BornOnce != 0
	first := max(u.First, x.First)
	last := min(u.First+min(u.N, x.N), x.First+x.N)
	spent, over := int64(0), x.places == 0 // no pass of it can run any more, or all have registered
	for seq := first; seq < last; seq++ {
		if !r.loans.register(x, seq, again) {
			continue
		}
		if r.loans.spend(x) {
			spent++
		}
		if !over && end+guardMS >= now.UnixMilli() {
			r.leases.provide(seq, end)
		}
	}
	r.spend(spent, elapsed-age+ms(TakeUp+rateSpan))
}

// drop ends a loan: what was not used is free.
func (l *loans) drop(x *lending) {
	l.places -= x.places
	l.rate -= x.rate
	l.open = slices.DeleteFunc(l.open, func(y *lending) bool { return y == x })
}

// expire ends loans of which no final mark came, once nothing of them can be in
// use: now in Unix ms and elapsed ms.
func (l *loans) expire(now, elapsed int64) {
	if len(l.open) == 0 {
		return
	}
	l.open = slices.DeleteFunc(l.open, func(x *lending) bool {
		if elapsed >= x.cooled {
			l.rate -= x.rate
			x.rate = 0
		}
		if now > x.until {
			l.places -= x.places
			x.places = 0
		}
		return x.rate == 0 && x.places == 0
	})
}

// registerLate registers a ticket that is lent, because its visitor checks in at at with
// a pass that ends at passEnd.
func (r *Rights) registerLate(t Ticket, passEnd, at, now time.Time) {
	if t.Block == 0 || t.Anchor != r.cfg.Self.Node || t.Boot != r.cfg.Self.Boot {
		return
	}
	x := r.loans.find(t.Block)
	if x == nil || !x.has(t.Seq) || now.UnixMilli() > passEnd.UnixMilli()+guardMS {
		return
	}
	if r.leases.find(t.Seq) != nil || !r.loans.register(x, t.Seq, r.cfg.LeaveOut&BornOnce != 0) {
		return
	}
	if r.loans.spend(x) {
		r.spend(1, r.elapsed(now)+ms(rateSpan))
	}
	r.leases.stays.begin(r.leases.start(t.Seq, r.leases.promised(passEnd, now)), at)
}

// Cancel takes back tickets of this node that were never used. Who had them has
// deleted them: their numbers are not given again, and a check-in with one is
// refused from then on. Tickets whose visitor has come are left alone.
func (r *Rights) Cancel(ranges []Range, now time.Time) Delta {
	for _, g := range ranges {
		if g.Anchor != r.cfg.Self.Node || g.Boot != r.cfg.Self.Boot || g.N > maxLoan {
			continue
		}
		x := r.loans.find(g.Block)
		for i := range g.N {
			r.cancel(g.First+i, x, now)
		}
	}
	return r.take()
}

// cancel takes back one ticket, maybe of a loan. Its rate right is treated as
// used: few are cancelled.
func (r *Rights) cancel(seq uint64, x *lending, now time.Time) {
	if own := r.leases.find(seq); own != nil {
		if own.end().provisional() {
			r.leases.leases.Delete(seqKey(seq))
			r.leases.delta.N++
		}
		return
	}
	if x != nil && x.has(seq) && r.loans.register(x, seq, false) && r.loans.spend(x) {
		r.spend(1, r.elapsed(now)+ms(rateSpan))
	}
}
