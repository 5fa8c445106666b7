package httpfront

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

func TestNoReloadWhereNobodyIsLetIn(t *testing.T) {
	r := newRoom(func(node.Pass, bool, time.Time) node.Verdict { return node.Verdict{} })
	r.settings.QueueingMethod = room.Reject
	f := serve(t, fakeRooms{room: r}, nil)
	for _, accept := range []string{"text/html", "application/json"} {
		got := f.get("/", "Accept", accept).is(t, 200, stateField+": waiting\r\n")
		lacks(t, accept, got.text(), "\r\nRefresh: ", "\r\nRetry-After: ", "\r\nSet-Cookie: ")
	}
	f.get("/", "Accept", "application/json").is(t, 200, `"refreshIntervalSeconds":0,`)
}

// TestWhatHoldsIsWhatWasDecidedFrom: an event may begin between asking for the
// settings and deciding.
func TestWhatHoldsIsWhatWasDecidedFrom(t *testing.T) {
	settings := newRoom(nil).settings
	settings.QueueingMethod = room.Random
	r := waitingBy(&room.View{Settings: &settings})
	serve(t, fakeRooms{room: r}, nil).get("/", "Accept", "application/json").is(t, 200, `"queueingMethod":"random"`)
}

// TestQueueAnswersAreNobodyElses: nothing may keep an answer for another visitor.
func TestQueueAnswersAreNobodyElses(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(never)}, http.NotFoundHandler())
	for _, accept := range []string{"text/html", "application/json"} {
		got := f.get("/x.css", "Accept", accept)
		for name, want := range map[string]string{
			"Cache-Control": "private, no-store", "Vary": "*",
			"Content-Language": "en-US", "Refresh": "20", "Retry-After": "20",
			"Etag": "", "Last-Modified": "", "Expires": "", "X-Content-Type-Options": "nosniff",
		} {
			equal(t, accept+": "+name, strings.Join(got.Header.Values(name), "|"), want)
		}
	}
}

// TestOnlyOurLanguageIsTold: a template is in whatever language its author writes.
func TestOnlyOurLanguageIsTold(t *testing.T) {
	const tmpl = "<h1>You are in line</h1>"
	for _, tt := range []struct {
		template     string
		noJSON       bool
		accept, want string
	}{
		{"", false, "text/html", "de-DE"},
		{"", false, "application/json", "de-DE"},
		{tmpl, false, "text/html", ""},
		{tmpl, false, "application/json", "de-DE"}, // our texts
		{tmpl, true, "application/json", ""},
	} {
		r := newRoom(never)
		r.settings.Front.CustomPage, r.settings.Front.NoJSON = tt.template, tt.noJSON
		got := configured(t, r).get("/", "Accept", tt.accept, "Accept-Language", "de")
		equal(t, fmt.Sprint(tt), strings.Join(got.Header.Values("Content-Language"), "|"), tt.want)
	}
}

// TestTheSiteIsNotAskedByThePage whether it is the visitor's turn: the node says so, with the pass, whatever lets the visitor in. All
// else goes to the site, as does the request of the browser that comes next.
func TestTheSiteIsNotAskedByThePage(t *testing.T) {
	asked := false
	site := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true })
	for what, c := range map[string]struct {
		room           Rooms
		method, accept string
		site, cookie   bool
	}{
		"a question":               {fakeRooms{room: newRoom(letIn)}, "GET", page.Question, false, true},
		"of a room that is gone":   {fakeRooms{"/room", newRoom(never)}, "GET", page.Question, false, false},
		"in a dry run":             {fakeRooms{room: dry(newRoom(never))}, "GET", page.Question, false, true},
		"a program's":              {fakeRooms{room: newRoom(letIn)}, "GET", "application/json", true, true},
		"a browser's":              {fakeRooms{room: newRoom(letIn)}, "GET", "text/html", true, true},
		"one that changes a thing": {fakeRooms{room: newRoom(letIn)}, "POST", page.Question, true, true},
	} {
		asked = false
		got := serve(t, c.room, site).do(c.method, "/", nil, "Accept", c.accept)
		if got.Header.Get("Set-Cookie") != "" != c.cookie || asked != c.site || c.site != (got.Header.Get(stateField) == "") {
			t.Errorf("%s: the site is asked: %v; %v", what, asked, got)
		}
		if !c.site {
			got.is(t, 200, stateField+": admitted\r\n", YourTurn, "Cache-Control: private, no-store\r\n")
		}
	}
}

