package ticket

import (
	"cmp"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// borrowAgain is how long a wish for a loan may stay unanswered before it is
	// sent again.
	borrowAgain = 300 * time.Millisecond

	// localFrom is how many tickets a node's applicants want in a second before
	// that node is asked to lend them itself. Its visitors then need no renewals
	// between nodes; fewer are not worth two writes to disk.
	localFrom = 4

	// goneKept is how long a lender that cannot be reached is told what became of
	// its loans.
	goneKept = time.Hour

	// idleReturn is how long nobody has wanted a ticket when loans go back.
	idleReturn = time.Second
)

// demand is how many tickets were wanted in the last second. The zero value is
// none.
type demand struct {
	steps [4]int64
	step  int64 // of the newest, in quarters of a second since 1970
}

func (d *demand) roll(now time.Time) {
	step := now.UnixMilli() / 250
	if gone := step - d.step; gone < 0 || gone >= int64(len(d.steps)) {
		clear(d.steps[:])
	} else {
		for ; gone > 0; gone-- {
			d.steps[(step-gone+1)%int64(len(d.steps))] = 0
		}
	}
	d.step = step
}

func (d *demand) add(n int64, now time.Time) {
	d.roll(now)
	d.steps[d.step%int64(len(d.steps))] += n
}

func (d *demand) lastSecond(now time.Time) (n int64) {
	d.roll(now)
	for _, x := range d.steps {
		n += x
	}
	return n
}

// Want notes that applicants of a node want n tickets, whether there are any or
// not.
func (s *Stock) Want(n int64, asker crdt.NodeID, now time.Time) {
	s.asked = now
	s.demandOf(asker).add(n, now)
}

// demandOf returns the demand of a node's applicants; of those who are no
// lenders, this node included, together.
func (s *Stock) demandOf(node crdt.NodeID) *demand {
	if i, ok := slices.BinarySearchFunc(s.lenders, node, func(l *lender, n crdt.NodeID) int { return l.id.Node.Compare(n) }); ok {
		return &s.lenders[i].demand
	}
	return &s.others
}

// Lender is a node of the own site and what the counts say that it has free.
type Lender struct {
	ID   crdt.Incarnation
	Free int64
}

// SetLenders says who may be asked for loans, as far as they can be reached. It is
// called every now and then for as long as there is a stock, whoever leads: a node
// that has started anew is told nothing of the loans of before.
func (s *Stock) SetLenders(all []Lender, now time.Time) {
	for _, l := range s.lenders {
		if l.present {
			l.present, l.gone = false, now
		}
	}
	for _, x := range all {
		if x.ID.Node == s.self.Node {
			continue
		}
		if l := s.lenderOf(x.ID, now); l != nil {
			l.present, l.left = true, max(0, x.Free)
		}
	}
	s.lenders = slices.DeleteFunc(s.lenders, func(l *lender) bool { return l.forgotten(now) })
}

// forgotten reports whether a node that is gone can be forgotten: it has heard
// all, and no copy of a loan of its can be valid. One that stays away for goneKept
// will have taken its loans back by itself.
func (l *lender) forgotten(now time.Time) bool {
	if l.present {
		return false
	}
	away := now.Sub(l.gone)
	return away >= goneKept || away > LoanValid+2*Guard && len(l.loans) == 0
}

// Expecting returns how many tickets were asked for and may come any moment; none for a nil
// stock.
func (s *Stock) Expecting(now time.Time) (n int64) {
	if s == nil {
		return 0
	}
	for _, l := range s.lenders {
		if l.borrow > 0 && now.Sub(l.borrowed) < borrowAgain {
			n += l.borrow
		}
	}
	return n
}

// order decides whom to ask for how much: as much as is wanted in one and a half
// seconds, of the nodes whose own visitors want it, and what own rights and those
// do not cover of the nodes that have most left. A node that has not answered is
// not asked for more.
func (s *Stock) order(own int64, now time.Time) {
	want, have := target(s.others.lastSecond(now)), max(0, own)
	for _, l := range s.lenders {
		if l.borrow > 0 && now.Sub(l.borrowed) >= borrowAgain {
			l.borrow = 0
		}
		n := l.demand.lastSecond(now)
		rest := l.rest(now)
		if n >= localFrom && l.canLend() && rest < n {
			l.ask(min(target(n)-rest, l.left), now)
		}
		want += target(n)
		have += rest + l.borrow
	}
	if want <= have {
		return
	}
	by := slices.Clone(s.lenders)
	slices.SortStableFunc(by, func(a, b *lender) int { return cmp.Compare(b.left, a.left) })
	for _, l := range by {
		if n := min(want-have, l.left); n > 0 && l.canLend() {
			l.ask(n, now)
			have += n
		}
	}
}

// target is how many tickets to hold when n are wanted in a second.
func target(n int64) int64 { return n + n/2 }

func (l *lender) canLend() bool {
	return l.present && l.borrow == 0 && l.left > 0 && len(l.loans) < MaxLoans
}

func (l *lender) ask(n int64, now time.Time) {
	l.borrow, l.borrowed, l.told = n, now, false
	l.left -= n
}

// rest returns how many tickets of a lender may be handed out.
func (l *lender) rest(now time.Time) (n int64) {
	for _, h := range l.loans {
		if h.usable(now) {
			n += int64(h.loan.N - h.used)
		}
	}
	return n
}
