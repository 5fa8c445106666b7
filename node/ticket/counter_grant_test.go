package ticket

import (
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Tickets that have anchors, from the counter to visitors and back.

func TestDeskHandsOutTicketsByPlace(t *testing.T) {
	var d Desk[int]
	for _, i := range []int{3, 0, 2, 1} {
		d.Apply(Applicant[int]{Place: at(float64(i)), Reserved: true, Who: i})
	}
	d.Next(theCounter, at(10))
	g := Grant{Number: 1, Given: Places{Reserved: 3}, Tickets: []Range{{aLender.Node, 7, 2, 100, 2, time.Minute}, {theCounter, 2, 0, 9, 1, time.Minute}}}
	in, out, err := d.Granted(theCounter, g, at(10))
	if err != nil || !slices.Equal(who(in), []int{0, 1, 2}) || len(out) != 1 {
		t.Fatalf("in %v, out %v, %v, want the three oldest in", who(in), who(out), err)
	}
	for i, want := range []Ticket{{aLender.Node, 7, 2, 100}, {aLender.Node, 7, 2, 101}, {theCounter, 2, 0, 9}} {
		if in[i].Ticket != want {
			t.Errorf("visitor %d got %+v, want %+v", i, in[i].Ticket, want)
		}
	}
}

// granting answers calls with tickets of one anchor, from the next number on.
func granting(next *uint64) func(Places) Offer {
	return func(want Places) Offer {
		n := uint64(want.Sum())
		*next += n
		if n == 0 {
			return Offer{}
		}
		return Offer{Given: want, Tickets: []Range{{Anchor: theCounter, Boot: 2, First: *next - n, N: n}}}
	}
}

// TestTicketsThatNobodyGotAreTakenBack loses a grant. The next call says so, and
// what was taken up is not taken back.
func TestTicketsThatNobodyGotAreTakenBack(t *testing.T) {
	var d Desk[int]
	var a Accounts
	next := uint64(1)
	call := func(now time.Time) Grant {
		t.Helper()
		apply(&d, 3, false)
		c, _ := d.Next(theCounter, now)
		g, ok := a.Answer(aCaller, "a", c, granting(&next), now)
		if !ok {
			t.Fatal("no answer")
		}
		return g
	}
	first := call(at(0))
	d.Granted(theCounter, first, at(0))
	lost := call(at(1))
	d.GiveUp(at(2))
	third := call(at(3))
	if got := a.TakeVoid(); !slices.Equal(got, lost.Tickets) {
		t.Errorf("%+v were taken back, want the lost %+v", got, lost.Tickets)
	}
	d.Granted(theCounter, third, at(3))
	call(at(4))
	if got := a.TakeVoid(); len(got) != 0 {
		t.Errorf("%+v were taken back although they are in use", got)
	}
	// What was taken up stays so when another counter was asked meanwhile.
	fourth := a.open[account{aCaller, SiteCounter}].last
	d.Granted(theCounter, fourth, at(4))
	apply(&d, 1, false)
	d.Next(crdt.NodeID{7}, at(5))
	d.GiveUp(at(6))
	fifth := call(at(6))
	if got := a.TakeVoid(); len(got) != 0 {
		t.Errorf("%+v were taken back although they are in use", got)
	}
	// And what was not taken up is found out all the same.
	d.GiveUp(at(7))
	apply(&d, 1, false)
	d.Next(crdt.NodeID{7}, at(7))
	d.GiveUp(at(8))
	call(at(8))
	if got := a.TakeVoid(); !slices.Equal(got, fifth.Tickets) {
		t.Errorf("%+v were taken back, want %+v", got, fifth.Tickets)
	}
}

func TestCallsWaitForWhatIsOnItsWay(t *testing.T) {
	var a Accounts
	next, there := uint64(1), false
	offer := func(want Places) Offer {
		if !there {
			return Offer{Wait: true, Retry: time.Second}
		}
		return granting(&next)(want)
	}
	serve := func(now time.Time) []Answered {
		return a.Serve(func(_ crdt.Incarnation, c Call) Offer { return offer(c.Want) }, now)
	}
	call := Call{Number: 1, Void: 1, Want: Places{Contested: 2}}
	for range 2 { // the same call again changes nothing
		if g, ok := a.Answer(aCaller, "a", call, offer, sec(0)); ok {
			t.Fatalf("answered %+v at once", g)
		}
	}
	if got := serve(sec(0.1)); len(got) != 0 || a.Waiting() != 2 {
		t.Errorf("%+v and %d waiting before anything has come", got, a.Waiting())
	}
	there = true
	got := serve(sec(0.2))
	if len(got) != 1 || got[0].To != aCaller.Node || got[0].Grant.Given.Sum() != 2 || a.Waiting() != 0 {
		t.Fatalf("%+v, want one grant of 2", got)
	}
	if g, ok := a.Answer(aCaller, "a", call, offer, sec(0.2)); !ok || total(g.Tickets) != 2 || next != 3 {
		t.Errorf("asked again: %+v, %v, want the same grant", g, ok)
	}
	there = false
	a.Answer(aCaller, "a", Call{Number: 2, Void: 2, Want: Places{Contested: 1}}, offer, sec(1))
	got = serve(sec(1).Add(Parked))
	if len(got) != 1 || got[0].Grant.Given.Sum() != 0 || got[0].Grant.Retry != time.Second {
		t.Errorf("%+v, want a refusal in time", got)
	}
	// A call that its caller has given up is answered by nobody.
	a.Answer(aCaller, "a", Call{Number: 3, Void: 3, Want: Places{Contested: 1}}, offer, sec(2))
	there = true
	if got := serve(sec(2).Add(CallTimeout)); len(got) != 0 || next != 3 {
		t.Errorf("%+v for a call of long ago", got)
	}
	a.Answer(aCaller, "a", Call{Number: 4, Void: 4, Want: Places{Contested: 1}}, func(Places) Offer { return Offer{Wait: true} }, sec(3))
	a.Answer(aCaller, "a", Call{Number: 5, Void: 4, Want: Places{Contested: 1}}, func(Places) Offer { return Offer{Wait: true} }, sec(3.1))
	if got := serve(sec(3.2)); len(got) != 1 || got[0].Grant.Number != 5 {
		t.Errorf("%+v, want one grant for the newest call", got)
	}
	a.Answer(aCaller, "a", Call{Number: 6, Void: 6}, func(Places) Offer { return Offer{Wait: true} }, sec(4))
	if a.Close(sec(4).Add(GrantKept)); len(a.open)+len(a.parked) != 0 {
		t.Error("the account of a node that is silent stays open")
	}
}

func TestDeskIsAloneUntilTheCounterAnswers(t *testing.T) {
	var d Desk[int]
	apply(&d, 1, false)
	d.Next(theCounter, at(0))
	if d.GiveUp(at(0).Add(CallTimeout)); !d.Alone() {
		t.Error("not alone although the counter is silent")
	}
	c, ok := d.Next(theCounter, at(1))
	if !ok || c.Want.Sum() != 0 {
		t.Fatalf("%+v, %v, want a call that finds out whether the counter is back", c, ok)
	}
	if d.GiveUp(at(2)); !d.Alone() {
		t.Error("not alone although the counter is silent still")
	}
	c, _ = d.Next(theCounter, at(2))
	if d.Granted(theCounter, Grant{Number: c.Number}, at(2)); d.Alone() {
		t.Error("alone although the counter has answered")
	}
	apply(&d, 1, false)
	d.Next(theCounter, at(3))
	d.GiveUp(at(4))
	if d.Next(crdt.NodeID{7}, at(4)); d.Alone() {
		t.Error("alone although another is the counter by now")
	}
}

// TestUnusedTicketsComeBackWithTheFinalMark has a counter return a loan: the
// lender has the rest at once, not when sessions of it might end.
func TestUnusedTicketsComeBackWithTheFinalMark(t *testing.T) {
	now := at(0)
	r, _, err := OpenRights(RightsConfig{Self: aLender, Room: aRoom, Session: time.Hour}, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	r.Receive(Transfer{Room: aRoom, From: aCaller.Node, To: aLender.Node, Gave: Amount{20, 20}}, now)
	write := func() {
		if r.Writes() != nil {
			r.Confirmed(now)
		}
	}
	write()
	s := NewStock(leads, aRoom)
	s.SetLenders([]Lender{{aLender, 20}}, now)
	takeFrom(s, 8, theCounter, now)
	for range 3 { // the first wish meets a bound that is too low, and has it raised
		for _, c := range s.Due(0, now) {
			if r.Lend(leads, c.Borrow, now) == 0 {
				s.Add(Loan{Room: aRoom, To: leads, Lender: aLender}, now)
			}
		}
		write()
		for _, l := range r.LoansDue(now) {
			s.Add(l, now)
		}
		s.SetLenders([]Lender{{aLender, r.Free().Places}}, now)
	}
	if got := total(takeFrom(s, 3, theCounter, now)); got != 3 || s.Rest(now) < 5 {
		t.Fatalf("%d tickets, and %d left", got, s.Rest(now))
	}
	now = at(0).Add(idleReturn)
	for _, c := range s.Due(0, now) {
		for _, rep := range c.Reports {
			r.Reported(theCounter, rep, now)
		}
	}
	r.Expire(now)
	if want := (Amount{17, 17}); r.Free() != want {
		t.Errorf("%+v are free, want %+v", r.Free(), want)
	}
}
