package httpfront

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// trustLoopback has a front believe what tests say in forwarding headers.
func trustLoopback(c *Config) { c.TrustedProxies = loopback }

// TestCookieAttributes: the attributes follow the visitor's connection where nothing
// else is said, are such as browsers keep, and are the same when the cookie goes.
func TestCookieAttributes(t *testing.T) {
	const (
		plain  = "; HttpOnly; SameSite=Lax"
		secure = "; Secure; HttpOnly; SameSite=None"
	)
	for _, c := range []struct {
		name        string
		set         room.CookieAttributes
		http, https string
	}{
		{"nothing said", room.CookieAttributes{}, plain, secure},
		{"auto", room.CookieAttributes{SameSite: room.SameSiteAuto, Secure: room.SecureAuto}, plain, secure},
		{"lax", room.CookieAttributes{SameSite: room.SameSiteLax}, plain, "; Secure; HttpOnly; SameSite=Lax"},
		{"none", room.CookieAttributes{SameSite: room.SameSiteNone}, plain, secure},
		{"strict", room.CookieAttributes{SameSite: room.SameSiteStrict}, "; HttpOnly; SameSite=Strict", "; Secure; HttpOnly; SameSite=Strict"},
		{"always", room.CookieAttributes{Secure: room.SecureAlways}, secure, secure},
		{"always and lax", room.CookieAttributes{Secure: room.SecureAlways, SameSite: room.SameSiteLax}, "; Secure; HttpOnly; SameSite=Lax", "; Secure; HttpOnly; SameSite=Lax"},
		{"never", room.CookieAttributes{Secure: room.SecureNever}, plain, plain},
		{"never and strict", room.CookieAttributes{Secure: room.SecureNever, SameSite: room.SameSiteStrict}, "; HttpOnly; SameSite=Strict", "; HttpOnly; SameSite=Strict"},
		{"partitioned", room.CookieAttributes{Partitioned: true}, plain, secure + "; Partitioned"},
		{"partitioned always", room.CookieAttributes{Partitioned: true, Secure: room.SecureAlways}, secure + "; Partitioned", secure + "; Partitioned"},
	} {
		if err := CheckRoom(&room.Settings{Front: room.Front{Cookie: c.set}}, nil); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var known, clear atomic.Bool
		r := newRoom(func(p node.Pass, k bool, now time.Time) node.Verdict {
			known.Store(k)
			v := never(p, k, now)
			v.SetPass, v.ClearPass = !clear.Load(), clear.Load()
			return v
		})
		r.settings.Front.Cookie = c.set
		f := serve(t, fakeRooms{room: r}, http.HandlerFunc(echo), trustLoopback)
		for scheme, want := range map[string]string{"http": c.http, "https": c.https} {
			clear.Store(false)
			set := f.get("/", "X-Forwarded-Proto", scheme).Header.Values("Set-Cookie")
			if len(set) != 1 {
				t.Fatalf("%s over %s: %d cookies", c.name, scheme, len(set))
			}
			cookie, attributes, _ := strings.Cut(set[0], "; Path=/; Max-Age=87020")
			if attributes != want {
				t.Errorf("%s over %s: got %q, want %q", c.name, scheme, attributes, want)
			}
			// A browser takes __Host- only with Secure; without it, nobody is kept from
			// planting one.
			if strings.HasPrefix(cookie, "__Host-ropeline=") != strings.Contains(want, "Secure") {
				t.Errorf("%s over %s: the name in %q does not fit %q", c.name, scheme, cookie, want)
			}
			clear.Store(true)
			set = f.get("/", "X-Forwarded-Proto", scheme, "Cookie", cookie).Header.Values("Set-Cookie")
			if !known.Load() {
				t.Errorf("%s over %s: the cookie is not known again", c.name, scheme)
			}
			name, _, _ := strings.Cut(cookie, "=")
			if len(set) != 1 || set[0] != name+"=; Path=/; Max-Age=0"+want {
				t.Errorf("%s over %s: taken away by %q", c.name, scheme, set)
			}
		}
	}
}

// TestTheNewestOfSeveralPassesCounts: a browser that has kept a cookie from before
// attributes changed sends both, in an order of its own.
func TestTheNewestOfSeveralPassesCounts(t *testing.T) {
	var seen atomic.Pointer[node.Pass]
	f := serve(t, fakeRooms{room: newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		seen.Store(&p)
		return never(p, known, now)
	})}, http.HandlerFunc(echo))
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
		old := "ropeline=" + string(f.keys.AppendSeal(nil, c.old, "127.0.0.1"))
		last := "ropeline=" + string(f.keys.AppendSeal(nil, c.last, "127.0.0.1"))
		for _, cookie := range []string{old + "; " + last, last + "; " + old, "ropeline=x; " + old + "; " + last} {
			f.get("/", "Cookie", cookie)
			if got := *seen.Load(); got != c.last {
				t.Errorf("%s: got %+v, want %+v", name, got, c.last)
			}
		}
	}
}
