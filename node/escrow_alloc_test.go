//go:build !race

package node

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// TestAllocationsOfTickets holds what a new visitor's ticket costs, from request to end of
// session, in the long run: passes, verdicts and those who wait are handed on without
// garbage. What is left is per call and per tick.
func TestAllocationsOfTickets(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // what is kept for the next stays
	s := testSettings(1 << 30)
	s.Policy, s.NewUsersPerMinute, s.SessionDuration = room.Escrow, 1<<30, time.Second
	m := &machine{id: crdt.NodeID{1}, site: "a", found: true}
	w := &world{t: t, now: noon, nodes: []*machine{m}, remember: true}
	w.start(m, s)
	w.run(3 * time.Second)
	m.core.entropy = nil // ids as in production
	r := m.core.Route("shop", "/")
	const each = 100
	given := 0
	done := func(v Verdict) {
		if v.Admit {
			given++
		}
	}
	step := func() {
		w.now = w.now.Add(tickInterval)
		for range each {
			r.Begin(Pass{}, false, w.now, done)
		}
		m.core.Flush(w.now)
		m.core.Tick(w.now)
		w.write(m)
	}
	for range 60 { // longer than sessions last, and until what is on disk covers as many
		step()
	}
	given = 0
	const runs = 50
	if n := testing.AllocsPerRun(runs, step); n > each/4 {
		t.Errorf("%.0f allocations for %d tickets and a tick, want %d at most", n, each, each/4)
	}
	if given != (runs+1)*each {
		t.Errorf("%d of %d got tickets", given, (runs+1)*each)
	}
}
