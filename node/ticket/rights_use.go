package ticket

import (
	"maps"
	"slices"
	"time"
)

// usage is what becomes of rights here. The zero value uses none.
type usage struct {
	tokens  int64 // open: requests may take them
	cooling cooling
	pace    pace
	spent   uint64 // rate rights, since the start
	lowered int64  // when the bound was, by elapsed time
}

// pace tells how many places are taken in about a second, so that the bound can
// be that far ahead of them.
type pace struct {
	second    int64 // of now
	now, last int64 // taken in this second and in the one before
	asked     int64 // the most that was wanted at once in these two
	before    int64
}

func (p *pace) took(n, want, second int64) {
	if second != p.second {
		p.last, p.before = p.now, p.asked
		if second > p.second+1 {
			p.last, p.before = 0, 0
		}
		p.second, p.now, p.asked = second, 0, 0
	}
	p.now = max(0, p.now+n)
	p.asked = max(p.asked, want)
}

// ahead returns how many places may be taken within a second, as far as the last
// two tell.
func (p *pace) ahead() int64 { return max(1, p.now, p.last, p.asked, p.before) }

// boundSlack is how many times what a second takes the bound may be above what is
// in use before it is lowered: each step costs a write.
const boundSlack = 4

// lowerEvery is how often the bound is lowered at most, in ms.
const lowerEvery = 1000

// physical returns what is not in use, limits not considered.
func (r *Rights) physical(now time.Time) Amount {
	return Amount{Places: r.held.Places - r.InUse(), Rate: r.held.Rate - r.rateInUse(now)}
}

// usable returns what may be used now, limits considered; never negative.
func (r *Rights) usable(now time.Time) Amount {
	if r.stopped() || len(r.debts.ends) > 0 {
		return Amount{}
	}
	keep := r.allowed()
	return Amount{Places: keep.Places - r.InUse(), Rate: keep.Rate - r.rateInUse(now)}.Max(Amount{})
}

// Free returns what may be used, limits considered, as of the newest call that
// was told the time.
func (r *Rights) Free() Amount {
	return r.usable(time.Unix(0, r.start+r.clock*int64(time.Millisecond)))
}

// reserve returns how many of want may be taken now, each of which takes so many
// rights: as many as are free and covered by the bound. Where the bound falls short, or
// will within about a second, a higher one is written.
func (r *Rights) reserve(want, free int64, each Amount, now time.Time) int64 {
	if r.cfg.Unlimited {
		return want
	}
	n := max(0, min(want, free))
	// What the bound does not allow yet is wanted all the same: the pace follows
	// what would be taken.
	r.use.pace.took(n, n, r.elapsed(now)/1000)
	r.extend(Amount{n * each.Places, n * each.Rate})
	if r.leases.longest > r.book.span() && r.cfg.LeaveOut&BoundBeforeUse == 0 {
		r.setSpan()
		return 0
	}
	return max(0, min(n, r.covered(each)))
}

// covered returns how many more the bound allows, each of which takes so many rights;
// negative if what is in use is more than it covers.
func (r *Rights) covered(each Amount) int64 {
	if r.cfg.LeaveOut&BoundBeforeUse != 0 {
		return 1 << 40
	}
	rest := r.book.bound().Sub(r.inUse())
	if each.Rate == 0 {
		return rest.Places
	}
	return min(rest.Places, rest.Rate)
}

// extend has the bound written that covers more and what is taken within about a
// second besides, unless it is on its way.
func (r *Rights) extend(more Amount) {
	used, ahead := r.inUse().Add(r.coming()).Add(more.Max(Amount{})), r.use.pace.ahead()
	most := used.Max(r.held)
	low := most.Min(used.Add(Amount{ahead, ahead}))
	if next := r.book.next.bound; next.Min(low) != low {
		r.setBound(next.Max(most.Min(used.Add(Amount{2 * ahead, 2 * ahead}))))
	}
}

// coming returns what comes over from others in use once that is written: the bound
// covers it before it is counted.
func (r *Rights) coming() Amount {
	sum := r.estateSum.Max(Amount{})
	for _, x := range r.taking {
		sum = sum.Add(Amount{x.final.InUse, x.rate})
	}
	return sum
}

// lower brings the bound down after places came free and rate rights cooled down,
// seldom. What comes over from a leaver or a dead node is in the bound before it is in
// use.
func (r *Rights) lower() {
	if r.clock < r.use.lowered+lowerEvery || len(r.taking) > 0 || len(r.estate) > 0 {
		return
	}
	used, ahead := r.inUse().Add(r.coming()), r.use.pace.ahead()
	next, high := r.book.next.bound, used.Add(Amount{boundSlack * ahead, boundSlack * ahead})
	if next.Max(high) != high {
		r.use.lowered = r.clock
		r.setBound(next.Min(used.Add(Amount{2 * ahead, 2 * ahead})))
	}
}

