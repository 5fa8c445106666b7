package room

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// TestWhoWaitsAtASiteOutOfSight has the nodes of a site go out of sight. It may be cut off, and
// reckon with all who wait on both sides; so those here get no more of the places than before,
// until it is taken for silent. Under escrow rights decide, and who waits there fades at once.
func TestWhoWaitsAtASiteOutOfSight(t *testing.T) {
	start := clock(t, "12:00:05")
	waiting := func(n int64) crdt.Counts {
		return crdt.Counts{Waiting: map[int64]int64{start.Add(-2 * time.Minute).Unix(): n}}
	}
	for _, c := range []struct {
		policy Policy
		after  time.Duration
		here   int // waiting, over all
	}{
		{Even, 15 * time.Second, 80},
		{Curve, 15 * time.Second, 80},
		{Counter, 15 * time.Second, 80},
		{Even, time.Minute, 40},
		{Escrow, 10 * time.Second, 60},
		{Escrow, 20 * time.Second, 40},
	} {
		s := Settings{Policy: c.policy, TotalActiveUsers: 40, NewUsersPerMinute: 400, RefreshInterval: 20 * time.Second}
		now := start.Add(c.after)
		closed := crdt.TickOf(start) - 1
		in := Input{Nodes: nodeIDs(1), Self: nodeID(0), Sites: []Site{
			{Name: "a", Own: true, Nodes: 1, Counts: waiting(40), Closed: crdt.TickOf(now) - 1},
			{Name: "b", Counts: waiting(40), Closed: closed, Changed: start},
		}}
		var h History
		in.Frozen = h.Observe(&s, in.Sites, now)
		v := Build(s, in, now)
		if v.Waiting != c.here {
			t.Errorf("%s, after %v: %d wait, want %d", c.policy, c.after, v.Waiting, c.here)
		}
		if got := v.Sites[0].Reserved; c.here == 80 && got > 20 {
			t.Errorf("%s, after %v: %d places for those who wait here, want at most half of 40", c.policy, c.after, got)
		}
	}
}
