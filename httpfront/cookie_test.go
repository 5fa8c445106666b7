package httpfront

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// trustLoopback has a front believe what tests say in forwarding headers.
func trustLoopback(c *Config) { c.TrustedProxies = loopback }

// pathRooms are rooms of one host by their paths.
type pathRooms map[string]*fakeRoom

func (r pathRooms) Route(_, path string) Room { return r[path] }

// TestRoomsOfOneHostKeepTheirOwnCookies without a suffix.
func TestRoomsOfOneHostKeepTheirOwnCookies(t *testing.T) {
	rooms, jar := pathRooms{}, ""
	for i, path := range []string{"/", "/a", "/b"} {
		rooms[path] = newRoom(letIn)
		rooms[path].settings.ID, rooms[path].settings.Path = crdt.RoomID{0xab, byte(i)}, path
	}
	f := serve(t, rooms, http.HandlerFunc(echo))
	for path, name := range map[string]string{"/": "ropeline", "/a": "ropeline_ab010000", "/b": "ropeline_ab020000"} {
		cookie := cookieOf(f.get(path, "Cookie", jar).is(t, 200))
		equal(t, "the cookie of "+path, strings.HasPrefix(cookie, name+"="), true)
		jar += "; " + cookie
	}
	for path, r := range rooms {
		f.get(path, "Cookie", strings.TrimPrefix(jar, "; ")).is(t, 200)
		equal(t, "known at "+path, r.saw().known, true)
	}
}

// TestCookieAttributes: the attributes follow the visitor's connection where nothing
// else is said, are such as browsers keep, and are the same when the cookie goes.
func TestCookieAttributes(t *testing.T) {
	const (
		plain       = "; HttpOnly; SameSite=Lax"
		plainStrict = "; HttpOnly; SameSite=Strict"
		secure      = "; Secure; HttpOnly; SameSite=None"
		secureLax   = "; Secure" + plain
	)
	for _, c := range []struct {
		name        string
		set         room.CookieAttributes
		http, https string
	}{
		{"nothing said", room.CookieAttributes{}, plain, secure},
		{"auto", room.CookieAttributes{SameSite: room.SameSiteAuto, Secure: room.SecureAuto}, plain, secure},
		{"lax", room.CookieAttributes{SameSite: room.SameSiteLax}, plain, secureLax},
		{"none", room.CookieAttributes{SameSite: room.SameSiteNone}, plain, secure},
		{"strict", room.CookieAttributes{SameSite: room.SameSiteStrict}, plainStrict, "; Secure" + plainStrict},
		{"always", room.CookieAttributes{Secure: room.SecureAlways}, secure, secure},
		{"always and lax", room.CookieAttributes{Secure: room.SecureAlways, SameSite: room.SameSiteLax}, secureLax, secureLax},
		{"never", room.CookieAttributes{Secure: room.SecureNever}, plain, plain},
		{"never and strict", room.CookieAttributes{Secure: room.SecureNever, SameSite: room.SameSiteStrict}, plainStrict, plainStrict},
		{"partitioned", room.CookieAttributes{Partitioned: true}, plain, secure + "; Partitioned"},
		{"partitioned always", room.CookieAttributes{Partitioned: true, Secure: room.SecureAlways}, secure + "; Partitioned", secure + "; Partitioned"},
	} {
		equal(t, c.name, CheckRoom(&room.Settings{Front: room.Front{Cookie: c.set}}, nil), nil)
		var clear atomic.Bool
		r := newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
			v := never(p, known, now)
			v.SetPass, v.ClearPass = !clear.Load(), clear.Load()
			return v
		})
		r.settings.Front.Cookie = c.set
		f := serve(t, fakeRooms{room: r}, http.HandlerFunc(echo), trustLoopback)
		for scheme, want := range map[string]string{"http": c.http, "https": c.https} {
			what := c.name + " over " + scheme
			given := func(cookie string) string {
				set := f.get("/", "X-Forwarded-Proto", scheme, "Cookie", cookie).Header.Values("Set-Cookie")
				return strings.Join(set, "\n")
			}
			clear.Store(false)
			cookie, attributes, _ := strings.Cut(given(""), "; Path=/; Max-Age=87020")
			equal(t, what, attributes, want)
			// A browser takes __Host- only with Secure; without it, nobody is kept from
			// planting one.
			name, _, _ := strings.Cut(cookie, "=")
			equal(t, what, name, map[bool]string{false: "ropeline", true: "__Host-ropeline"}[strings.Contains(want, "Secure")])
			clear.Store(true)
			equal(t, what+": the cookie that takes it away", given(cookie), name+"=; Path=/; Max-Age=0"+want)
			equal(t, what+": the cookie is known again", r.saw().known, true)
		}
	}
}

