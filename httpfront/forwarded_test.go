package httpfront

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/forwarding"
	"github.com/ropeline/ropeline/node/room"
)

// keeper is an origin that keeps the fields that it is asked with.
type keeper struct{ got http.Header }

func (k *keeper) ServeHTTP(_ http.ResponseWriter, r *http.Request) { k.got = r.Header }

// TestOnlyTrustedProxiesTellTheSiteOfVisitors by the fields that are configured for it.
func TestOnlyTrustedProxiesTellTheSiteOfVisitors(t *testing.T) {
	names := func(c *Config) { c.Edge.ClientIPHeader, c.CountryHeader = "X-Visitor", "CF-IPCountry" }
	for name, tt := range map[string]struct {
		change []func(*Config)
		want   string
	}{
		"a trusted proxy": {[]func(*Config){names, trustLoopback}, "[6.6.6.6] [CH] [1]"},
		"anybody":         {[]func(*Config){names}, "[] [] [1]"},
	} {
		var site keeper
		f := serve(t, nil, &site, tt.change...)
		f.get("/", "X-Visitor", "6.6.6.6", "Cf-Ipcountry", "CH", "X-Other", "1")
		equal(t, name, fmt.Sprint(site.got["X-Visitor"], site.got["Cf-Ipcountry"], site.got["X-Other"]), tt.want)
		// Many sites cannot tell a dash from an underscore, or a dot.
		f.get("/", "x_visitor", "6.6.6.6", "CF.IPCOUNTRY", "CH")
		lacks(t, name, strings.ToLower(fmt.Sprint(site.got)), "x_visitor", "cf.ipcountry")
	}
}

// TestNoFieldOfVisitorsReachesTheSite by which it tells who asks, and for what, whoever passed
// them on; but for the one that a trusted proxy is configured to write.
func TestNoFieldOfVisitorsReachesTheSite(t *testing.T) {
	const told = "203.0.113.66"
	for name, tt := range map[string]struct {
		header  string
		trusted []netip.Prefix
		keeps   string
	}{
		"anybody":                                 {"X-Forwarded-For", nil, ""},
		"a trusted proxy":                         {"X-Forwarded-For", loopback, ""},
		"one that tells in a field of its own":    {"CF-Connecting-IP", loopback, "Cf-Connecting-Ip"},
		"anybody, where a proxy tells in a field": {"CF-Connecting-IP", nil, ""},
	} {
		var site keeper
		f := serve(t, nil, &site, func(c *Config) {
			c.Edge.ClientIPHeader, c.TrustedProxies = tt.header, tt.trusted
		})
		for _, field := range forwarding.Names() {
			if strings.HasSuffix(field, "-") {
				field += "host"
			}
			if tt.trusted != nil && (field == "x-forwarded-host" || field == strings.ToLower(tt.header) && tt.keeps == "") {
				continue // believed
			}
			for _, spelling := range []string{field, strings.ToUpper(field), strings.ReplaceAll(field, "-", "_"), strings.ReplaceAll(field, "-", ".")} {
				site.got = nil
				f.get("/", spelling, told)
				got, what := site.got, name+", "+spelling
				equal(t, what+": the site is asked", got != nil, true)
				for n, values := range got {
					if n != tt.keeps && n != "X-Real-Ip" && n != "X-Forwarded-For" && n != "Forwarded" {
						lacks(t, what+", "+n, strings.Join(values, " "), told)
					}
				}
				believed := tt.keeps != "" && strings.EqualFold(field, tt.keeps) && !strings.ContainsAny(spelling, "_.")
				equal(t, what+": believed", got.Get("X-Real-Ip") == told, believed)
				equal(t, what+": kept", tt.keeps != "" && got.Get(tt.keeps) == told, believed)
			}
		}
	}
}

// hostRooms has a room for each host, and one, named "", for every other one.
type hostRooms map[string]*fakeRoom

func (r hostRooms) Route(host, _ string) Room {
	for _, name := range []string{host, ""} {
		if found := r[name]; found != nil {
			return found
		}
	}
	return nil
}

