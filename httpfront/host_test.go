package httpfront

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// hostRooms has a room for each host, and one, named "", for every other one.
type hostRooms map[string]*fakeRoom

func (r hostRooms) Route(host, _ string) Room {
	if found := r[host]; found != nil {
		return found
	}
	if rest := r[""]; rest != nil {
		return rest
	}
	return nil
}

func newHostRooms(hosts ...string) hostRooms {
	rooms := hostRooms{}
	for i, host := range hosts {
		r := newRoom(letIn)
		r.settings.ID, r.settings.CookieSuffix = crdt.RoomID{byte(i + 1)}, fmt.Sprint("room", i)
		rooms[host] = r
	}
	return rooms
}

// TestTheHostOfATrustedProxyDecides: behind proxies that rewrite Host, the room, the
// origins, the rules and the pass are those of the host that visitors ask for.
func TestTheHostOfATrustedProxyDecides(t *testing.T) {
	reads := func(name string) func(*Config) { return func(c *Config) { c.Edge.ClientIPHeader = name } }
	for name, tt := range map[string]struct {
		change []func(*Config)
		rooms  []string
		fields []string // Host is the first
		room   string   // the cookie's suffix; "" for none
		site   string   // where it is served
	}{
		"rewritten":                {[]func(*Config){trustLoopback}, []string{"shop.example"}, []string{"inner:8080", "X-Forwarded-Host", "shop.example"}, "room0", "shop"},
		"with a port, in capitals": {[]func(*Config){trustLoopback}, []string{"shop.example"}, []string{"inner", "X-Forwarded-Host", "SHOP.example.:8443"}, "room0", "shop"},
		"in Forwarded":             {[]func(*Config){trustLoopback, reads("Forwarded")}, []string{"shop.example"}, []string{"inner", "Forwarded", `for=192.0.2.9;host="shop.example:443"`}, "room0", "shop"},
		"of a list, the visitor's": {[]func(*Config){trustLoopback}, []string{"shop.example", "evil.example"}, []string{
			"inner",
			"X-Forwarded-For", "6.6.6.6, 192.0.2.9, 127.0.0.2", "X-Forwarded-Host", "evil.example, shop.example, lb.internal",
		}, "room0", "shop"},
		"another room than that of every host": {[]func(*Config){trustLoopback}, []string{"", "shop.example"}, []string{"inner", "X-Forwarded-Host", "shop.example"}, "room1", "shop"},
		"nobody is trusted":                    {nil, []string{"shop.example"}, []string{"inner", "X-Forwarded-Host", "shop.example"}, "", "everybody"},
		"a host that is none":                  {[]func(*Config){trustLoopback}, []string{"shop.example"}, []string{"inner", "X-Forwarded-Host", "shop.example/x"}, "", "everybody"},
		"Host is not rewritten":                {[]func(*Config){trustLoopback}, []string{"shop.example"}, []string{"shop.example", "X-Forwarded-Host", "shop.example"}, "room0", "shop"},
		// What a visitor adds behind a proxy that passes it on leads past no room.
		"another host than that of a room": {[]func(*Config){trustLoopback}, []string{"shop.example"}, []string{"shop.example", "X-Forwarded-Host", "elsewhere.example"}, "room0", "shop"},
		"from one room to another":         {[]func(*Config){trustLoopback}, []string{"shop.example", "quiet.example"}, []string{"shop.example", "X-Forwarded-Host", "quiet.example"}, "room0", "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			site := say(t, "shop")
			shop := func(c *Config) {
				c.Routes = []Route{{Name: "shop", Host: "shop.example", Origins: origins(t, site.url)}}
			}
			rooms := newHostRooms(tt.rooms...)
			for _, r := range rooms {
				r.settings.Front.Rules = []room.Rule{{Expression: `http.host ne "shop.example" and http.request.uri.path eq "/by-rule"`}}
			}
			f := serveTo(t, rooms, say(t, "everybody").url, append(tt.change, shop)...)
			for _, r := range rooms {
				configure(t, f.front, r.settings)
			}
			fields := append([]string{"Host"}, tt.fields...)
			got := f.get("/", fields...)
			if got.StatusCode != 200 || got.body != tt.site {
				t.Errorf("got %d by %s, want %s", got.StatusCode, got.body, tt.site)
			}
			if tt.room == "" {
				if len(got.Cookies()) != 0 {
					t.Errorf("cookies %v of a request without a room", got.Cookies())
				}
				return
			}
			if len(got.Cookies()) != 1 || got.Cookies()[0].Name != "ropeline_"+tt.room {
				t.Fatalf("cookies %v, want one of %s", got.Cookies(), tt.room)
			}
			if head := strings.ToLower(site.head()); !strings.Contains(head, "\r\nx-forwarded-host: shop.example") {
				t.Errorf("the site is told of another host: %q", head)
			}
			c := got.Cookies()[0]
			for _, r := range rooms {
				if _, err := f.keys.Open([]byte(c.Value), r.settings.ID, "shop.example"); (err == nil) != (r.settings.CookieSuffix == tt.room) {
					t.Errorf("the pass opens in %s for the visitor's host: %v", r.settings.CookieSuffix, err)
				}
			}
			if got := f.get("/by-rule", fields...); len(got.Cookies()) != 1 {
				t.Error("rules see another host")
			}
		})
	}
}

// say is an origin that says its name.
func say(t *testing.T, name string) *rawOrigin {
	return newRawOrigin(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(name), name))
}
