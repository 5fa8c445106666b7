package httpfront

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

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
	text, err := json.Marshal(c.front.Explain(q))
	equal(c.t, what, err, nil)
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
	if v := c.core.View(s.ID); v.Active != 0 || v.Waiting != 0 {
		t.Errorf("explaining took %d places", v.Active)
	}
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
