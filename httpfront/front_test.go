package httpfront

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

func TestNewNamesEverythingThatIsWrong(t *testing.T) {
	noCheck := Origins{Check: &upstream.Check{Path: "/"}}
	for name, c := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"almost all": {func(c *Config) {
			*c = Config{Limits: Limits{Conns: -1}, Timeouts: Timeouts{Idle: -1}}
			c.Upstreams.Origins.Servers = make([]upstream.Origin, 1)
		}, []string{"no listener", "no rooms", "no keys", "conns", "idle"}},
		"a route": {func(c *Config) {
			c.Routes = []Route{{Name: "shop", Origins: noCheck}}
		}, []string{"origins: 0 are given", "route shop: a check without origins"}},
		"hosts":   {func(c *Config) { c.Hosts = []string{"Shop.example", "a:80"} }, []string{`"Shop.example"`, `"a:80"`}},
		"methods": {func(c *Config) { c.Methods = []string{"get", "TRACE"} }, []string{`method "get": want up to 32 upper-case letters`, `method "TRACE"`}},
		"a proof": {func(c *Config) { c.ProofHeader = "Two Words" }, []string{`proof header "Two Words"`}},
	} {
		cfg := Config{Connections: Connections{Listener: loopbackListener(t)}, Rooms: fakeRooms{}, Keys: newKeys()}
		c.change(&cfg)
		_, err := New(cfg)
		has(t, name, fmt.Sprint(err), c.want...)
	}
}

// TestWhoWaitsIsTold in both forms, in a head that is shorter than one KiB: nothing in it is
// longer in another language. Package page holds that the forms are whole.
func TestWhoWaitsIsTold(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(never)}, http.HandlerFunc(echo))
	for accept, tt := range map[string]struct {
		typ  string
		want []string
	}{
		"text/html,application/xhtml+xml,*/*;q=0.8": {"text/html; charset=utf-8", []string{
			"1,235", "1,234", "1 hour and 1 minute", `lang="en-US" dir="ltr"`, `role="status"`, `<meta http-equiv="refresh" content="20">`, "Last updated",
		}},
		"application/json": {"application/json", []string{
			`{"cfWaitingRoom":{"inWaitingRoom":true,`, `"waitTimeKnown":true,`, `"waitTime":61,`, `"waitTimeFormatted":"1 hour and 1 minute",`,
			`"refreshIntervalSeconds":20,`, `"queueingMethod":"fifo",`, `"position":1235,`, `"peopleAhead":1234,`, `"room":"shop"`,
		}},
	} {
		got := f.get("/", "Accept", accept).is(t, 200, tt.want...)
		equal(t, "the form", fmt.Sprint(got.Header["Ropeline-State"], got.Header["Content-Type"]), "[waiting] ["+tt.typ+"]")
		_, err := http.ParseTime(got.Header.Get("Date"))
		noError(t, err)
		if head := len("HTTP/1.1 200 OK") + len(got.text()) - len(got.body); head >= 1<<10 || got.Header.Get("Set-Cookie") == "" {
			t.Errorf("the head of the answer has %d bytes, want less than 1 KiB and a cookie: %v", head, got.Header)
		}
		if accept != "application/json" {
			continue
		}
		var told map[string]map[string]any
		noError(t, json.Unmarshal([]byte(got.body), &told))
		for _, key := range []string{"arrival", "lastUpdated"} {
			at, err := time.Parse("2006-01-02T15:04:05.000Z07:00", fmt.Sprint(told["cfWaitingRoom"][key]))
			if err != nil || time.Since(at).Abs() > time.Minute {
				t.Errorf("%s: got %v, %v", key, at, err)
			}
		}
	}
}

func TestPrefersJSON(t *testing.T) {
	for accept, want := range map[string]bool{
		"":                                      false,
		"*/*":                                   false,
		"application/json":                      true,
		"application/json, text/plain, */*":     true,
		"application/json;q=0.5, text/html":     false,
		"application/json, text/html":           false,
		"text/html;q=0.5, application/json":     true,
		"application/json;q=0":                  false,
		"application/json;q=0.1, */*":           false,
		"text/html,application/xhtml+xml,*/*;q": false,
		"APPLICATION/JSON ; charset=utf-8":      true,
		"application/jsonx":                     false,
	} {
		equal(t, accept, page.PrefersJSON([]byte(accept)), want)
	}
}

