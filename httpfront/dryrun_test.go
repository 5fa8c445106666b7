package httpfront

import (
	"errors"
	"net/http"
	"strings"
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

// counts has requests that would have queued be counted.
func (c *crowded) counts() *dryRuns {
	d := &dryRuns{Room: c.front.cfg.Rooms.Route("", "/")}
	c.front.cfg.Rooms = d
	return d
}

// configure has the node and the front go by other settings.
func (c *crowded) configure(s room.Settings) {
	c.t.Helper()
	if err := errors.Join(c.core.Configure(s, c.now), c.front.Configure(s)); err != nil {
		c.t.Fatal(err)
	}
}

// TestADryRunHoldsNobody has two visitors come to a room for one, which tries its limits:
// both see the site, the second is counted as one who waits, and keeps the place that
// would be theirs.
func TestADryRunHoldsNobody(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{})
	s := smallRoom()
	s.DryRun = true
	dry := c.counts()
	c.configure(s)
	first := c.ask("192.0.2.1", "")
	second := c.ask("192.0.2.2", "")
	if first.Outcome != Admitted || second.Outcome != Admitted {
		t.Fatalf("in a dry run: %v and %v", first.Outcome, second.Outcome)
	}
	for range 3 {
		c.pass(time.Second)
		if a := c.ask("192.0.2.2", second.Cookie); a.Outcome != Admitted {
			t.Fatalf("who would have queued and comes again: %v", a.Outcome)
		}
	}
	v := c.core.View(s.ID)
	if dry.n != 4 || v.Active != 1 || v.Waiting != 1 {
		t.Errorf("%d requests would have queued, %d are active and %d wait; want 4, 1 and 1", dry.n, v.Active, v.Waiting)
	}
	s.DryRun = false
	c.configure(s)
	if a := c.ask("192.0.2.2", second.Cookie); a.Outcome != Queued || a.Status != http.StatusOK {
		t.Errorf("after the dry run: %v %d", a.Outcome, a.Status)
	}
	if a := c.ask("192.0.2.1", first.Cookie); a.Outcome != Admitted {
		t.Errorf("who was let in: %v", a.Outcome)
	}
}

// TestADryRunHoldsNobodyForAnyReason: neither a room that rejects everybody, nor a line that
// takes nobody more.
func TestADryRunHoldsNobodyForAnyReason(t *testing.T) {
	for name, change := range map[string]func(*room.Settings){
		"reject":      func(s *room.Settings) { s.QueueingMethod = room.Reject },
		"queue all":   func(s *room.Settings) { s.QueueAll = true },
		"a long line": func(s *room.Settings) { s.Front.NewVisitors = room.NewVisitors{PerAddress: 1, All: 1} },
	} {
		c := newCrowded(t, room.NewVisitors{})
		s := smallRoom()
		s.DryRun = true
		change(&s)
		dry := c.counts()
		c.configure(s)
		for i := range 5 {
			if a := c.ask("192.0.2.1", ""); a.Outcome != Admitted || strings.Contains(string(a.Body), "queue") {
				t.Errorf("%s: visitor %d: %v", name, i, a.Outcome)
			}
		}
		if dry.n < 4 {
			t.Errorf("%s: %d requests would have queued, want four or five", name, dry.n)
		}
	}
}
