package sim

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestPassIsAsACookieHasIt has one carried, with times that a cookie has no place for.
func TestPassIsAsACookieHasIt(t *testing.T) {
	m := &machine{}
	r := registry{byID: map[crdt.NodeID]int32{}}
	m.identity = r.add(1, m, 0)
	at := time.UnixMilli(1_800_000_000_007)
	whole := node.Pass{
		Visitor: node.VisitorID{1}, Room: roomID, Arrival: at, AcceptedAt: at.Add(time.Second), LeaseEnd: at.Add(time.Minute),
		Refresh: time.Second, Ticket: ticket.Ticket{Anchor: m.id, Boot: 1, Seq: 5},
	}
	p := whole
	p.Arrival, p.AcceptedAt, p.LeaseEnd, p.Refresh = p.Arrival.Add(3), p.AcceptedAt.Add(999_999), p.LeaseEnd.Add(1), p.Refresh+9
	q := r.pack(p)
	if q.Pass != whole || q.anchor != 1 || q.accepted != at.UnixMilli()+1000 || q.room != 0 {
		t.Errorf("got %+v\nwant %+v", q, whole)
	}
	if q = r.pack(node.Pass{}); q != (pass{}) {
		t.Errorf("no pass becomes %+v", q)
	}
}