func TestStatusWhileWaiting(t *testing.T) {
	r := newRoom(never)
	r.settings.QueueingStatusCode = 202
	var reached atomic.Int32
	f := serve(t, fakeRooms{path: "/shop", room: r}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	for method, want := range map[string]int{
		"GET": 202, "HEAD": 202, "POST": 429, "PUT": 429, "DELETE": 429, "PATCH": 429, "PROPFIND": 429, "LOCK": 429, "BREW": 429,
	} {
		body := "order=1"
		if want == 202 {
			body = ""
		}
		got := f.do(method, "/shop", strings.NewReader(body)).is(t, want, "\r\nRopeline-State: waiting\r\n", "\r\nRetry-After: ")
		equal(t, method+": a body", got.body != "", method != "HEAD")
		equal(t, method+": a form that was not delivered", strings.Contains(got.body, "has not been delivered"), want == 429)
	}
	equal(t, "requests that reached the origin", reached.Load(), 0)
	f.do("OPTIONS", "/shop", nil, asksFirst...).is(t, 200)
	equal(t, "with a preflight", reached.Load(), 1)
}

func TestNothingOfTheRequestIsInTheAnswer(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(never)}, http.HandlerFunc(echo))
	const mark = "zqxjk"
	for _, accept := range []string{"text/html", "application/json"} {
		got := f.get("/"+mark+"?"+mark+"="+mark, "Accept", accept, mark, mark, "Cookie", mark+"="+mark,
			"User-Agent", mark, "Referer", "http://"+mark+"/", "Host", mark+".example", "X-Forwarded-Host", mark)
		lacks(t, "the answer", got.text(), mark)
	}
}

func TestOnePassCookieAndOnlyWhenItChanges(t *testing.T) {
	var set, admit atomic.Bool
	r := newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		v := never(p, known, now)
		v.SetPass, v.Admit = set.Load(), admit.Load()
		return v
	})
	r.settings.CookieSuffix = "x"
	f := serve(t, fakeRooms{room: r}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "theirs", Value: "1"})
		http.SetCookie(w, &http.Cookie{Name: "theirs2", Value: "2", Path: "/a", HttpOnly: true})
		w.Header().Set("Cache-Control", "public, max-age=600")
		w.Header().Add("Cache-Control", "s-maxage=600")
		w.Header().Set("Expires", "Thu, 01 Jan 2099 00:00:00 GMT")
		w.Header().Set("X-Accel-Expires", "600")
	}))
	const theirs, waits = "theirs=1 theirs2=2; Path=/a; HttpOnly ", "private, no-store"
	for _, c := range []struct {
		set, admit    bool
		cookies, kept string // by whoever gets the answer
	}{
		{false, false, "", waits},
		{true, false, "ropeline_x=; Path=/; Max-Age=87020; HttpOnly; SameSite=Lax ", waits},
		{false, true, theirs, "public, max-age=600 s-maxage=600 Thu, 01 Jan 2099 00:00:00 GMT 600"},
		{true, true, theirs + "ropeline_x=; Path=/; Max-Age=87020; HttpOnly; SameSite=Lax ", "private, max-age=600 Thu, 01 Jan 2099 00:00:00 GMT"},
	} {
		set.Store(c.set)
		admit.Store(c.admit)
		got, cookies := f.get("/"), ""
		for _, k := range got.Cookies() {
			if k.Name == "ropeline_x" {
				p, err := f.keys.Open([]byte(k.Value), crdt.RoomID{1}, "127.0.0.1")
				if err != nil || p.Visitor != (node.VisitorID{7}) {
					t.Errorf("the pass is %+v, %v", p, err)
				}
				k.Value = ""
			}
			cookies += k.String() + " "
		}
		what := fmt.Sprintf("a pass is set: %v, admitted: %v", c.set, c.admit)
		equal(t, what, cookies, c.cookies)
		kept := slices.Concat(got.Header["Cache-Control"], got.Header["Expires"], got.Header["X-Accel-Expires"])
		equal(t, what, strings.Join(kept, " "), c.kept)
	}
}

