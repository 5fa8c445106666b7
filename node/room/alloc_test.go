//go:build !race

package room

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// The race detector allocates on its own account, hence the build tag.
func TestRequestsDoNotAllocate(t *testing.T) {
	now := clock(t, "12:00:31")
	v := benchmarkView(now)
	waiting := Visitor{Arrival: now.Add(-50 * time.Second), LastPoll: now.Add(-20 * time.Second), Refresh: 20 * time.Second}
	nodes := nodeIDs(5)
	s := Settings{Policy: Even, TotalActiveUsers: 600, NewUsersPerMinute: 1000, QueueingMethod: Random, Events: []Event{
		{PrequeueStart: now.Add(-time.Hour), Start: now, End: now.Add(time.Hour), Shuffle: true},
	}}.WithDefaults()
	random := Build(s, busyInput(now), now)
	text := make([]byte, 0, 64)
	inside := Visitor{Arrival: now, AcceptedAt: now, LeaseEnd: now.Add(time.Minute)}
	for name, f := range map[string]func(){
		"new":              func() { v.Decide(Visitor{}, now) },
		"waiting":          func() { v.Decide(waiting, now) },
		"inside":           func() { v.Decide(inside, now) },
		"estimate":         func() { v.Estimate(waiting.Arrival, Shown{}) },
		"owner":            func() { Owner(nil, crdt.RoomID{}, [16]byte{}, nodes) },
		"estimate, random": func() { random.Estimate(waiting.Arrival, Shown{}) },
		"settings":         func() { s.At(now) },
		"place":            func() { s.Place(nil, [16]byte{1}, now.Add(-time.Minute)) },
		"interval":         func() { s.Jitter([16]byte{1}, now) },
		"formatted":        func() { Estimate{Known: true, P25: 1, P75: 90}.AppendFormatted(text[:0], Random) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

// Views are read by requests after the next one is built, so each has memory of
// its own: itself, buckets, granules and sites. All else is the builder's.
func TestBuildAllocatesTheViewAlone(t *testing.T) {
	now := clock(t, "12:00:31")
	for _, policy := range []Policy{Even, Counter, Escrow} {
		in := busySites(now, 20, 1800)
		s := Settings{TotalActiveUsers: 600, NewUsersPerMinute: 1000, Policy: policy}.WithDefaults() // as a node has them
		var b Builder
		b.Build(&s, &in, now)
		if n := testing.AllocsPerRun(100, func() { b.Build(&s, &in, now) }); n > 4 {
			t.Errorf("%s: %v allocations, want 4", policy, n)
		}
	}
}
