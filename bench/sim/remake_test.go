package sim

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// TestARoomMadeAgain: all who are inside when the room is deleted come in anew, by the
// rights of the room that is made in its place, at nodes that were not started again;
// nobody is let in between.
func TestARoomMadeAgain(t *testing.T) {
	t.Parallel()
	cfg := small(300, 6*time.Minute)
	cfg.Room.Policy = room.Escrow
	cfg.Faults = []Fault{{Kind: Remake, Site: 2, Node: 1, From: 3 * time.Minute, For: 20 * time.Second}}
	r := simulate(t, cfg)
	before := simulate(t, func() Config { c := cfg; c.Faults = nil; return c }())
	if r.LetIn != r.Visitors || before.LetIn != before.Visitors {
		t.Errorf("%d of %d were let in, without the fault %d of %d", r.LetIn, r.Visitors, before.LetIn, before.Visitors)
	}
	// Many of those who were inside have left by then.
	if more := r.Requeued - before.Requeued; more < 5 || more > 40 {
		t.Errorf("%d more had to come in anew, want some of the about 35 who were inside", more)
	}
}

// TestARoomMadeAgainWithinAMinute: the rate is that of both rooms together, whenever the second one
// is made: it lets nobody in as long as those count whom the first one let in.
func TestARoomMadeAgainWithinAMinute(t *testing.T) {
	t.Parallel()
	gaps := []time.Duration{40 * time.Second, time.Second, 70 * time.Second}
	if testing.Short() {
		gaps = gaps[:1]
	}
	for _, gap := range gaps {
		cfg := small(600, 2*time.Minute)
		cfg.Room.Policy, cfg.Room.TotalActiveUsers, cfg.Room.NewUsersPerMinute = room.Escrow, 1000, 100
		cfg.Faults = []Fault{{Kind: Remake, Site: 1, From: 50 * time.Second, For: gap}}
		r := simulate(t, cfg)
		if n := r.PeakMinute; n > 100 || n < 70 || r.OvershootRatePct != 0 || r.Exempt.Remade != 0 {
			t.Errorf("made again after %v: %d were let in within 60 s, %d of them beside those of the room before, overshoot %v %%; want up to 100, and no others",
				gap, n, r.Exempt.Remade, r.OvershootRatePct)
		}
		if r.LetIn < 300 {
			t.Errorf("made again after %v: %d were let in, want some by the second room", gap, r.LetIn)
		}
	}
}
