package ticket

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// reportEvery is the least time between two reports on a loan that goes on. Until
// a use is reported its place does not show in the lender's counts.
const reportEvery = 200 * time.Millisecond

// LoanCall is all that a counter has to tell one lender.
type LoanCall struct {
	Room    crdt.RoomID
	Lender  crdt.Incarnation
	Borrow  int64    // how many tickets it wishes to be lent; 0: none
	Reports []Report // of loans of that lender, by block
}

// LoanAnswer is all that a lender has to tell a counter.
type LoanAnswer struct {
	Room   crdt.RoomID
	Lender crdt.Incarnation
	To     crdt.Incarnation

	// Recalled is the last block of which no ticket shall be handed out any more, nor
	// of any block before it; 0: none. Unlike a loan, it is for any borrower.
	Recalled uint32
	Loans    []Loan // of that lender to that counter
	Acks     []ReportAck
}

// Due returns what is to be told now, at most one message for each lender. own is
// how many of this node's own rights are free: as far as they go, nobody is
// asked. Whoever keeps a stock calls it with every tick until it is Idle, also
// when it is the counter no longer.
func (s *Stock) Due(own int64, now time.Time) []LoanCall {
	s.ticked = now
	if now.Sub(s.asked) >= idleReturn {
		for _, h := range s.open {
			h.final = true
		}
	} else {
		s.order(own, now)
	}
	for _, h := range s.open {
		h.final = h.final || !h.usable(now)
	}
	s.tidy()
	var out []LoanCall
	for _, l := range s.lenders {
		if c := l.due(s.room, now); c.Borrow > 0 || len(c.Reports) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// due returns what a lender is told: nothing, or all that it does not know.
func (l *lender) due(room crdt.RoomID, now time.Time) LoanCall {
	c := LoanCall{Room: room, Lender: l.id}
	speak := l.borrow > 0 && !l.told
	for _, h := range l.loans {
		speak = speak || h.speaks(now)
	}
	if !speak {
		return c
	}
	if l.borrow > 0 && !l.told {
		c.Borrow, l.told = l.borrow, true
	}
	for _, h := range l.loans {
		if h.hasNews() || h.speaks(now) {
			c.Reports = append(c.Reports, h.report(room, now))
		}
	}
	return c
}

// hasNews reports whether something is not in any report yet. A report of no use
// says that the loan has arrived.
func (h *holding) hasNews() bool {
	n := len(h.uses)
	return h.number == 0 || h.final && h.finalIn == 0 || n > 0 && h.uses[n-1].in == 0
}

// speaks reports whether the lender is to hear of a loan now.
func (h *holding) speaks(now time.Time) bool {
	since := now.Sub(h.sent)
	switch {
	case h.number == 0 || h.final && h.finalIn == 0:
		return true
	case h.hasNews():
		return since >= reportEvery || since < 0
	case h.acked < h.number:
		return since >= min(resendFirst<<min(h.tries, 8), resendLast) || since < 0
	}
	return false
}

// report returns a new report with everything that was not acknowledged.
func (h *holding) report(room crdt.RoomID, now time.Time) Report {
	if h.hasNews() {
		h.tries = 0
	} else {
		h.tries++
	}
	h.number++
	h.sent = now
	if h.final && h.finalIn == 0 {
		h.finalIn = h.number
	}
	r := Report{Room: room, Lender: h.loan.Lender, Block: h.loan.Block, Number: h.number, Final: h.final}
	for i := range h.uses {
		u := &h.uses[i]
		if u.in == 0 {
			u.in = h.number
		}
		r.Used = append(r.Used, Used{First: u.first, N: u.n, Age: max(0, now.Sub(u.at))})
	}
	return r
}

// Acked takes a lender's word that a report has arrived. A loan of which the last
// one has is forgotten.
func (s *Stock) Acked(a ReportAck) {
	i, ok := slices.BinarySearchFunc(s.lenders, a.Lender.Node, func(l *lender, n crdt.NodeID) int { return l.id.Node.Compare(n) })
	if !ok || s.lenders[i].id != a.Lender {
		return
	}
	l := s.lenders[i]
	l.loans = slices.DeleteFunc(l.loans, func(h *holding) bool {
		if h.loan.Block != a.Block || a.Number > h.number {
			return false
		}
		h.acked = max(h.acked, a.Number)
		h.uses = slices.DeleteFunc(h.uses, func(u use) bool { return u.in != 0 && u.in <= a.Number })
		return h.finalIn != 0 && h.finalIn <= a.Number
	})
}

// Cancels returns the messages which say that tickets were not used, in order of
// anchor.
func Cancels(room crdt.RoomID, unused []Range) []Cancel {
	all := slices.Clone(unused)
	slices.SortStableFunc(all, func(a, b Range) int { return a.Anchor.Compare(b.Anchor) })
	var out []Cancel
	for _, g := range all {
		last := len(out) - 1
		if last < 0 || out[last].Anchor != g.Anchor || len(out[last].Ranges) == MaxBatch {
			out = append(out, Cancel{Room: room, Anchor: g.Anchor})
			last++
		}
		out[last].Ranges = append(out[last].Ranges, g)
	}
	return out
}