// TestTheNewestOfSeveralPassesCounts: a browser that has kept a cookie from before
// attributes changed sends both, in an order of its own.
func TestTheNewestOfSeveralPassesCounts(t *testing.T) {
	r := newRoom(never)
	f := serve(t, fakeRooms{room: r}, http.HandlerFunc(echo))
	at := func(s int) time.Time { return time.Unix(1_800_000_000+int64(s), 0).UTC() }
	waits := node.Pass{Visitor: node.VisitorID{1}, Room: crdt.RoomID{1}, Arrival: at(0), LastPoll: at(100)}
	later := waits
	later.LastPoll = at(140)
	inside := node.Pass{Visitor: node.VisitorID{2}, Room: crdt.RoomID{1}, Arrival: at(0), AcceptedAt: at(90), LeaseEnd: at(390)}
	over := inside
	over.AcceptedAt, over.LeaseEnd = at(-300), at(0)
	for name, c := range map[string]struct{ old, last node.Pass }{
		"two that wait":              {waits, later},
		"let in since":               {later, inside},
		"waits again":                {over, waits},
		"a session that was renewed": {over, inside},
	} {
		old, last := f.seal(c.old, "127.0.0.1"), f.seal(c.last, "127.0.0.1")
		for _, cookie := range []string{old + "; " + last, last + "; " + old, "ropeline=x; " + old + "; " + last} {
			f.get("/", "Cookie", cookie)
			equal(t, name, r.saw(), seen{c.last, true})
		}
	}
}

// bound is a front whose room is bound as a test says.
type bound struct {
	*front
	room   *fakeRoom
	silent atomic.Bool // the room changes no pass
}

// admittedRequest is one with a pass, bound as by says.
func admittedRequest(tb testing.TB, by room.Binding) (*request, *pass.Keyring, *room.Settings) {
	tb.Helper()
	keys := newKeys()
	s := newRoom(always).settings
	s.Front.Binding = by
	r := newRequest()
	equal(tb, "a refusal", r.ask(asks("GET", "/", "User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0)")).Code, 0)
	r.via.Client = netip.MustParseAddr("2001:db8::7")
	r.Fields, r.Cookies = append(r.Fields, http1.Field{Name: []byte("Cookie"), Value: r.boundPass(keys, &s)}), true
	return r, keys, &s
}

// boundPass is the cookie of visitor 3, who is inside, for whoever asks.
func (r *request) boundPass(keys *pass.Keyring, s *room.Settings) []byte {
	now := time.Now()
	in := node.Pass{Visitor: node.VisitorID{3}, AcceptedAt: now, LeaseEnd: now.Add(time.Minute)}
	cookie, _, _ := bytes.Cut(r.appendSetCookie(nil, keys, &in, s, now), []byte(";"))
	return cookie
}

func serveBound(t *testing.T, b room.Binding) *bound {
	t.Helper()
	f := &bound{}
	f.room = newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		v := never(p, known, now)
		v.SetPass = !f.silent.Load()
		if known {
			v.Pass = p
		}
		return v
	})
	f.room.settings.Front.Binding = b
	f.front = serve(t, fakeRooms{room: f.room}, http.HandlerFunc(echo), trustLoopback)
	return f
}

// ask returns the pass that a visitor is given, and whether theirs was known.
func (f *bound) ask(address, agent, cookie string) (given string, known bool) {
	f.tb.Helper()
	given = cookieOf(f.get("/", "X-Forwarded-For", address, "User-Agent", agent, "Cookie", cookie))
	return given, f.room.saw().known
}

