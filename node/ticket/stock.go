package ticket

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// usedGap is how far apart two uses of a loan may be that are reported as one,
	// at the time of the later.
	usedGap = 50 * time.Millisecond

	// MaxUsed bounds the uses that one report tells apart.
	MaxUsed = 64

	// MaxLoans bounds the loans of one lender that a counter keeps, those included
	// of which the last report is not acknowledged. Further ones are refused.
	MaxLoans = 64

	// maxLenders bounds the nodes that a counter borrows from.
	maxLenders = 1024
)

// Stock is what the counter of one room has borrowed from the other nodes of its
// site. Its tickets are handed out one after the other, lender by lender, while
// the loan is valid; the lender hears which were, and that the rest never will
// be, so that it may use them itself. Create it with NewStock. It is not safe for
// concurrent use.
type Stock struct {
	self    crdt.Incarnation
	room    crdt.RoomID
	lenders []*lender // by node
	open    []*holding
	asked   time.Time // the last time that somebody wanted a ticket
	others  demand    // of nodes that lend nothing
	ticked  time.Time // when Due was last asked
	rules   Rules     // left out
}

// lender is a node that lends, in its newest start that is known.
type lender struct {
	id       crdt.Incarnation
	present  bool      // may be asked
	gone     time.Time // since when it is not present, nor has lent anything
	left     int64
	newest   uint32 // block
	seen     uint64 // bit i: block newest − i has come
	recalled uint32 // the last block that the lender wants back
	loans    []*holding
	demand   demand // of its own applicants

	borrow   int64 // asked for and not answered; 0: nothing is
	borrowed time.Time
	told     bool // the borrow was sent
}

// holding is one loan as the counter keeps it.
// Invariant: the first used tickets were handed out, the others were not, and
// never will be once final is set.
type holding struct {
	loan  Loan
	used  uint64
	final bool
	uses  []use // of which no report was acknowledged, oldest first

	number  uint64 // of the newest report
	finalIn uint64 // the first report that said final; 0: none has
	acked   uint64 // the newest report that was acknowledged
	sent    time.Time
	tries   int
}

// use is n tickets handed out from begun to at, the first of them first.
type use struct {
	first, n  uint64
	begun, at time.Time
	in        uint64 // the first report that held it; 0: none yet
}

// NewStock returns the empty stock of a node in one start of it.
func NewStock(self crdt.Incarnation, room crdt.RoomID) *Stock {
	return &Stock{self: self, room: room}
}

// LeaveOut names rules that are left out, as RightsConfig does.
func (s *Stock) LeaveOut(rules Rules) { s.rules = rules }

// moment returns by what time loans are judged at now.
func (s *Stock) moment(now time.Time) time.Time {
	if s.rules&PauseCheck != 0 {
		return s.ticked
	}
	return now
}

// lenderOf returns the lender of that start of a node, or nil if a later one is
// known or there are too many. What is kept of an earlier start goes: its loans
// are covered by what that node keeps aside after a restart.
func (s *Stock) lenderOf(id crdt.Incarnation, now time.Time) *lender {
	i, ok := slices.BinarySearchFunc(s.lenders, id.Node, func(l *lender, n crdt.NodeID) int {
		return l.id.Node.Compare(n)
	})
	if !ok {
		if len(s.lenders) >= maxLenders {
			return nil
		}
		s.lenders = slices.Insert(s.lenders, i, &lender{id: id, gone: now})
	}
	l := s.lenders[i]
	switch {
	case l.id.Boot > id.Boot:
		return nil
	case l.id.Boot < id.Boot:
		for _, h := range l.loans {
			h.final = true
		}
		s.tidy()
		*l = lender{id: id, gone: now, demand: l.demand}
	}
	return l
}

// Add takes a loan. It reports whether it is news: a loan that comes twice, or is
// for an earlier start of this node, is not. One that is void already, or that
// there is no room for, is returned unused with the next report.
func (s *Stock) Add(loan Loan, now time.Time) bool {
	if loan.To != s.self || loan.Lender.Node == s.self.Node {
		return false
	}
	l := s.lenderOf(loan.Lender, now)
	if l == nil {
		return false
	}
	if !l.present {
		l.gone = now // a copy of this very loan may be on its way, however long it was gone before
	}
	if loan.N == 0 {
		l.left, l.borrow = max(0, loan.Left), 0
		return true
	}
	if len(l.loans) >= MaxLoans || !l.first(loan.Block) {
		return false
	}
	l.left, l.borrow = max(0, loan.Left), 0
	// However far off a clock is, a loan is never used for longer than this.
	if last := now.Add(LoanValid + Guard); loan.ValidUntil.After(last) {
		loan.ValidUntil = time.UnixMilli(last.UnixMilli())
	}
	h := &holding{loan: loan, final: loan.Block <= l.recalled}
	l.loans = append(l.loans, h)
	if h.final {
		return true // the next report brings it back
	}
	s.open = append(s.open, h)
	slices.SortStableFunc(s.open, func(a, b *holding) int { return a.loan.ValidUntil.Compare(b.loan.ValidUntil) })
	return true
}

