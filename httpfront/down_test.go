package httpfront

import (
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
)

// cookieOf returns the pass that an answer sets, as a Cookie field; "" if it sets none.
func cookieOf(r reply) string {
	for _, c := range r.Cookies() {
		return c.Name + "=" + c.Value
	}
	return ""
}

// letInOnce admits whoever is new or waits, with a session.
func letInOnce(p node.Pass, known bool, now time.Time) node.Verdict {
	v := letIn(p, known, now)
	if v.Pass.AcceptedAt.IsZero() {
		v.Pass.AcceptedAt, v.Pass.LeaseEnd = now, now.Add(5*time.Minute)
	}
	return v
}

// TestNobodyNewIsLetInWhileTheSiteIsDown: who is on the site meets its errors, and whoever else comes waits, on a page that
// says why, in every language. With an answer the site is back, and lets in one at first.
func TestNobodyNewIsLetInWhileTheSiteIsDown(t *testing.T) {
	var ill atomic.Bool
	shop := newRoom(letInOnce)
	f := serve(t, fakeRooms{room: shop}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ill.Load() {
			panic(http.ErrAbortHandler)
		}
		echo(w, r)
	}), func(c *Config) {
		c.Passive = upstream.Passive{Failures: 3, Ejection: time.Hour, EjectionMax: time.Hour}
	})
	in := cookieOf(f.get("/"))
	ill.Store(true)
	for range 4 { // the first meets a connection that was used before, which tells nothing of the origin
		if got := f.do("POST", "/", strings.NewReader("a"), "Cookie", in); got.StatusCode != 502 {
			t.Fatalf("on the site: %d, want its error", got.StatusCode)
		}
	}
	before := shop.queued.Load()
	held := f.get("/", "Accept", "text/html")
	if held.StatusCode != 200 || held.Header.Get("Ropeline-State") != "waiting" || cookieOf(held) == "" {
		t.Fatalf("somebody new is not held: %d %v", held.StatusCode, held.Header)
	}
	if shop.queued.Load() != before {
		t.Error("who is held keeps a place free that other nodes could give")
	}
	for _, l := range lang.All() {
		got := f.get("/", "Accept", "text/html", "Accept-Language", l.Tag(), "Cookie", cookieOf(held))
		if !strings.Contains(got.body, l.Text(lang.TitleUnreachable)) || !strings.Contains(got.body, l.Text(lang.MessageHeldBack)) {
			t.Errorf("%s: the page does not say that the site does not answer:\n%s", l.Tag(), got.body)
		}
	}
	if got := f.get("/", "Cookie", in); got.StatusCode != 502 {
		t.Errorf("on the site: %d, want its error", got.StatusCode)
	}
	if x := f.front.Explain(&Question{Method: "GET", Target: "/", Host: "shop.example", Peer: netip.MustParseAddr("127.0.0.1")}); x.Held == "" || x.Passes {
		t.Errorf("explained: %+v", x)
	}
	shop.settings.AdmitsWhileDown = true
	if got := f.get("/"); got.StatusCode != 502 {
		t.Errorf("a room that does not hold: %d, want the site's error", got.StatusCode)
	}
	shop.settings.AdmitsWhileDown = false
	ill.Store(false)
	if got := f.get("/", "Cookie", in); got.StatusCode != 200 {
		t.Fatalf("on the site, which is back: %d", got.StatusCode)
	}
	shop.settings.RefreshInterval = 0 // all who wait have asked
	if got := f.get("/", "Cookie", cookieOf(held)); got.StatusCode != 200 || got.Header.Get("Ropeline-State") != "" {
		t.Errorf("the first who waited is not let in: %d %v", got.StatusCode, got.Header)
	}
	if got := f.get("/", "Cookie", cookieOf(held)); got.Header.Get("Ropeline-State") != "waiting" || strings.Contains(got.body, lang.Of(lang.English).Text(lang.TitleUnreachable)) {
		t.Errorf("the second is let in at once, or told that the site is down: %d %v", got.StatusCode, got.Header)
	}
}