func newHostRooms(hosts []string) hostRooms {
	rooms := hostRooms{}
	for i, host := range hosts {
		r := newRoom(letIn)
		r.settings.ID, r.settings.CookieSuffix = crdt.RoomID{byte(i + 1)}, fmt.Sprint("room", i)
		r.settings.Front.Rules = []room.Rule{{Expression: `http.host ne "shop.example" and http.request.uri.path eq "/by-rule"`}}
		rooms[host] = r
	}
	return rooms
}

// TestTheHostOfATrustedProxyDecides: behind proxies that rewrite Host, the room, the
// origins, the rules and the pass are those of the host that visitors ask for.
func TestTheHostOfATrustedProxyDecides(t *testing.T) {
	shop, both := []string{"shop.example"}, []string{"shop.example", "evil.example"}
	for name, tt := range map[string]struct {
		rooms    []string
		trusted  []netip.Prefix
		host     string
		fields   []string
		room     string // the cookie's suffix; "" for none
		servedBy string
	}{
		"rewritten":                {shop, loopback, "inner:8080", []string{"X-Forwarded-Host", "shop.example"}, "room0", "shop"},
		"with a port, in capitals": {shop, loopback, "inner", []string{"X-Forwarded-Host", "SHOP.example.:8443"}, "room0", "shop"},
		"in Forwarded":             {shop, loopback, "inner", []string{"Forwarded", `for=192.0.2.9;host="shop.example:443"`}, "room0", "shop"},
		"of a list, the visitor's": {both, loopback, "inner", []string{
			"X-Forwarded-For", "6.6.6.6, 192.0.2.9, 127.0.0.2", "X-Forwarded-Host", "evil.example, shop.example, lb.internal",
		}, "room0", "shop"},
		"another room than that of every host": {[]string{"", "shop.example"}, loopback, "inner", []string{"X-Forwarded-Host", "shop.example"}, "room1", "shop"},
		"nobody is trusted":                    {shop, nil, "inner", []string{"X-Forwarded-Host", "shop.example"}, "", "everybody"},
		"a host that is none":                  {shop, loopback, "inner", []string{"X-Forwarded-Host", "shop.example/x"}, "", "everybody"},
		"Host is not rewritten":                {shop, loopback, "shop.example", []string{"X-Forwarded-Host", "shop.example"}, "room0", "shop"},
		// What a visitor adds behind a proxy that passes it on leads past no room.
		"another host than that of a room": {shop, loopback, "shop.example", []string{"X-Forwarded-Host", "elsewhere.example"}, "room0", "shop"},
		"from one room to another":         {both, loopback, "shop.example", []string{"X-Forwarded-Host", "evil.example"}, "room0", "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			site := say(t, "shop")
			rooms := newHostRooms(tt.rooms)
			f := serveTo(t, rooms, say(t, "everybody").url, func(c *Config) {
				c.Routes = []Route{{Name: "shop", Host: "shop.example", Origins: origins(site.url)}}
				c.TrustedProxies = tt.trusted
				if tt.fields[0] == "Forwarded" {
					c.Edge.ClientIPHeader = "Forwarded"
				}
			})
			for _, r := range rooms {
				configure(t, f.front, r.settings)
			}
			fields := append([]string{"Host", tt.host}, tt.fields...)
			got := f.get("/", fields...).is(t, 200)
			equal(t, "who serves it", got.body, tt.servedBy)
			name, value, _ := strings.Cut(cookieOf(got), "=")
			equal(t, "the cookie", name, map[bool]string{true: "ropeline_" + tt.room}[tt.room != ""])
			if tt.room == "" {
				return
			}
			has(t, "the head for the site", strings.ToLower(site.head()), "\r\nx-forwarded-host: shop.example")
			for _, r := range rooms {
				_, err := f.keys.Open([]byte(value), r.settings.ID, "shop.example")
				equal(t, "the pass opens in "+r.settings.CookieSuffix, err == nil, r.settings.CookieSuffix == tt.room)
			}
			equal(t, "passes, where the rules see the visitor's host", len(f.get("/by-rule", fields...).Cookies()), 1)
		})
	}
}

// say is an origin that says its name.
func say(t *testing.T, name string) *rawOrigin {
	return newRawOrigin(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(name), name))
}
