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

// TestARoomMadeAgainWithinAMinute: each room has the rate of new users for itself. Who comes in by
// the second one while those of the first are less than 60 s inside is counted apart, and nobody
// where a minute passes between the two.
func TestARoomMadeAgainWithinAMinute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gap        time.Duration
		peak, both int // let in within 60 s, and of those beside the room before
	}{
		{time.Second, 200, 100},
		{70 * time.Second, 100, 0},
	} {
		cfg := small(600, 2*time.Minute)
		cfg.Room.Policy, cfg.Room.TotalActiveUsers, cfg.Room.NewUsersPerMinute = room.Escrow, 1000, 100
		cfg.Faults = []Fault{{Kind: Remake, Site: 1, From: 50 * time.Second, For: c.gap}}
		r := simulate(t, cfg)
		if n := r.PeakMinute; n > c.peak || n < c.peak-30 || r.OvershootRatePct != 0 {
			t.Errorf("made again after %v: %d were let in within 60 s, overshoot %v %%; want up to %d", c.gap, n, r.OvershootRatePct, c.peak)
		}
		if n := r.Exempt.Remade; n > c.both || n < c.both-30 {
			t.Errorf("made again after %v: %d are counted beside those of the room before, want up to %d", c.gap, n, c.both)
		}
	}
}
