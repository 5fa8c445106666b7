package httpfront

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/node/room"
)

// explains asks why a request is decided as it is.
func (c *crowded) explains(address, target, cookie string) Explained {
	name, _, _ := strings.Cut(cookie, ";")
	fields := []string{"User-Agent", "a browser"}
	if name != "" {
		fields = append(fields, "Cookie", name)
	}
	q := asks("GET", target, fields...)
	q.Peer = netip.MustParseAddr(address)
	return c.front.Explain(q)
}

func TestRequestsAreExplained(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{})
	s := smallRoom()
	s.Front.Rules = []room.Rule{
		{Expression: `http.request.uri.path eq "/off"`, Disabled: true, Action: room.Bypass},
		{Expression: `http.request.uri.path eq "/health"`, Description: "health checks", Action: room.Bypass},
	}
	c.configure(s)
	if x := c.explains("192.0.2.1", "/health", ""); !x.Passes || x.Bypass == nil || x.Bypass.Rule != 2 || x.Bypass.Description != "health checks" || x.Decided != nil {
		t.Errorf("a request that a rule lets pass: %+v", x)
	}
	if x := c.explains("192.0.2.1", "/../x", ""); x.Passes || x.Refused == "" {
		t.Errorf("a request that is refused: %+v", x)
	}
	x := c.explains("192.0.2.1", "/", "")
	if !x.Passes || x.Cookie != "none" || x.Decided == nil || x.Decided.Reason != room.ReasonOpen || x.Room != "shop" {
		t.Errorf("somebody new while there is a place: %+v", x)
	}
	if v := c.core.View(s.ID); v.Active != 0 || v.Waiting != 0 {
		t.Errorf("explaining took %d places", v.Active)
	}
	first := c.ask("192.0.2.1", "")
	second := c.ask("192.0.2.2", "")
	c.pass(0)
	if x := c.explains("192.0.2.1", "/", first.Cookie); !x.Passes || x.Cookie != "good" || x.Decided.Reason != room.ReasonInside || x.Decided.Pass.AcceptedAt == nil {
		t.Errorf("who is inside: %+v", x)
	}
	x = c.explains("192.0.2.2", "/", second.Cookie)
	if x.Passes || x.Cookie != "good" || x.Decided.Pass == nil || x.Decided.Pass.AcceptedAt != nil || x.Decided.Place == nil {
		t.Errorf("who waits: %+v", x)
	}
	if x := c.explains("192.0.2.2", "/", strings.Replace(second.Cookie, "=", "=x", 1)); x.Passes || !strings.Contains(x.Cookie, "cannot") && !strings.Contains(x.Cookie, "none that can be opened") || x.Decided.Pass != nil {
		t.Errorf("a cookie that cannot be opened: %+v", x)
	}
	s.DryRun = true
	c.configure(s)
	if x := c.explains("192.0.2.2", "/", second.Cookie); !x.Passes || !x.DryRun || x.Decided.Action == "enter" {
		t.Errorf("who waits in a dry run: %+v", x)
	}
	s.Suspended = true
	c.configure(s)
	if x := c.explains("192.0.2.2", "/", second.Cookie); !x.Passes || x.Room != "" {
		t.Errorf("without a room: %+v", x)
	}
}
