package httpfront

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node/room"
)

// TestFailuresDoNotFillTheLog: so many of a kind are told in a minute, and the next one tells how many were not.
func TestFailuresDoNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedLog
		logger := slog.New(slog.NewTextHandler(&log, nil))
		var f failures
		down := failure{code: http.StatusBadGateway, title: "The site does not answer"}
		fail := func(in *room.Settings, what failure) {
			f.log(logger, in, what, errors.New("refused"), []byte("/tickets/7?token=secret"), "an-id")
		}
		tickets := &room.Settings{Name: "tickets", Host: "shop.example", Path: "/tickets"}
		for range 5000 {
			fail(tickets, down)
			fail(nil, down)
			fail(tickets, failure{code: http.StatusGatewayTimeout, title: "The site takes too long"})
			fail(tickets, failure{code: http.StatusServiceUnavailable, title: "The site is busy"}) // below the level
		}
		got := log.text()
		equal(t, "lines of three kinds", strings.Count(got, "\n"), 3*failuresTold)
		lacks(t, "lines of three kinds", got, "left_out")
		line, _, _ := strings.Cut(got, "\n")
		has(t, "a line", line, `msg="request failed" error=refused status=502 room=tickets path=/tickets/7 request=an-id`)
		time.Sleep(failuresEvery - time.Second)
		equal(t, "lines within the minute", log.text(), got)
		time.Sleep(2 * time.Second) // nothing fails any more
		later := strings.TrimPrefix(log.text(), got)
		equal(t, "lines a minute later", strings.Count(later, "\n"), 3)
		equal(t, "those that tell how many were left out", strings.Count(later, "left_out=4990"), 3)
		has(t, "one of them", later, `kind="The site does not answer" room=tickets left_out=4990`)
		fail(tickets, down)
		fail(tickets, down)
		last := strings.TrimPrefix(log.text(), got+later)
		equal(t, "lines after that", strings.Count(last, "\n"), 2)
		lacks(t, "lines after that", last, "left_out")
	})
}

// TestPathToTell: without the query, and not longer than a line can bear.
func TestPathToTell(t *testing.T) {
	for target, want := range map[string]string{
		"/": "/", "*": "*", "/a?b=c": "/a", "/" + strings.Repeat("a", 4000): "/" + strings.Repeat("a", pathShown-1) + "…",
	} {
		equal(t, "the path", pathToTell([]byte(target)), want)
	}
}

// TestKindsOfFailuresAreForgotten has rooms come, fail and go for years.
func TestKindsOfFailuresAreForgotten(t *testing.T) {
	var f failures
	now := time.Now()
	for i := range 10 * kindsMax {
		f.take(failureKind{title: "The site cannot be reached", room: strconv.Itoa(i)}, now)
		now = now.Add(time.Second)
	}
	if n := len(f.kinds); n > kindsMax {
		t.Errorf("%d kinds are known, want %d at most", n, kindsMax)
	}
}

// cookieOf returns the pass that an answer sets, as a Cookie field; "" if it sets none.
func cookieOf(r reply) string {
	for _, c := range r.Cookies() {
		return c.Name + "=" + c.Value
	}
	return ""
}

// TestNobodyNewIsLetInWhileTheSiteIsDown: who is on the site meets its errors, also in a room that
// does not hold, and whoever else comes waits, on a page that says why, in every language. With an answer the site is back, and lets in one at first.
func TestNobodyNewIsLetInWhileTheSiteIsDown(t *testing.T) {
	var ill atomic.Bool
	shop := newRoom(enter)
	f := serve(t, fakeRooms{room: shop}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ill.Load() {
			panic(http.ErrAbortHandler)
		}
		echo(w, r)
	}), func(c *Config) {
		c.Passive = upstream.Passive{Failures: 3, Ejection: time.Hour, EjectionMax: time.Hour}
		c.Origins.Check = &upstream.Check{Path: "/", Interval: time.Hour} // visitors alone tell whether it is back
	})
	in := cookieOf(f.get("/"))
	ill.Store(true)
	for range 4 { // the first meets a connection that was used before, which tells nothing of the origin
		f.do("POST", "/", strings.NewReader("a"), "Cookie", in).is(t, 502)
	}
	before := shop.queued.Load()
	waits := cookieOf(f.get("/", "Accept", "text/html").is(t, 200, "\r\nRopeline-State: waiting\r\n", "\r\nSet-Cookie: "))
	equal(t, "places that who is held keeps free, and other nodes could give", shop.queued.Load()-before, 0)
	for _, l := range lang.All() {
		got := f.get("/", "Accept", "text/html", "Accept-Language", l.Tag(), "Cookie", waits)
		has(t, "the page in "+l.Tag(), got.body, l.Text(lang.TitleUnreachable), l.Text(lang.MessageHeldBack))
	}
	f.get("/", "Cookie", in).is(t, 502)
	x := f.front.Explain(&Question{Method: "GET", Target: "/", Host: "shop.example", Peer: netip.MustParseAddr("127.0.0.1")})
	equal(t, "explained: held, passes", fmt.Sprint(x.Held != "", x.Passes), "true false")
	shop.settings.AdmitsWhileDown = true
	f.get("/").is(t, 502)
	shop.settings.AdmitsWhileDown = false
	ill.Store(false)
	f.get("/", "Cookie", in).is(t, 200)
	shop.settings.RefreshInterval = 0 // all who wait have asked
	first := f.get("/", "Cookie", waits).is(t, 200)
	equal(t, "the state of the first who waited", first.Header.Get("Ropeline-State"), "")
	second := f.get("/", "Cookie", waits).is(t, 200, "\r\nRopeline-State: waiting\r\n")
	lacks(t, "the page of the second", second.body, lang.Of(lang.English).Text(lang.TitleUnreachable))
}