func TestAPassIsBoundToNetworkAndBrowser(t *testing.T) {
	address, agent := room.Binding{Address: true}, room.Binding{UserAgent: true}
	both := room.Binding{Address: true, UserAgent: true}
	narrow := room.Binding{Address: true, IPv4Prefix: 32, IPv6Prefix: 64}
	for _, c := range []struct {
		name          string
		by            room.Binding
		given, shown  string // by addresses
		agent, agent2 string
		known         bool
	}{
		{"nothing", room.Binding{}, "192.0.2.7", "2001:db8::1", "a", "b", true},
		{"the same network", address, "192.0.2.7", "192.0.2.250", "a", "b", true},
		{"another network", address, "192.0.2.7", "192.0.3.7", "a", "a", false},
		{"the same of IPv6", address, "2001:db8:1:2::7", "2001:db8:1:ffff::8", "a", "a", true},
		{"another of IPv6", address, "2001:db8:1::7", "2001:db8:2::7", "a", "a", false},
		{"IPv4 and IPv6", address, "192.0.2.7", "2001:db8:1::7", "a", "a", false},
		{"IPv4 written as IPv6", address, "192.0.2.7", "::ffff:192.0.2.8", "a", "a", true},
		{"one address", narrow, "192.0.2.7", "192.0.2.8", "a", "a", false},
		{"a network of 64 bits", narrow, "2001:db8:1:2::7", "2001:db8:1:3::7", "a", "a", false},
		{"the same browser", agent, "192.0.2.7", "203.0.113.9", "a", "a", true},
		{"another browser", agent, "192.0.2.7", "192.0.2.7", "a", "b", false},
		{"both", both, "192.0.2.7", "192.0.2.8", "a", "a", true},
		{"both, another browser", both, "192.0.2.7", "192.0.2.7", "a", "b", false},
	} {
		f := serveBound(t, c.by)
		cookie, known := f.ask(c.given, c.agent, "")
		if known || cookie == "" {
			t.Fatalf("%s: a new visitor is known: %v, and given %q", c.name, known, cookie)
		}
		_, known = f.ask(c.shown, c.agent2, cookie)
		equal(t, c.name+": known", known, c.known)
		_, known = f.ask(c.given, c.agent, cookie)
		equal(t, c.name+": whose pass it is known", known, true)
	}
}

// TestSwitchingTheBindingLosesNobody: a pass from before is taken once, and replaced.
func TestSwitchingTheBindingLosesNobody(t *testing.T) {
	f := serveBound(t, room.Binding{})
	cookie, _ := f.ask("192.0.2.7", "a", "")
	f.silent.Store(true)
	for _, step := range []struct {
		name      string
		by        room.Binding
		elsewhere string // an address or a browser for which the pass counts from then on, or not
		known     bool
	}{
		{"on", room.Binding{Address: true}, "203.0.113.9", false},
		{"more", room.Binding{Address: true, UserAgent: true}, "203.0.113.9", false},
		{"less", room.Binding{UserAgent: true}, "203.0.113.9", true},
		{"off", room.Binding{}, "203.0.113.9", true},
	} {
		f.room.settings.Front.Binding = step.by
		given, known := f.ask("192.0.2.7", "a", cookie)
		if !known || given == "" {
			t.Fatalf("%s: known %v, given %q", step.name, known, given)
		}
		cookie = given
		given, known = f.ask("192.0.2.7", "a", cookie)
		equal(t, step.name+": known, and given another pass", fmt.Sprint(known, given), "true")
		_, known = f.ask(step.elsewhere, "a", cookie)
		equal(t, step.name+": known from elsewhere", known, step.known)
	}
}

// TestASiteMayEndSessionsOfBoundPasses: it asks from an address of its own.
func TestASiteMayEndSessionsOfBoundPasses(t *testing.T) {
	f := serveBound(t, room.Binding{Address: true, UserAgent: true})
	f.room.settings.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	r := newRequest()
	defer r.release()
	equal(t, "a refusal", r.ask(asks("GET", "/", "User-Agent", "a")).Code, 0)
	cookie := string(r.boundPass(f.keys, &f.room.settings))
	_, err := f.front.front.Revoke(asks("GET", "/", "Cookie", cookie, "User-Agent", "the shop"))
	noError(t, err)
	equal(t, "whose session is ended", f.room.whoEnded(), "[3]")
}