func TestPassesFromVisitors(t *testing.T) {
	r := newRoom(never)
	f := serve(t, fakeRooms{room: r}, http.HandlerFunc(echo))
	mine := node.Pass{Visitor: node.VisitorID{42}, Room: crdt.RoomID{1}, Arrival: time.UnixMilli(1e12).UTC()}
	good, foreign := f.seal(mine, "127.0.0.1"), f.seal(mine, "other.example")
	otherRoom := mine
	otherRoom.Room = crdt.RoomID{2}
	forged := []byte(good)
	forged[80] = map[bool]byte{true: 'B', false: 'A'}[forged[80] == 'A']

	for name, c := range map[string]struct {
		cookie string
		known  bool
	}{
		"good":                 {good, true},
		"good among others":    {"a=b; " + good + "; c=d", true},
		"good after strangers": {"ropeline=x; ropeline=; " + foreign + "; " + good, true},
		"good too late":        {strings.Repeat("ropeline=x; ", 4) + good, false},
		"good after a long":    {"ropeline=" + strings.Repeat("x", 513) + "; " + good, true},
		"cut":                  {good[:len(good)-1], false},
		"forged":               {string(forged), false},
		"of another host":      {foreign, false},
		"of another room":      {f.seal(otherRoom, "127.0.0.1"), false},
		"under another name":   {"__Host-" + good, false},
		"of another suffix":    {strings.Replace(good, "=", "_x=", 1), false},
		"rubbish":              {"ropeline=%00\"\\ =;;=;", false},
		"none":                 {"", false},
	} {
		f.get("/", "Cookie", c.cookie).is(t, 200, "\r\nRopeline-State: waiting\r\n")
		want := seen{}
		if c.known {
			want = seen{mine, true}
		}
		equal(t, name+": what the room saw", r.saw(), want)
	}
}

// TestVisitorsAreNotMixedUp sends many visitors' requests at once over few
// connections and looks for one visitor's bytes in another's answer.
func TestVisitorsAreNotMixedUp(t *testing.T) {
	r := newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		v := never(p, known, now)
		v.Admit = p.Visitor[0]%2 == 0
		v.Estimate.Position = int(p.Visitor[0])<<8 | int(p.Visitor[1])
		return v
	})
	f := serve(t, fakeRooms{room: r}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.URL.Path+r.Header.Get("X-Me"))
	}))
	var wg sync.WaitGroup
	visitors := 200
	if testing.Short() {
		visitors /= 4
	}
	for i := range visitors {
		wg.Go(func() {
			me := node.VisitorID{byte(i), byte(i >> 8), 1}
			pass := f.seal(node.Pass{Visitor: me, Room: crdt.RoomID{1}}, "127.0.0.1")
			name := "visitor-" + strconv.Itoa(i)
			for range 10 {
				got := f.get("/"+name, "Cookie", pass, "X-Me", name, "Accept", "application/json")
				want := "/" + name + name
				if i%2 == 1 {
					want = `"position":` + strconv.Itoa(i%256<<8|i>>8) + ","
				}
				has(t, name, got.body, want)
				if p, err := f.keys.Open([]byte(got.Cookies()[0].Value), crdt.RoomID{1}, "127.0.0.1"); err != nil || p.Visitor != me {
					t.Errorf("visitor %d got the pass of %v, %v", i, p.Visitor, err)
				}
			}
		})
	}
	wg.Wait()
}

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
	noError(t, f.Follow(rooms))
	one, two := f.frontOf(&rooms[0]), f.frontOf(&rooms[1])
	if one == two || one == f.plain || two == f.plain {
		t.Fatal("two rooms of one name have one page")
	}
	_, err := f.Page("sale", "")
	has(t, "a name that two rooms have", fmt.Sprint(err), "give the id")
	p, err := f.Page(rooms[1].ID.String(), "")
	noError(t, err)
	equal(t, "the page by id", p, two.page)
	rooms[1].Front.Message = "soon"
	noError(t, f.Follow(rooms))
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