// TestNobodyTakesAPlaceUnseen: a browser that fetches a page before its user wants it gets it where that costs no place, and else an
// answer that it drops. The room never hears of it.
func TestNobodyTakesAPlaceUnseen(t *testing.T) {
	open := newRoom(always)
	open.settings.QueueingMethod = room.Passthrough
	for what, c := range map[string]struct {
		room   *fakeRoom
		field  string
		value  string
		lease  time.Duration // of the pass; 0: there is none
		status int
	}{
		"prefetch":          {newRoom(letIn), "Sec-Purpose", "prefetch", 0, 429},
		"prerender":         {newRoom(letIn), "Sec-Purpose", "prefetch;prerender", 0, 429},
		"of older browsers": {newRoom(letIn), "Purpose", "prefetch", 0, 429},
		"of who was inside": {newRoom(letIn), "Sec-Purpose", "prefetch", -time.Second, 429},
		"of who is inside":  {newRoom(letIn), "Sec-Purpose", "prefetch", time.Minute, 200},
		"another purpose":   {newRoom(letIn), "Sec-Purpose", "else", 0, 200},
		"in a dry run":      {dry(newRoom(never)), "Sec-Purpose", "prefetch", 0, 200},
		"where all are in":  {open, "Sec-Purpose", "prefetch", 0, 200},
	} {
		f := serve(t, fakeRooms{room: c.room}, http.HandlerFunc(echo))
		before := seen{known: true, p: node.Pass{Visitor: node.VisitorID{9}}} // whom nobody is
		c.room.last = before
		header := []string{c.field, c.value}
		if c.lease != 0 {
			now := time.Now()
			header = append(header, "Cookie", f.seal(node.Pass{Room: c.room.settings.ID, Visitor: node.VisitorID{1}, AcceptedAt: now.Add(-time.Minute), LeaseEnd: now.Add(c.lease)}, "127.0.0.1"))
		}
		got := f.get("/", header...)
		if asked := c.room.saw() != before; got.StatusCode != c.status || asked != (c.status == 200) || !asked && got.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d, and the room was asked: %v; %v", what, got.StatusCode, asked, got.Header)
		}
	}
}

// dry has a room let everybody in and count who would wait.
func dry(r *fakeRoom) *fakeRoom {
	r.settings.DryRun = true
	return r
}

func newPage(t *testing.T, cfg page.Config) *page.Page {
	cfg.Logger = testLogger(t)
	return must(page.New(cfg))
}

// TestAnswersOfOursSaySo: a program, and the script of the built-in page, tell by one
// field whether the site has answered.
func TestAnswersOfOursSaySo(t *testing.T) {
	asItIs := func(*Config) {}
	starting := func(c *Config) { c.Ready = func() error { return errors.New("the test says so") } }
	broken := func(c *Config) { c.Origins = origins(nowhere) }
	admits := func(node.Pass, bool, time.Time) node.Verdict { return node.Verdict{Admit: true} }
	panics := func(node.Pass, bool, time.Time) node.Verdict { panic("the test says so") }
	for name, c := range map[string]struct {
		decide  func(node.Pass, bool, time.Time) node.Verdict
		request string // its line
		change  func(*Config)
		want    string
	}{
		"the site's":      {admits, "GET / HTTP/1.1", asItIs, "200 "},
		"waiting":         {never, "GET / HTTP/1.1", asItIs, "200 waiting"},
		"sent while so":   {never, "DELETE / HTTP/1.1", asItIs, "429 waiting"},
		"too many come":   {queues, "GET / HTTP/1.1", asItIs, "429 crowded"},
		"starting":        {admits, "GET / HTTP/1.1", starting, "503 failed"},
		"no site":         {admits, "GET / HTTP/1.1", broken, "502 failed"},
		"not in order":    {admits, "GET / HTTP/1.1\r\nHost: b", asItIs, "400 refused"},
		"not even parsed": {admits, "GET /", asItIs, "400 refused"},
		"our mistake":     {panics, "GET / HTTP/1.1", asItIs, "500 refused"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(c.decide)
			r.settings.Front.NewVisitors = room.NewVisitors{All: 1}
			f := serve(t, fakeRooms{room: r}, http.HandlerFunc(echo), c.change)
			configure(t, f.front, r.settings)
			f.front.frontOf(&r.settings).newVisitors.all.AllowN(time.Now(), 1)
			for _, accept := range []string{"text/html", "application/json"} {
				got := f.says("GET", c.request+"\r\nHost: a\r\nAccept: "+accept+"\r\nConnection: close\r\n\r\n")
				equal(t, accept, fmt.Sprint(got.StatusCode, " ", got.Header.Get(stateField)), c.want)
			}
		})
	}
	f := judges(t, fakeRooms{})
	for range 20 { // all who are turned away in one moment come back at different ones
		away := f.turnedAway(http1.Refusal{Code: http.StatusServiceUnavailable, Reason: "no place"})
		got := whole(t, readResponse(t, bufio.NewReader(bytes.NewReader(away)), "GET"))
		after := got.Header.Get("Refresh")
		got.is(t, 503, "\r\nRetry-After: "+after+"\r\n", "\r\nRopeline-State: refused\r\n")
		if seconds, err := strconv.Atoi(after); err != nil || seconds < 5 || seconds > 9 {
			t.Errorf("before a request: got %q", away)
		}
	}
}
