package httpfront

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node/room"
)

// followed are two rooms of one name in different zones, and one without.
func followed() []room.Settings {
	a := room.Settings{ID: crdt.RoomID{1}, Name: "sale", Host: "a.example", TotalActiveUsers: 1, NewUsersPerMinute: 1}
	a.Front.CustomPage = "<p>one</p>"
	b := room.Settings{ID: crdt.RoomID{2}, Name: "sale", Host: "b.example", TotalActiveUsers: 1, NewUsersPerMinute: 1}
	b.Front.CustomPage = "<p>two</p>"
	return []room.Settings{a.WithDefaults(), b.WithDefaults()}
}

// TestRoomsAreFollowed has rooms come, change and go.
func TestRoomsAreFollowed(t *testing.T) {
	f := judges(t, fakeRooms{})
	rooms := followed()
	if err := f.Follow(rooms); err != nil {
		t.Fatal(err)
	}
	one, two := f.frontOf(&rooms[0]), f.frontOf(&rooms[1])
	if one == two || one == f.plain || two == f.plain {
		t.Fatal("two rooms of one name have one page")
	}
	if _, err := f.Page("sale", ""); err == nil || !strings.Contains(err.Error(), "give the id") {
		t.Errorf("a name that two rooms have: error %v", err)
	}
	if p, err := f.Page(rooms[1].ID.String(), ""); err != nil || p != two.page {
		t.Errorf("by id: page %p, error %v", p, err)
	}
	rooms[1].Front.Message = "soon"
	if err := f.Follow(rooms); err != nil {
		t.Fatal(err)
	}
	if f.frontOf(&rooms[0]) != one {
		t.Error("a room that has not changed is made anew")
	}
	changed := f.frontOf(&rooms[1])
	if changed == two {
		t.Error("a room that has changed is as before")
	}
	rooms[1].Front.CustomPage = "{{#broken"
	if err := f.Follow(rooms[1:]); err == nil {
		t.Error("a page that does not compile is no error")
	}
	if f.frontOf(&rooms[1]) != changed {
		t.Error("a room whose new page does not compile does not keep the old one")
	}
	if f.frontOf(&rooms[0]) != f.plain {
		t.Error("a room that is gone is still there")
	}
}

// TestHostsChange has the hosts that are served change while requests run.
func TestHostsChange(t *testing.T) {
	f := judges(t, fakeRooms{})
	accepted := func(host string) bool { return f.accepts(&request{Request: http1.Request{Host: host}}).Code == 0 }
	if !accepted("any.example") {
		t.Error("a host is refused where all are served")
	}
	f.SetHosts([]string{"a.example"})
	if accepted("any.example") || !accepted("a.example") {
		t.Error("other hosts are served than those that shall be")
	}
}

type crawlers map[string]netip.Addr

func (c crawlers) Is(userAgent []byte, addr netip.Addr) bool { return c[string(userAgent)] == addr }

// TestCrawlersBypass lets a crawler pass a room that says so, and nobody else, nor any room
// that does not.
func TestCrawlersBypass(t *testing.T) {
	known := netip.MustParseAddr("192.0.2.7")
	f := judges(t, fakeRooms{})
	f.cfg.Crawlers = crawlers{"bot": known}
	settings := followed()[0]
	for _, c := range []struct {
		bypass bool
		agent  string
		client netip.Addr
		want   bool
	}{
		{true, "bot", known, true},
		{true, "bot", netip.MustParseAddr("192.0.2.8"), false},
		{true, "browser", known, false},
		{false, "bot", known, false},
	} {
		settings.Front.CrawlerBypass = c.bypass
		if err := f.Follow([]room.Settings{settings}); err != nil {
			t.Fatal(err)
		}
		r := &request{Request: http1.Request{Fields: []http1.Field{{Name: []byte("user-agent"), Value: []byte(c.agent)}}}}
		r.via.Client = c.client
		counted := &fakeRoom{settings: settings}
		if got := f.bypasses(counted, f.frontOf(&settings), r); got != c.want {
			t.Errorf("bypass %v, %s at %s: %v, want %v", c.bypass, c.agent, c.client, got, c.want)
		}
	}
}
