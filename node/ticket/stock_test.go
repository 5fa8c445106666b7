package ticket

import (
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

var otherLender = crdt.Incarnation{Node: crdt.NodeID{5}, Boot: 1}

// lent returns a stock with loans of ten tickets each, made at 0.
func lent(lenders ...crdt.Incarnation) *Stock {
	s := NewStock(leads, aRoom)
	s.Want(1, theCounter, at(0))
	for i, l := range lenders {
		s.Add(loanOf(l, uint32(i+1), 10), at(0))
	}
	return s
}

func loanOf(l crdt.Incarnation, block uint32, n uint64) Loan {
	return Loan{Room: aRoom, To: leads, Lender: l, Block: block, First: uint64(block) * 100, N: n, ValidUntil: at(3)}
}

func sec(s float64) time.Time { return at(0).Add(time.Duration(s * float64(time.Second))) }

// takeFrom takes tickets for applicants who come just now.
func takeFrom(s *Stock, n int64, asker crdt.NodeID, now time.Time) []Range {
	s.Want(n, asker, now)
	return s.Take(nil, n, asker, now)
}

// calls returns what a stock says, by lender.
func calls(s *Stock, now time.Time) map[crdt.NodeID]LoanCall {
	out := map[crdt.NodeID]LoanCall{}
	for _, c := range s.Due(0, now) {
		if _, twice := out[c.Lender.Node]; twice {
			panic("two messages to one lender")
		}
		out[c.Lender.Node] = c
	}
	return out
}

// ackAll acknowledges all reports.
func ackAll(s *Stock, c LoanCall) {
	for _, rep := range c.Reports {
		s.Acked(ReportAck{Room: rep.Room, Lender: rep.Lender, Block: rep.Block, Number: rep.Number})
	}
}

func TestStockTakesTheAskersOwnLoansFirst(t *testing.T) {
	s := lent(aLender, otherLender)
	got := takeFrom(s, 4, otherLender.Node, sec(0.1))
	want := []Range{{Anchor: otherLender.Node, Boot: 1, Block: 2, First: 200, N: 4}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	got = takeFrom(s, 99, otherLender.Node, sec(0.2))
	want = []Range{{otherLender.Node, 1, 2, 204, 6, 0}, {aLender.Node, 7, 1, 100, 10, 0}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := takeFrom(s, 1, theCounter, sec(0.3)); len(got) != 0 || s.Rest(sec(0.3)) != 0 {
		t.Errorf("%v came out of an empty stock", got)
	}
}

// TestStockJudgesValidityByItself hands out nothing that is void, however lately
// anybody has looked.
func TestStockJudgesValidityByItself(t *testing.T) {
	s := lent(aLender)
	if got := takeFrom(s, 1, theCounter, at(3).Add(-time.Millisecond)); len(got) != 1 {
		t.Error("nothing although the loan is valid")
	}
	if got := takeFrom(s, 1, theCounter, at(3)); len(got) != 0 {
		t.Errorf("%v although the loan is void", got)
	}
	far := loanOf(aLender, 2, 10)
	far.ValidUntil = at(1000)
	s.Add(far, at(10))
	if got := takeFrom(s, 1, theCounter, at(10).Add(LoanValid+Guard)); len(got) != 0 {
		t.Errorf("%v of a loan by a clock that is far off", got)
	}
}

func TestStockTakesALoanOnce(t *testing.T) {
	s := lent(aLender)
	loan := loanOf(aLender, 1, 10)
	if s.Add(loan, at(1)) || s.Rest(at(1)) != 10 {
		t.Error("a loan that came twice was taken twice")
	}
	takeFrom(s, 10, theCounter, at(1))
	ackAll(s, calls(s, at(1))[aLender.Node])
	if !s.Idle() {
		t.Error("a loan that is used up and reported is kept")
	}
	if s.Add(loan, at(1)) || s.Rest(at(1)) != 0 {
		t.Error("a loan came back to life when it came once more")
	}
	// Blocks may overtake one another.
	for _, block := range []uint32{40, 7, 100} {
		if !s.Add(loanOf(aLender, block, 1), at(1)) || s.Add(loanOf(aLender, block, 1), at(1)) {
			t.Errorf("block %d was not taken exactly once", block)
		}
	}
	if s.Add(loanOf(aLender, 100-64, 1), at(1)) {
		t.Error("a block was taken of which it is not known whether it came before")
	}
	for name, l := range map[string]Loan{
		"to an earlier start": {To: crdt.Incarnation{Node: leads.Node, Boot: leads.Boot - 1}, Lender: aLender, Block: 101, N: 1, ValidUntil: at(3)},
		"of an earlier start": {To: leads, Lender: crdt.Incarnation{Node: aLender.Node, Boot: 6}, Block: 101, N: 1, ValidUntil: at(3)},
		"of this node itself": {To: leads, Lender: leads, Block: 101, N: 1, ValidUntil: at(3)},
	} {
		if s.Add(l, at(1)) {
			t.Errorf("a loan %s was taken", name)
		}
	}
}

func TestStockForgetsLoansOfAnEarlierStart(t *testing.T) {
	s := lent(aLender)
	next := crdt.Incarnation{Node: aLender.Node, Boot: aLender.Boot + 1}
	s.Add(loanOf(next, 1, 3), at(0))
	got := takeFrom(s, 99, theCounter, at(1))
	if want := []Range{{next.Node, next.Boot, 1, 100, 3, 0}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestReportsAreCumulative follows a loan through lost reports to its end.
func TestReportsAreCumulative(t *testing.T) {
	s := lent(aLender)
	first := calls(s, sec(0))[aLender.Node]
	if len(first.Reports) != 1 || first.Reports[0].Number != 1 || len(first.Reports[0].Used) != 0 || first.Reports[0].Final {
		t.Fatalf("first call %+v, want a report that the loan has come", first)
	}
	ackAll(s, first)
	takeFrom(s, 2, theCounter, sec(0.1))
	takeFrom(s, 1, theCounter, sec(0.12))
	if got := calls(s, sec(0.15)); len(got) != 0 {
		t.Errorf("%v although a report has gone out just now", got)
	}
	lost := calls(s, sec(0.25))[aLender.Node].Reports[0]
	if want := []Used{{First: 100, N: 3, Age: 130 * time.Millisecond}}; !slices.Equal(lost.Used, want) {
		t.Errorf("uses %v, want %v", lost.Used, want)
	}
	takeFrom(s, 1, theCounter, sec(0.4))
	rep := calls(s, sec(0.5))[aLender.Node].Reports[0]
	want := []Used{{100, 3, 380 * time.Millisecond}, {103, 1, 100 * time.Millisecond}}
	if !slices.Equal(rep.Used, want) || rep.Number != 3 {
		t.Errorf("report %+v, want also what the lost one said: %v", rep, want)
	}
	s.Acked(ReportAck{aRoom, aLender, 1, 2}) // the lost one was only late
	takeFrom(s, 99, theCounter, sec(0.6))
	rep = calls(s, sec(0.7))[aLender.Node].Reports[0]
	want = []Used{{103, 1, 300 * time.Millisecond}, {104, 6, 100 * time.Millisecond}}
	if !slices.Equal(rep.Used, want) || !rep.Final {
		t.Errorf("report %+v, want the final one with %v", rep, want)
	}
	again := calls(s, sec(0.7).Add(resendFirst))[aLender.Node].Reports[0]
	if again.Number != rep.Number+1 || !again.Final || len(again.Used) != 2 {
		t.Errorf("sent again: %+v", again)
	}
	s.Acked(ReportAck{aRoom, aLender, 1, rep.Number - 1})
	if s.Idle() {
		t.Error("forgotten before the final report was acknowledged")
	}
	if s.Acked(ReportAck{aRoom, aLender, 1, rep.Number}); !s.Idle() {
		t.Error("not forgotten although the final report was acknowledged")
	}
}

func TestStockReturnsWhatNobodyWants(t *testing.T) {
	s := lent(aLender)
	takeFrom(s, 1, theCounter, sec(0.5))
	if rep := calls(s, sec(1.4))[aLender.Node].Reports[0]; rep.Final {
		t.Error("returned while tickets are wanted")
	}
	rep := calls(s, sec(1.5))[aLender.Node].Reports[0]
	if !rep.Final || s.Rest(sec(1.5)) != 0 || len(takeFrom(s, 1, theCounter, sec(1.5))) != 0 {
		t.Errorf("report %+v and %d tickets left, want a final one and none", rep, s.Rest(sec(1.5)))
	}
	s = lent(aLender, otherLender)
	s.Drop()
	if got := calls(s, sec(0)); len(got) != 2 || !got[aLender.Node].Reports[0].Final || s.Rest(sec(0)) != 0 {
		t.Errorf("%+v, want all returned", got)
	}
}

func TestStockBorrowsWhatIsNeeded(t *testing.T) {
	s := NewStock(leads, aRoom)
	s.SetLenders([]Lender{{aLender, 100}, {otherLender, 30}, {leads, 500}}, at(0))
	takeFrom(s, 80, theCounter, at(0))
	if got := s.Due(1000, sec(0)); len(got) != 0 {
		t.Errorf("%+v although own rights are plenty", got)
	}
	got := calls(s, sec(0))
	if len(got) != 2 || got[aLender.Node].Borrow != 100 || got[otherLender.Node].Borrow != 20 {
		t.Errorf("%+v, want 120 tickets, first of who has most", got)
	}
	if n := s.Expecting(sec(0)); n != 120 {
		t.Errorf("%d are expected, want 120", n)
	}
	takeFrom(s, 80, theCounter, sec(0.1))
	if got := calls(s, sec(0.2)); len(got) != 0 {
		t.Errorf("%+v while all are asked", got)
	}
	// The answer of one; the other is asked again, as far as it can lend.
	s.Add(loanOf(aLender, 1, 100), sec(0.2))
	got = calls(s, sec(0.3))
	if got[otherLender.Node].Borrow != 10 || got[aLender.Node].Borrow != 0 {
		t.Errorf("%+v, want that the one which did not answer is asked", got)
	}
	// Nothing is left anywhere: nobody is asked until the counts say otherwise.
	s.Add(Loan{To: leads, Lender: otherLender}, sec(0.4))
	if got := calls(s, sec(0.4)); got[otherLender.Node].Borrow+got[aLender.Node].Borrow != 0 {
		t.Errorf("%+v, want no wish for what nobody has", got)
	}
	s.SetLenders([]Lender{{aLender, 1}}, sec(0.5))
	if got := calls(s, sec(0.5)); got[aLender.Node].Borrow != 1 || got[otherLender.Node].Borrow != 0 {
		t.Errorf("%+v, want the one right that there is", got)
	}
}

// TestStockBorrowsWhereVisitorsAre asks nodes for tickets of their own visitors
// although the counter has rights itself.
func TestStockBorrowsWhereVisitorsAre(t *testing.T) {
	s := NewStock(leads, aRoom)
	s.SetLenders([]Lender{{aLender, 100}, {otherLender, 100}}, at(0))
	takeFrom(s, 20, otherLender.Node, at(0))
	takeFrom(s, localFrom-1, aLender.Node, at(0))
	got := s.Due(1000, at(0))
	if len(got) != 1 || got[0].Lender != otherLender || got[0].Borrow != 30 {
		t.Errorf("%+v, want 30 of the node at which they are wanted", got)
	}
}

func TestStockIsBounded(t *testing.T) {
	s := NewStock(leads, aRoom)
	for block := range uint32(3 * MaxLoans) {
		s.Add(loanOf(aLender, block+1, 1), at(0))
	}
	if got := len(s.lenders[0].loans); got != MaxLoans {
		t.Errorf("%d loans are kept, want %d", got, MaxLoans)
	}
	s = lent(aLender)
	long := loanOf(otherLender, 9, 1000)
	s.Add(long, at(0))
	for i := range 900 {
		takeFrom(s, 1, otherLender.Node, sec(0).Add(time.Duration(i)*3*time.Millisecond))
	}
	rep := calls(s, sec(2.8))[otherLender.Node].Reports[0]
	sum := uint64(0)
	for i, u := range rep.Used {
		if u.First != 900+sum || i > 0 && u.Age > rep.Used[i-1].Age {
			t.Fatalf("use %d is %+v behind %d tickets", i, u, sum)
		}
		sum += u.N
	}
	if len(rep.Used) > MaxUsed || sum != 900 {
		t.Errorf("%d uses of %d tickets, want 900 tickets in at most %d", len(rep.Used), sum, MaxUsed)
	}
	for i := range maxLenders + 5 {
		s.Add(loanOf(crdt.Incarnation{Node: crdt.NodeID{9, byte(i), byte(i >> 8)}, Boot: 1}, 1, 1), at(0))
	}
	if len(s.lenders) > maxLenders {
		t.Errorf("%d lenders are kept", len(s.lenders))
	}
	s.SetLenders(nil, at(1))
	s.SetLenders(nil, at(2).Add(goneKept))
	if len(s.lenders) != 0 {
		t.Errorf("%d lenders are kept although they are gone for long", len(s.lenders))
	}
}

func TestCancelsAreByAnchor(t *testing.T) {
	a, b := crdt.NodeID{1}, crdt.NodeID{2}
	got := Cancels(aRoom, []Range{{Anchor: b, First: 1, N: 2}, {Anchor: a, First: 5, N: 1}, {Anchor: b, First: 9, N: 1}})
	if len(got) != 2 || got[0].Anchor != a || len(got[1].Ranges) != 2 || got[1].Ranges[0].First != 1 {
		t.Errorf("%+v, want one for each anchor, in order", got)
	}
	many := Cancels(aRoom, make([]Range, MaxBatch+1))
	if len(many) != 2 || len(many[0].Ranges) != MaxBatch {
		t.Errorf("%d messages of %d ranges", len(many), MaxBatch+1)
	}
}

// TestStockKnowsALoanOfALenderThatWasGone has a lender that was stopped answer a
// borrow when it goes on, before it is a member again, and its answer come twice.
func TestStockKnowsALoanOfALenderThatWasGone(t *testing.T) {
	s := NewStock(leads, aRoom)
	lender := crdt.Incarnation{Node: crdt.NodeID{2}, Boot: 1}
	s.SetLenders([]Lender{{lender, 100}}, sec(0))
	s.Add(Loan{Room: aRoom, To: leads, Lender: lender, Block: 1, First: 1, N: 5, ValidUntil: sec(3)}, sec(0))
	s.SetLenders(nil, sec(1))

	loan := Loan{Room: aRoom, To: leads, Lender: lender, Block: 2, First: 6, N: 5, ValidUntil: sec(9)}
	if !s.Add(loan, sec(6)) {
		t.Fatal("a loan of a lender that goes on was not taken")
	}
	if got := total(s.Take(nil, 5, theCounter, sec(6))); got != 5 {
		t.Fatalf("%d tickets were handed out, want 5", got)
	}
	for _, c := range s.Due(0, sec(6.05)) {
		for _, rep := range c.Reports {
			s.Acked(ReportAck{Room: aRoom, Lender: lender, Block: rep.Block, Number: rep.Number})
		}
	}
	s.SetLenders(nil, sec(6.1))
	if s.Add(loan, sec(6.2)) {
		t.Error("a copy of a loan was taken for a new one")
	}
	if twice := s.Take(nil, 5, theCounter, sec(6.2)); len(twice) > 0 {
		t.Errorf("tickets %v were handed out twice", twice)
	}
}

// TestRecalledLoansAreHandedOutNoMore: a lender wants its first block back. Later ones may
// be used, and a copy of an earlier one that is late goes back unused.
func TestRecalledLoansAreHandedOutNoMore(t *testing.T) {
	s := lent(aLender)
	s.Add(loanOf(otherLender, 1, 10), at(0))
	if got := takeFrom(s, 4, aLender.Node, sec(0.1)); len(got) != 1 || got[0].N != 4 {
		t.Fatalf("took %v, want four of ten", got)
	}
	s.Recall(aLender, 2, sec(0.2))
	s.Recall(aLender, 1, sec(0.2)) // overtaken
	if got := takeFrom(s, 99, aLender.Node, sec(0.2)); len(got) != 1 || got[0].Anchor != otherLender.Node {
		t.Errorf("took %v after the recall, want the other lender's alone", got)
	}
	if !s.Add(loanOf(aLender, 2, 10), sec(0.3)) || s.Rest(sec(0.3)) != 0 {
		t.Errorf("%d tickets of a loan that came after its recall", s.Rest(sec(0.3)))
	}
	said := calls(s, sec(0.4))[aLender.Node]
	if len(said.Reports) != 2 {
		t.Fatalf("said %+v, want a report on each block", said)
	}
	for i, used := range []uint64{4, 0} {
		rep := said.Reports[i]
		if n := sumUsed(rep); n != used || !rep.Final {
			t.Errorf("block %d: %d used, final %v, want %d and the final mark", rep.Block, n, rep.Final, used)
		}
	}
	s.Add(loanOf(aLender, 3, 10), sec(0.5))
	if got := takeFrom(s, 99, aLender.Node, sec(0.5)); len(got) != 1 || got[0].Block != 3 {
		t.Errorf("took %v of a loan that is not recalled", got)
	}
}

func sumUsed(r Report) (n uint64) {
	for _, u := range r.Used {
		n += u.N
	}
	return n
}
