package ticket

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// TestWhoWasRepaidIsKnownAfterARestart has a place come free for a borrowed session, and
// its anchor restart: the place is counted, and the visitor is let in on it.
func TestWhoWasRepaidIsKnownAfterARestart(t *testing.T) {
	now := at(0)
	r := startOf(t, 1, time.Minute, []Put{{keyMinted, appendAmount(nil, Amount{1, 10})}}, now)
	openOne(t, r, now)
	first := Ticket{Anchor: crdt.NodeID{1}, Boot: 1, Seq: 1}
	if _, _, err := r.Enter(first, now, now, now); err != nil {
		t.Fatal(err)
	}
	borrowed, end, _, ok := r.Reanchor(Ticket{Anchor: crdt.NodeID{1}, Boot: 1, Seq: 2}, now, now, true)
	if !ok || !borrowed.Borrowed() {
		t.Fatalf("a session without a place: ticket %+v, %v", borrowed, ok)
	}
	if got := r.TakeRepaid(); len(got) > 0 {
		t.Fatalf("%+v were repaid although no place is free", got)
	}
	r.End(first, now)
	r.Expire(now)
	writeAll(r, now)
	r.Expire(now)
	got := r.TakeRepaid()
	if len(got) != 1 || got[0].Old != borrowed || got[0].New.Borrowed() || !got[0].End.Equal(end) || r.Borrowed() != 0 {
		t.Fatalf("%+v were repaid, and %d are borrowed, want one repaid until %v", got, r.Borrowed(), end)
	}
	if _, _, err := r.CheckIn(borrowed, end, now, now); err != nil {
		t.Errorf("the old ticket of who was repaid: %v", err)
	}
	if r.InUse() != 1 || len(r.TakeRepaid()) != 0 {
		t.Errorf("%d places are in use, want 1, and nobody repaid twice", r.InUse())
	}
	again := startOf(t, 2, time.Minute, r.Stored(), now)
	if _, _, err := again.CheckIn(got[0].New, end, now, now); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}
