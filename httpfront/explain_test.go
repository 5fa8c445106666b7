package httpfront

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// explained asks why a request is decided as it is, and fails the test unless that says each
// of the parts, in JSON. It returns that text.
func (c *crowded) explained(what, address, target, cookie string, parts ...string) string {
	c.t.Helper()
	fields := []string{"User-Agent", "a browser"}
	if name, _, _ := strings.Cut(cookie, ";"); name != "" {
		fields = append(fields, "Cookie", name)
	}
	q := asks("GET", target, fields...)
	q.Peer = netip.MustParseAddr(address)
	text := must(json.Marshal(c.front.Explain(q)))
	has(c.t, what, string(text), parts...)
	return string(text)
}

func TestRequestsAreExplained(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{})
	s := smallRoom()
	s.Front.Rules = []room.Rule{
		{Expression: `http.request.uri.path eq "/off"`, Disabled: true, Action: room.Bypass},
		{Expression: `http.request.uri.path eq "/health"`, Description: "health checks", Action: room.Bypass},
	}
	c.configure(s)
	const passes, isRefused = `"passes":true`, `"passes":false`
	bypass := c.explained("by a rule", "192.0.2.1", "/health", "", passes, `"bypass":{"rule":2,"description":"health checks"`)
	lacks(t, "by a rule", bypass, `"decided"`)
	c.explained("not in order", "192.0.2.1", "/../x", "", isRefused, `"refused":"`)
	c.explained("somebody new while there is a place", "192.0.2.1", "/", "", passes, `"cookie":"none"`, `"room":"shop"`, `"reason":"`+string(room.ReasonOpen)+`"`)
	v := c.core.View(s.ID)
	equal(t, "places that were taken by explaining", v.Active+v.Waiting, 0)
	first, second := c.ask("192.0.2.1", "").Cookie, c.ask("192.0.2.2", "").Cookie
	c.explained("who is inside", "192.0.2.1", "/", first, passes, `"cookie":"good"`, `"reason":"`+string(room.ReasonInside)+`"`, `"accepted_at":"`)
	waits := c.explained("who waits", "192.0.2.2", "/", second, isRefused, `"cookie":"good"`, `"pass":{`, `"place":{`)
	lacks(t, "who waits", waits, `"accepted_at"`)
	spoilt := strings.Replace(second, "=", "=x", 1)
	other := c.explained("a cookie that cannot be opened", "192.0.2.2", "/", spoilt, isRefused, `"cookie":"none that can be opened`)
	lacks(t, "a cookie that cannot be opened", other, `"pass":`)
	s.DryRun = true
	c.configure(s)
	dry := c.explained("who waits in a dry run", "192.0.2.2", "/", second, `"dry_run":true,"passes":true`)
	lacks(t, "who waits in a dry run", dry, `"action":"enter"`)
	s.Suspended = true
	c.configure(s)
	lacks(t, "without a room", c.explained("without a room", "192.0.2.2", "/", second, passes), `"room":`)
}

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
	noError(c.t, errors.Join(c.core.Configure(s, c.now), c.front.Configure(s)))
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
	equal(t, "requests that would have queued", dry.n, 4)
	equal(t, "who is active, and who waits", fmt.Sprint(v.Active, v.Waiting), "1 1")
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
