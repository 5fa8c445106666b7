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
	inside := Visitor{Arrival: now, AcceptedAt: now, LeaseEnd: now.Add(time.Minute)}
	for name, f := range map[string]func(){
		"new":      func() { v.Decide(Visitor{}, now) },
		"waiting":  func() { v.Decide(waiting, now) },
		"inside":   func() { v.Decide(inside, now) },
		"estimate": func() { v.Estimate(waiting.Arrival, Shown{}) },
		"owner":    func() { Owner(nil, crdt.RoomID{}, [16]byte{}, nodes) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
