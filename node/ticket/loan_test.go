package ticket

import (
	"testing"
	"time"
)

// TestALoanReportedAfterItsSessions: sessions are much shorter than the minute for which
// rate rights cool, and the counter says what it used when these are over. The place of
// the ticket is free then, its rate right is not.
func TestALoanReportedAfterItsSessions(t *testing.T) {
	r, _, err := OpenRights(RightsConfig{Self: self, Session: 10 * time.Second},
		[]Put{{keyMinted, appendAmount(nil, Amount{2, 2})}}, at(0))
	if err != nil {
		t.Fatal(err)
	}
	d := &desk1{Rights: r, t: t}
	d.Expire(at(90))
	l := d.lends(2, at(91))
	d.Expire(at(120))
	if free := d.Free(); free != (Amount{2, 0}) {
		t.Fatalf("%+v are free when sessions of the loan are over, want both places and no rate right", free)
	}
	d.Reported(other, Report{Lender: l.Lender, Block: l.Block, Number: 1, Used: []Used{{l.First, 1, 29 * time.Second}}, Final: true}, at(121))
	if in := d.InUse(); in != 0 {
		t.Errorf("%d places are in use again", in)
	}
	if free := d.Free(); free != (Amount{2, 1}) {
		t.Errorf("%+v are free after the report, want both places and the rate right that was not used", free)
	}
	d.Expire(at(152))
	if n := d.Open(2, at(152)); n > 1 {
		t.Errorf("%d may be let in within 60 s of a ticket of the loan, want 1", n)
	}
	d.Expire(at(155))
	if n := d.Free().Rate + d.Tokens(); n != 2 {
		t.Errorf("%d rate rights a minute after the ticket was used, want 2", n)
	}
}

// TestTheEndOfATicketThatIsLent comes before its lender has heard that somebody has it: the
// place is free at once, and stays so when the counter's report comes.
func TestTheEndOfATicketThatIsLent(t *testing.T) {
	r, _, err := OpenRights(RightsConfig{Self: self, Session: 60 * time.Second},
		[]Put{{keyMinted, appendAmount(nil, Amount{2, 2})}}, at(0))
	if err != nil {
		t.Fatal(err)
	}
	d := &desk1{Rights: r, t: t}
	d.Expire(at(90))
	l := d.lends(2, at(91))
	gone := Ticket{Anchor: self.Node, Boot: self.Boot, Block: l.Block, Seq: l.First}
	d.End(gone, at(91))
	if free := d.Free().Places; free != 1 {
		t.Errorf("%d places are free, want that of the visitor who is gone", free)
	}
	if _, _, err := d.CheckIn(gone, at(151), at(92), at(92)); err == nil {
		t.Error("the ticket is good again")
	}
	d.Reported(other, Report{Lender: l.Lender, Block: l.Block, Number: 1, Used: []Used{{l.First, 2, time.Second}}, Final: true}, at(92))
	if in, free := d.InUse(), d.Free().Places; in != 1 || free != 1 {
		t.Errorf("%d places are in use and %d free after the report, want 1 and 1", in, free)
	}
	if n := d.Free().Rate; n != 0 {
		t.Errorf("%d rate rights are free, want none: both visitors were let in", n)
	}
	d.End(gone, at(93))
	if in := d.InUse(); in != 1 {
		t.Errorf("%d places are in use after it was ended again, want 1", in)
	}
}
