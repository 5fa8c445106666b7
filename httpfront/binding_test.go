package httpfront

import (
	"bytes"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// bound is a front whose room is bound as a test says.
type bound struct {
	*front
	room   *fakeRoom
	known  atomic.Bool
	silent atomic.Bool // the room changes no pass
}

// admittedRequest is one with a pass, bound as by says.
func admittedRequest(tb testing.TB, by room.Binding) (*request, *pass.Keyring, *room.Settings) {
	tb.Helper()
	keys := newKeys(tb)
	s := newRoom(always).settings
	s.Front.Binding = by
	r := newRequest()
	if no := r.ask(asks("GET", "/", "User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0)")); no.Code != 0 {
		tb.Fatal(no)
	}
	r.via.Client = netip.MustParseAddr("2001:db8::7")
	now := time.Now()
	in := node.Pass{Visitor: node.VisitorID{3}, AcceptedAt: now, LeaseEnd: now.Add(time.Minute)}
	cookie, _, _ := bytes.Cut(r.appendSetCookie(nil, keys, in, &s, now), []byte(";"))
	r.Fields, r.Cookies = append(r.Fields, http1.Field{Name: []byte("Cookie"), Value: cookie}), true
	return r, keys, &s
}

func serveBound(t *testing.T, b room.Binding) *bound {
	t.Helper()
	f := &bound{}
	f.room = newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		f.known.Store(known)
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
	got := f.get("/", "X-Forwarded-For", address, "User-Agent", agent, "Cookie", cookie)
	for _, k := range got.Cookies() {
		given = k.Name + "=" + k.Value
	}
	return given, f.known.Load()
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
		if _, known := f.ask(c.shown, c.agent2, cookie); known != c.known {
			t.Errorf("%s: known %v, want %v", c.name, known, c.known)
		}
		if _, known := f.ask(c.given, c.agent, cookie); !known {
			t.Errorf("%s: whose pass it is is not known any more", c.name)
		}
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
		if given, known := f.ask("192.0.2.7", "a", cookie); !known || given != "" {
			t.Errorf("%s: known %v, and given another pass %q", step.name, known, given)
		}
		if _, known := f.ask(step.elsewhere, "a", cookie); known != step.known {
			t.Errorf("%s: from elsewhere known %v, want %v", step.name, known, step.known)
		}
	}
}

// TestASiteMayEndSessionsOfBoundPasses: it asks from an address of its own.
func TestASiteMayEndSessionsOfBoundPasses(t *testing.T) {
	f := serveBound(t, room.Binding{Address: true, UserAgent: true})
	f.room.settings.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	r := newRequest()
	defer r.release()
	if no := r.ask(asks("GET", "/", "User-Agent", "a")); no.Code != 0 {
		t.Fatal(no)
	}
	now := time.Now()
	in := node.Pass{Visitor: node.VisitorID{3}, AcceptedAt: now, LeaseEnd: now.Add(time.Minute)}
	cookie, _, _ := strings.Cut(string(r.appendSetCookie(nil, f.keys, in, &f.room.settings, now)), ";")
	if _, err := f.front.front.Revoke(asks("GET", "/", "Cookie", cookie, "User-Agent", "the shop")); err != nil {
		t.Error(err)
	}
	equal(t, "whose session is ended", f.room.whoEnded(), "[3]")
}
