package httpfront

import (
	"errors"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// dryRuns counts the requests of a room that would have queued.
type dryRuns struct {
	Room
	n int
}

func (d *dryRuns) CountDryRun() { d.n++ }

func (d *dryRuns) Route(host, path string) Room { return d }

// configure has the node and the front go by other settings.
func (c *crowded) configure(s room.Settings) {
	c.t.Helper()
	if err := errors.Join(c.core.Configure(s, c.now), c.front.Configure(s)); err != nil {
		c.t.Fatal(err)
	}
}

// newDryRun is a room for one that tries its limits.
func newDryRun(t *testing.T, change ...func(*room.Settings)) (*crowded, room.Settings, *dryRuns) {
	t.Helper()
	c := newCrowded(t, room.NewVisitors{})
	d := &dryRuns{Room: c.front.cfg.Rooms.Route("", "/")}
	c.front.cfg.Rooms = d
	s := smallRoom()
	s.DryRun = true
	for _, f := range change {
		f(&s)
	}
	c.configure(s)
	return c, s, d
}

// TestADryRunHoldsNobody has two visitors come to a room for one, which tries its limits:
// both see the site, the second is counted as one who waits, and keeps the place that
// would be theirs.
func TestADryRunHoldsNobody(t *testing.T) {
	c, s, dry := newDryRun(t)
	first := c.ask("192.0.2.1", "").is(t, Admitted, "the first")
	second := c.ask("192.0.2.2", "").is(t, Admitted, "the second")
	for range 3 {
		c.pass(time.Second)
		c.ask("192.0.2.2", second.Cookie).is(t, Admitted, "who would have queued and comes again")
	}
	v := c.core.View(s.ID)
	if dry.n != 4 || v.Active != 1 || v.Waiting != 1 {
		t.Errorf("%d requests would have queued, %d are active and %d wait; want 4, 1 and 1", dry.n, v.Active, v.Waiting)
	}
	s.DryRun = false
	c.configure(s)
	equal(t, "who would have waited waits", c.ask("192.0.2.2", second.Cookie).queues(t), true)
	c.ask("192.0.2.1", first.Cookie).is(t, Admitted, "who was let in")
}

// TestADryRunHoldsNobodyForAnyReason: neither a room that rejects everybody, nor a line that
// takes nobody more.
func TestADryRunHoldsNobodyForAnyReason(t *testing.T) {
	for name, change := range map[string]func(*room.Settings){
		"reject":      func(s *room.Settings) { s.QueueingMethod = room.Reject },
		"queue all":   func(s *room.Settings) { s.QueueAll = true },
		"a long line": func(s *room.Settings) { s.Front.NewVisitors = room.NewVisitors{PerAddress: 1, All: 1} },
	} {
		c, _, dry := newDryRun(t, change)
		for i := range 5 {
			a := c.ask("192.0.2.1", "").is(t, Admitted, name, "visitor", i)
			lacks(t, name, string(a.Body), "queue")
		}
		if dry.n < 4 {
			t.Errorf("%s: %d requests would have queued, want four or five", name, dry.n)
		}
	}
}
