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