func (r *Rights) setBound(n Amount) {
	if n == r.book.next.bound {
		return
	}
	r.book.next.bound = n
	r.book.mark(keyBound)
	r.setSpan()
}

// Open returns how many of want tokens requests may take from now on: each has a
// place and a rate right aside until Enter or Close.
func (r *Rights) Open(want int64, now time.Time) int64 {
	free := r.usable(now)
	n := r.reserve(want, min(free.Places, free.Rate), Amount{1, 1}, now)
	r.use.tokens += n
	return n
}

// Expect has the bound cover what n visitors may soon want, as far as it is free: those
// who wait would else find, each time that they ask, that the disk is not ready for them.
func (r *Rights) Expect(n int64, now time.Time) {
	if r.cfg.Unlimited {
		return
	}
	free := r.usable(now)
	if n = min(n, free.Places, free.Rate); n > 0 {
		r.use.pace.took(0, n, r.elapsed(now)/1000)
		r.extend(Amount{})
	}
}

// Close takes back n open tokens that no request has taken or will take.
func (r *Rights) Close(n int64) {
	n = max(0, min(n, r.use.tokens))
	r.use.tokens -= n
	r.use.pace.took(-n, 0, r.clock/1000)
}

// Tokens returns how many tokens are open.
func (r *Rights) Tokens() int64 { return r.use.tokens }

// Enter starts the lease of a ticket of this node for which a request took a
// token at at, and got a pass that ends at passEnd. Its rate right cools from now. Where
// rights limit nothing no token is needed. A ticket of another node or start is ErrNotMine.
func (r *Rights) Enter(t Ticket, passEnd, at, now time.Time) (end time.Time, d Delta, err error) {
	end, d, err = r.leases.enter(t, max(r.leases.until(at, now), r.leases.promised(passEnd, now)), at)
	if err != nil {
		return end, d, err
	}
	if r.use.tokens > 0 {
		r.use.tokens--
		r.spend(1, r.elapsed(now)+ms(rateSpan))
	}
	return end, d.Add(r.take()), nil
}

// spend counts n rate rights as used, and has them cool until an elapsed time.
func (r *Rights) spend(n, until int64) {
	r.use.spent += uint64(max(0, n))
	r.cool(n, until)
}

// Spent returns how many rate rights of this node were used since it started,
// whichever node let the visitors in.
func (r *Rights) Spent() uint64 { return r.use.spent }

// cool has n rate rights cool until an elapsed time.
func (r *Rights) cool(n, until int64) {
	if r.cfg.LeaveOut&RateCools == 0 {
		r.use.cooling.add(n, until)
	}
}

// Issue gives out up to n own tickets at once, for visitors of other nodes: each
// has a provisional lease, whose end the first check-in sets.
func (r *Rights) Issue(n int64, now time.Time) ([]Range, Delta) {
	free := r.usable(now)
	n = r.reserve(n, min(free.Places, free.Rate), Amount{1, 1}, now)
	if n <= 0 {
		return nil, r.take()
	}
	g := Range{Anchor: r.cfg.Self.Node, Boot: r.cfg.Self.Boot, First: r.cfg.Seqs(uint64(n)), N: uint64(n), Session: r.Session()}
	end := now.Add(TakeUp).UnixMilli() + r.leases.session
	for i := range g.N {
		r.leases.provide(g.First+i, end)
	}
	if !r.cfg.Unlimited {
		r.spend(n, r.elapsed(now)+ms(TakeUp+rateSpan))
	}
	return []Range{g}, r.take()
}

// CheckIn extends a lease, as Leases.CheckIn does. It knows borrowed sessions, and
// the tickets that are lent: the first check-in of one registers it.
func (r *Rights) CheckIn(t Ticket, passEnd, at, now time.Time) (end time.Time, d Delta, err error) {
	if r.book.next.retired || r.book.next.leaving != nil {
		return time.Time{}, r.take(), ErrEnded
	}
	if old, ok := r.debts.ends[t]; ok {
		next := r.leases.extended(old, at, now)
		r.debts.ends[t] = next
		return time.UnixMilli(next), r.take(), nil
	}
	r.registerLate(t, passEnd, at, now)
	end, d, err = r.leases.CheckIn(t, passEnd, at, now)
	return end, d.Add(r.take()), err
}

// LeaseEnd is Leases.LeaseEnd.
func (r *Rights) LeaseEnd(t Ticket) (end time.Time, lasts bool) { return r.leases.LeaseEnd(t) }

