package ticket

import (
	"slices"
	"testing"

	"github.com/ropeline/ropeline/crdt"
)

// watched returns rights of an unlimited room that note which sessions end, with what an
// earlier start had in use.
func watched(t *testing.T, before int64, all *[]Ended) *Rights {
	t.Helper()
	r, _, err := OpenRights(RightsConfig{
		Self: self, Room: crdt.RoomID{9}, Session: session, Unlimited: true, Before: before,
		Ended: func(e Ended) { *all = append(*all, e) },
	}, nil, at(0))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantEnded(t *testing.T, got []Ended, want ...Ended) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b Ended) bool {
		return a.Began.Equal(b.Began) && a.Last.Equal(b.Last) && a.Revoked == b.Revoked
	}) {
		t.Errorf("told %+v, want %+v", got, want)
	}
}

// TestEndsAreTold: of each session that ends here, once, whatever it began as.
func TestEndsAreTold(t *testing.T) {
	var told []Ended
	r := watched(t, 1, &told)
	enter := func(seq uint64, s float64) {
		t.Helper()
		if _, _, err := r.Enter(mine(seq), at(s+60), at(s), at(s)); err != nil {
			t.Fatal(err)
		}
	}
	checkIn := func(x Ticket, passEnd, s float64) {
		t.Helper()
		if _, _, err := r.CheckIn(x, at(passEnd), at(s), at(s)); err != nil {
			t.Fatal(err)
		}
	}
	enter(101, 1)
	checkIn(mine(101), 61, 30)
	enter(102, 2)
	checkIn(earlyOf(7), 50, 3) // of an earlier start
	ranges, _ := r.Issue(2, at(4))
	given := mine(ranges[0].First) // the other one is never used
	checkIn(given, 66, 6)
	checkIn(given, 66, 20)
	moved, _, _, ok := r.Reanchor(mine(103), at(5), at(5), false)
	if !ok {
		t.Fatal("a session is not taken over")
	}
	checkIn(moved, 65, 10)

	r.End(mine(102), at(12))
	r.End(mine(102), at(13))
	wantEnded(t, told, Ended{Began: at(2), Last: at(12), Revoked: true})
	told = nil
	for s := range 40 {
		r.Expire(at(float64(s * 5)))
	}
	slices.SortFunc(told, func(a, b Ended) int { return a.Last.Compare(b.Last) })
	wantEnded(t, told,
		Ended{Last: at(3)},                // began in another start
		Ended{Last: at(10)},               // began elsewhere
		Ended{Began: at(6), Last: at(20)}, // given to another node
		Ended{Began: at(1), Last: at(30)},
	)
	if n := r.leases.leases.Len(); n > 0 {
		t.Errorf("%d leases are kept of sessions that have ended", n)
	}
}

// TestEndsOfLoans: the session of a ticket that was lent is told when it ends, and one that
// nobody used is not.
func TestEndsOfLoans(t *testing.T) {
	var told []Ended
	r, _, err := OpenRights(RightsConfig{Self: self, Session: session, Ended: func(e Ended) { told = append(told, e) }},
		[]Put{{keyMinted, appendAmount(nil, Amount{20, 30})}}, at(0))
	if err != nil {
		t.Fatal(err)
	}
	d := &desk1{Rights: r, t: t}
	d.Expire(at(90))
	l := d.lends(2, at(91)) // one of which nobody uses
	lent := Ticket{Anchor: self.Node, Boot: self.Boot, Block: l.Block, Seq: l.First}
	if _, _, err := d.CheckIn(lent, at(155), at(95), at(95)); err != nil {
		t.Fatal(err)
	}
	for s := range 60 {
		d.Expire(at(float64(95 + s*5)))
	}
	wantEnded(t, told, Ended{Began: at(95), Last: at(95)})
}

// TestEndsThatNobodyHears: where sessions are not renewed, nobody knows when a visitor was
// there for the last time.
func TestEndsThatNobodyHears(t *testing.T) {
	var told []Ended
	r := watched(t, 0, &told)
	r.SetRenewal(false)
	if _, _, err := r.Enter(mine(1), at(61), at(1), at(1)); err != nil {
		t.Fatal(err)
	}
	r.Expire(at(62))
	wantEnded(t, told, Ended{Began: at(1)})
}
