package httpfront

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node/room"
)

// followed are two rooms of one name in different zones.
func followed() []room.Settings {
	rooms := make([]room.Settings, 2)
	for i := range rooms {
		s := smallRoom()
		s.ID, s.Name, s.Host = crdt.RoomID{byte(i + 1)}, "sale", string(rune('a'+i))+".example"
		s.Front.CustomPage = "<p>" + s.Host + "</p>"
		rooms[i] = s
	}
	return rooms
}

// TestRoomsAreFollowed has rooms come, change and go.
func TestRoomsAreFollowed(t *testing.T) {
	f := judges(t, fakeRooms{})
	rooms := followed()
	equal(t, "an error", f.Follow(rooms), nil)
	one, two := f.frontOf(&rooms[0]), f.frontOf(&rooms[1])
	if one == two || one == f.plain || two == f.plain {
		t.Fatal("two rooms of one name have one page")
	}
	_, err := f.Page("sale", "")
	has(t, "a name that two rooms have", fmt.Sprint(err), "give the id")
	p, err := f.Page(rooms[1].ID.String(), "")
	equal(t, "an error by id", err, nil)
	equal(t, "the page by id", p, two.page)
	rooms[1].Front.Message = "soon"
	equal(t, "an error of a change", f.Follow(rooms), nil)
	equal(t, "a room that has not changed", f.frontOf(&rooms[0]), one)
	changed := f.frontOf(&rooms[1])
	if changed == two {
		t.Error("a room that has changed is as before")
	}
	rooms[1].Front.CustomPage = "{{#broken"
	if err := f.Follow(rooms[1:]); err == nil {
		t.Error("a page that does not compile is no error")
	}
	equal(t, "a room whose new page does not compile, with the old one", f.frontOf(&rooms[1]), changed)
	equal(t, "a room that is gone", f.frontOf(&rooms[0]), f.plain)
}

// TestHostsChange has the hosts that are served change while requests run.
func TestHostsChange(t *testing.T) {
	f := judges(t, fakeRooms{})
	accepts := func(host string) int { return f.accepts(&request{Request: http1.Request{Host: host}}).Code }
	equal(t, "a host where all are served", accepts("any.example"), 0)
	f.SetHosts([]string{"a.example"})
	equal(t, "a host that is served", accepts("a.example"), 0)
	equal(t, "another host", accepts("any.example"), 421)
}

type crawlers map[string]netip.Addr

func (c crawlers) Is(userAgent []byte, addr netip.Addr) bool { return c[string(userAgent)] == addr }

// TestCrawlersBypass lets a crawler pass a room that says so, and nobody else, nor any room
// that does not.
func TestCrawlersBypass(t *testing.T) {
	r := newRoom(never)
	f := judges(t, fakeRooms{room: r}, func(c *Config) { c.Crawlers = crawlers{"bot": netip.MustParseAddr("192.0.2.7")} })
	for _, c := range []struct {
		bypass        bool
		agent, client string
		want          Outcome
	}{
		{true, "bot", "192.0.2.7", Admitted},
		{true, "bot", "192.0.2.8", Queued},
		{true, "browser", "192.0.2.7", Queued},
		{false, "bot", "192.0.2.7", Queued},
	} {
		r.settings.Front.CrawlerBypass = c.bypass
		configure(t, f, r.settings)
		q := asks("GET", "/", "User-Agent", c.agent)
		q.For = c.client
		f.Judge(q).is(t, c.want, c.agent, "at", c.client)
	}
	equal(t, "requests that are counted as bypassing", r.bypassed.Load(), 1)
}