// End ends a lease before its time, for a visitor who left. A ticket that is lent, and of
// whose visitor nothing was heard, never gets one.
func (r *Rights) End(t Ticket, now time.Time) Delta {
	r.debts.forget(t)
	d := r.leases.End(t, now)
	if self := r.cfg.Self; t.Anchor == self.Node && t.Boot == self.Boot && t.Block != 0 {
		if x := r.loans.find(t.Block); x != nil {
			r.cancel(t.Seq, x, now)
		}
	}
	return d.Add(r.take())
}

// Expire ends what the clock has passed: leases, blocks, loans. It repays
// borrowed sessions with the places that come free. Call it at every tick.
func (r *Rights) Expire(now time.Time) Delta {
	d := r.leases.Expire(now)
	r.loans.expire(now.UnixMilli(), r.elapsed(now))
	r.use.cooling.advance(r.elapsed(now))
	r.repay(now)
	r.use.pace.took(0, 0, r.elapsed(now)/1000)
	r.shorten(now)
	if !r.cfg.Unlimited && !r.stopped() {
		r.lower()
		if r.use.pace.ahead() > 1 {
			r.extend(Amount{})
		}
	}
	return d.Add(r.take())
}

// SetRenewal says whether check-ins extend leases; at first they do.
func (r *Rights) SetRenewal(on bool) { r.leases.SetRenewal(on) }

// SetUnlimited says whether rights limit nothing, as RightsConfig has it. Once
// they limit something, what is in use is used up before anything is issued.
func (r *Rights) SetUnlimited(on bool) {
	r.cfg.Unlimited, r.leases.strict = on, !on
	r.follow()
	if !on {
		r.extend(Amount{})
	}
}

// debts are the sessions that go on without a place. The zero value is none.
type debts struct {
	ends   map[Ticket]int64 // Unix ms
	line   []Ticket         // oldest first; those that have ended too
	repaid []Repaid         // that nobody has taken
}

// Repaid is a borrowed session that has a place by now. Its pass shall get the ticket
// New, which is counted after a restart; one that is borrowed is not.
type Repaid struct {
	Old, New Ticket
	End      time.Time // of the lease
}

// TakeRepaid returns who was repaid since it was last called.
func (r *Rights) TakeRepaid() []Repaid {
	all := r.debts.repaid
	if len(all) > 0 {
		r.debts.repaid = nil
	}
	return all
}

func (d *debts) add(t Ticket, end int64) {
	if d.ends == nil {
		d.ends = map[Ticket]int64{}
	}
	d.ends[t] = end
	d.line = append(d.line, t)
}

func (d *debts) forget(t Ticket) { delete(d.ends, t) }

// Borrowed returns how many sessions go on without a place.
func (r *Rights) Borrowed() int64 { return int64(len(r.debts.ends)) }

// Reanchor gives a session whose anchor is out of reach the place of t, a new
// ticket of this node, without a rate right. Without a free place, and if
// mayBorrow, the session is borrowed: the ticket returned has Borrowed set. It is
// counted apart, ends with its pass, and is repaid before anything else gets a
// place. Where rights limit nothing there is always a place.
func (r *Rights) Reanchor(t Ticket, at, now time.Time, mayBorrow bool) (Ticket, time.Time, Delta, bool) {
	if r.book.next.retired || r.book.next.leaving != nil {
		return Ticket{}, time.Time{}, r.take(), false
	}
	free := r.physical(now).Places
	if r.book.failed || len(r.debts.ends) > 0 {
		free = 0
	}
	if r.reserve(1, free, Amount{Places: 1}, now) > 0 {
		end, d, err := r.leases.Open(t, at, now)
		if err != nil {
			return Ticket{}, time.Time{}, r.take(), false
		}
		return t, end, d.Add(r.take()), true
	}
	if !mayBorrow {
		return Ticket{}, time.Time{}, r.take(), false
	}
	t.Block = BorrowedBlock
	end := r.leases.until(at, now)
	r.ownRare().debts.add(t, end)
	return t, time.UnixMilli(end), r.take(), true
}

// repay gives borrowed sessions the places that have come free, oldest first.
func (r *Rights) repay(now time.Time) {
	if len(r.debts.line) == 0 {
		return
	}
	due := now.UnixMilli()
	maps.DeleteFunc(r.debts.ends, func(_ Ticket, end int64) bool { return end < due })
	r.debts.line = slices.DeleteFunc(r.debts.line, func(t Ticket) bool {
		end, on := r.debts.ends[t]
		if !on {
			return true
		}
		if r.stopped() || r.reserve(1, r.physical(now).Places, Amount{Places: 1}, now) == 0 {
			return false
		}
		delete(r.debts.ends, t)
		own := t
		own.Block = 0
		until, d, err := r.leases.open(own, end)
		if err != nil {
			panic("ticket: borrowed session of another node: " + err.Error())
		}
		r.debts.repaid = append(r.debts.repaid, Repaid{t, own, until})
		r.owed = r.owed.Add(d)
		return true
	})
}