// Recall takes a lender's word that no ticket of its blocks up to that one shall be
// handed out any more. Which were, the next report says.
func (s *Stock) Recall(by crdt.Incarnation, upTo uint32, now time.Time) {
	l := s.lenderOf(by, now)
	if l == nil || upTo <= l.recalled {
		return
	}
	l.recalled = upTo
	for _, h := range l.loans {
		h.final = h.final || h.loan.Block <= upTo
	}
	s.tidy()
}

// first notes that a block has come, and reports whether it is the first time. A
// block is forgotten when 64 later ones have come: it counts as known then, for
// the worst that can happen to a loan that nobody uses is to lie idle.
func (l *lender) first(block uint32) bool {
	switch {
	case block == 0:
		return false
	case block > l.newest:
		if by := block - l.newest; by < 64 {
			l.seen <<= by
		} else {
			l.seen = 0
		}
		l.newest = block
	case l.newest-block >= 64 || l.seen&(1<<(l.newest-block)) != 0:
		return false
	}
	l.seen |= 1 << (l.newest - block)
	return true
}

// Take hands out up to n tickets for the applicants of a node, first those that
// the node has lent itself, then those that are void soonest, and appends them to
// dst. now is the time of this very moment, not that of a tick: a process that
// was stopped must not hand out what is void by now. Want is told of applicants
// once, when they come; those who wait may be taken for again and again.
func (s *Stock) Take(dst []Range, n int64, asker crdt.NodeID, now time.Time) []Range {
	moment := s.moment(now)
	for _, others := range []bool{false, true} {
		for _, h := range s.open {
			if n <= 0 {
				break
			}
			if (h.loan.Lender.Node != asker) == others && h.usable(moment) {
				some := h.take(uint64(n), now)
				n -= int64(some.N)
				dst = append(dst, some)
			}
		}
	}
	return dst
}

// usable reports whether a ticket of a loan may be handed out now.
func (h *holding) usable(now time.Time) bool {
	return !h.final && h.used < h.loan.N && now.Before(h.loan.ValidUntil)
}

// take hands out up to n tickets of a loan.
func (h *holding) take(n uint64, now time.Time) Range {
	n = min(n, h.loan.N-h.used)
	r := h.loan.Range()
	r.First, r.N = h.loan.First+h.used, n
	h.used += n
	if k := len(h.uses); k > 0 {
		last := &h.uses[k-1]
		if last.in == 0 && now.Sub(last.begun) < usedGap && !now.Before(last.at) || k == MaxUsed {
			last.n += n
			last.at, last.in = later(last.at, now), 0
			return r
		}
	}
	h.uses = append(h.uses, use{first: r.First, n: n, begun: now, at: now})
	return r
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Rest returns how many tickets may be handed out now; none of a nil stock.
func (s *Stock) Rest(now time.Time) (n int64) {
	if s == nil {
		return 0
	}
	moment := s.moment(now)
	for _, h := range s.open {
		if h.usable(moment) {
			n += int64(h.loan.N - h.used)
		}
	}
	return n
}

// Drop gives everything back: this node is the counter no longer, or was stopped
// for a while, or may not hand out tickets.
func (s *Stock) Drop() {
	for _, h := range s.open {
		h.final = true
	}
	for _, l := range s.lenders {
		l.borrow = 0
	}
	s.tidy()
}

// tidy lets go of loans of which nothing will be handed out any more. They stay
// with their lender until it has heard.
func (s *Stock) tidy() {
	s.open = slices.DeleteFunc(s.open, func(h *holding) bool { return h.final })
}

// Idle reports whether there is nothing left to tell anybody; there is not of a nil stock.
func (s *Stock) Idle() bool {
	return s == nil || !slices.ContainsFunc(s.lenders, func(l *lender) bool { return len(l.loans) > 0 || l.borrow > 0 })
}
