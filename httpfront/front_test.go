package httpfront

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/httpfront/upstream"
	"github.com/ropeline/ropeline/node"
)

func TestNewNamesEverythingThatIsWrong(t *testing.T) {
	noCheck := Origins{Check: &upstream.Check{Path: "/"}}
	for name, c := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"almost all": {func(c *Config) {
			*c = Config{Upstreams: Upstreams{Origins: Origins{Servers: make([]upstream.Origin, 1)}}, Limits: Limits{Conns: -1}, Timeouts: Timeouts{Idle: -1}}
		}, []string{"no address", "no rooms", "no keys", "conns", "idle"}},
		"a route": {func(c *Config) { c.Routes = []Route{{Name: "shop", Origins: noCheck}} }, []string{"origins: 0 are given", "route shop: a check without origins"}},
		"hosts":   {func(c *Config) { c.Hosts = []string{"Shop.example", "a:80"} }, []string{`"Shop.example"`, `"a:80"`}},
		"methods": {func(c *Config) { c.Methods = []string{"get", "TRACE"} }, []string{`method "get": want up to 32 upper-case letters`, `method "TRACE"`}},
		"a proof": {func(c *Config) { c.ProofHeader = "Two Words" }, []string{`proof header "Two Words"`}},
	} {
		cfg := Config{Connections: Connections{Listen: ":0"}, Rooms: fakeRooms{}, Keys: newKeys(t)}
		c.change(&cfg)
		_, err := New(cfg)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v does not name %q", name, err, want)
			}
		}
	}
}

func TestRequestsWithoutARoomPassUntouched(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo))
	got := f.get("/a//b%20c;x?q=1%2F")
	if got.StatusCode != 200 || !strings.HasPrefix(got.body, "GET /a//b%20c;x?q=1%2F host="+f.addr) {
		t.Errorf("got %d %q", got.StatusCode, got.body)
	}
	if len(got.Cookies()) != 0 {
		t.Errorf("got cookies %v", got.Cookies())
	}
	if d := got.Header.Values("Date"); len(d) != 1 {
		t.Errorf("got Date %q, want the origin's and no other", d)
	}
	if s := got.Header.Get("Server"); s != "" {
		t.Errorf("got Server %q", s)
	}
}

func TestWaitingPage(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(never)}, http.HandlerFunc(echo))
	got := f.get("/", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	if got.StatusCode != 200 {
		t.Errorf("got status %d", got.StatusCode)
	}
	for name, want := range map[string]string{
		"Ropeline-State": "waiting",
		"Content-Type":   "text/html; charset=utf-8",
	} {
		if v := got.Header.Values(name); len(v) != 1 || v[0] != want {
			t.Errorf("%s: got %q, want %q", name, v, want)
		}
	}
	if _, err := http.ParseTime(got.Header.Get("Date")); err != nil {
		t.Errorf("Date: %v", err)
	}
	for _, want := range []string{"1,235", "1,234", "1 hour and 1 minute", `lang="en-US" dir="ltr"`, `role="status"`, `<meta http-equiv="refresh" content="20">`, "Last updated"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	head := len("HTTP/1.1 200 OK\r\n\r\n") // nothing in it is longer in another language
	for name, values := range got.Header {
		for _, v := range values {
			head += len(name) + len(": \r\n") + len(v)
		}
	}
	if head >= 1<<10 || got.Header.Get("Set-Cookie") == "" {
		t.Errorf("the head of the answer has %d bytes, want less than 1 KiB and a cookie: %v", head, got.Header)
	}
}

func TestWaitingJSON(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(never)}, http.HandlerFunc(echo))
	got := f.get("/", "Accept", "application/json")
	if ct := got.Header.Get("Content-Type"); ct != "application/json" {
		t.Fatalf("got %s %q", ct, got.body)
	}
	var doc map[string]map[string]any
	if err := json.Unmarshal([]byte(got.body), &doc); err != nil {
		t.Fatal(err)
	}
	r := doc["cfWaitingRoom"]
	for key, want := range map[string]any{
		"inWaitingRoom": true, "waitTimeKnown": true, "waitTime": 61.0, "waitTimeFormatted": "1 hour and 1 minute",
		"waitTime25Percentile": 0.0, "waitTime50Percentile": 0.0, "waitTime75Percentile": 0.0,
		"queueIsFull": false, "queueAll": false, "refreshIntervalSeconds": 20.0,
		"queueingMethod": "fifo", "isFIFOQueue": true, "isRandomQueue": false, "isPassthroughQueue": false,
		"isRejectQueue": false, "isEventActive": false, "isEventPrequeueing": false, "shuffleAtEventStart": false,
		"timeUntilEventStart": 0.0, "timeUntilEventEnd": 0.0, "turnstile": "", "infiniteQueue": false,
		"position": 1235.0, "peopleAhead": 1234.0, "room": "shop",
	} {
		if r[key] != want {
			t.Errorf("%s: got %v, want %v", key, r[key], want)
		}
	}
	for _, key := range []string{"arrival", "lastUpdated"} {
		s, _ := r[key].(string)
		if at, err := time.Parse("2006-01-02T15:04:05.000Z07:00", s); err != nil || time.Since(at).Abs() > time.Minute {
			t.Errorf("%s: got %q, %v", key, s, err)
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
		if got := page.PrefersJSON([]byte(accept)); got != want {
			t.Errorf("%q: got %v, want %v", accept, got, want)
		}
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
		got := f.do(method, "/shop", strings.NewReader(body))
		if got.StatusCode != want || got.Header.Get("Ropeline-State") != "waiting" || got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: got %d %v", method, got.StatusCode, got.Header)
		}
		if method == "POST" && !strings.Contains(got.body, "has not been delivered") {
			t.Error("the page does not say that the form was not delivered")
		}
		if method == "HEAD" && got.body != "" {
			t.Errorf("HEAD has a body of %d bytes", len(got.body))
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests reached the origin", n)
	}
	if got := f.do("OPTIONS", "/shop", nil, asksFirst...); got.StatusCode != 200 || reached.Load() != 1 {
		t.Errorf("a preflight: got %d, want it to pass", got.StatusCode)
	}
}

func TestNothingOfTheRequestIsInTheAnswer(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(never)}, http.HandlerFunc(echo))
	const mark = "zqxjk"
	for _, accept := range []string{"text/html", "application/json"} {
		got := f.get("/"+mark+"?"+mark+"="+mark, "Accept", accept, mark, mark, "Cookie", mark+"="+mark,
			"User-Agent", mark, "Referer", "http://"+mark+"/", "Host", mark+".example", "X-Forwarded-Host", mark)
		if all := fmt.Sprint(got.body, got.Header); strings.Contains(all, mark) {
			t.Errorf("reflected: %s", all)
		}
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
	for _, c := range []struct{ set, admit bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		set.Store(c.set)
		admit.Store(c.admit)
		got := f.get("/")
		var ours []*http.Cookie
		theirs := 0
		for _, k := range got.Cookies() {
			if k.Name == "ropeline_x" {
				ours = append(ours, k)
			} else {
				theirs++
			}
		}
		if want := map[bool]int{true: 1}[c.set]; len(ours) != want {
			t.Fatalf("%+v: got %d passes, want %d", c, len(ours), want)
		}
		if want := map[bool]int{true: 2}[c.admit]; theirs != want {
			t.Errorf("%+v: got %d cookies of the origin, want %d", c, theirs, want)
		}
		if c.set {
			k := ours[0]
			if !k.HttpOnly || k.Secure || k.SameSite != http.SameSiteLaxMode || k.Path != "/" || k.Domain != "" || k.MaxAge != 87020 {
				t.Errorf("got %s", k)
			}
			p, err := f.keys.Open([]byte(k.Value), crdt.RoomID{1}, "127.0.0.1")
			if err != nil || p.Visitor != (node.VisitorID{7}) {
				t.Errorf("the pass is %+v, %v", p, err)
			}
		}
		cc, expires := strings.Join(got.Header.Values("Cache-Control"), "|"), got.Header.Get("Expires")+got.Header.Get("X-Accel-Expires")
		switch {
		case c.admit && c.set && (cc != "private, no-cache" || expires != ""):
			t.Errorf("a pass in an answer with Cache-Control %q and expiry %q", cc, expires)
		case c.admit && !c.set && (cc != "public, max-age=600|s-maxage=600" || expires == ""):
			t.Errorf("without a pass the origin's Cache-Control became %q, and its expiry %q", cc, expires)
		}
	}
}

func TestPassesFromVisitors(t *testing.T) {
	type seen struct {
		p     node.Pass
		known bool
	}
	var last atomic.Pointer[seen]
	f := serve(t, fakeRooms{room: newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		last.Store(&seen{p, known})
		return never(p, known, now)
	})}, http.HandlerFunc(echo))

	mine := node.Pass{Visitor: node.VisitorID{42}, Room: crdt.RoomID{1}, Arrival: time.UnixMilli(1e12).UTC()}
	good := string(f.keys.AppendSeal(nil, mine, "127.0.0.1"))
	foreign := string(f.keys.AppendSeal(nil, mine, "other.example"))
	otherRoom := mine
	otherRoom.Room = crdt.RoomID{2}
	other := string(f.keys.AppendSeal(nil, otherRoom, "127.0.0.1"))
	swap := map[byte]byte{'A': 'B'}
	forged := []byte(good)
	if forged[70] = swap[forged[70]]; forged[70] == 0 {
		forged[70] = 'A'
	}

	for name, c := range map[string]struct {
		cookie string
		known  bool
	}{
		"good":                 {"ropeline=" + good, true},
		"good among others":    {"a=b; ropeline=" + good + "; c=d", true},
		"good after strangers": {"ropeline=x; ropeline=; ropeline=" + foreign + "; ropeline=" + good, true},
		"good too late":        {strings.Repeat("ropeline=x; ", 4) + "ropeline=" + good, false},
		"good after a long":    {"ropeline=" + strings.Repeat("x", 513) + "; ropeline=" + good, true},
		"cut":                  {"ropeline=" + good[:len(good)-1], false},
		"forged":               {"ropeline=" + string(forged), false},
		"of another host":      {"ropeline=" + foreign, false},
		"of another room":      {"ropeline=" + other, false},
		"under another name":   {"__Host-ropeline=" + good, false},
		"of another suffix":    {"ropeline_x=" + good, false},
		"rubbish":              {"ropeline=%00\"\\ =;;=;", false},
		"none":                 {"", false},
	} {
		got := f.get("/", "Cookie", c.cookie)
		if got.StatusCode != 200 || got.Header.Get("Ropeline-State") != "waiting" {
			t.Errorf("%s: got %d %q", name, got.StatusCode, got.body)
		}
		s := last.Load()
		if s.known != c.known || c.known && s.p != mine || !c.known && s.p != (node.Pass{}) {
			t.Errorf("%s: the room saw %+v", name, s)
		}
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
			cookie := "ropeline=" + string(f.keys.AppendSeal(nil, node.Pass{Visitor: me, Room: crdt.RoomID{1}}, "127.0.0.1"))
			name := "visitor-" + strconv.Itoa(i)
			for range 10 {
				got := f.get("/"+name, "Cookie", cookie, "X-Me", name, "Accept", "application/json")
				want := "/" + name + name
				if i%2 == 1 {
					want = `"position":` + strconv.Itoa(i%256<<8|i>>8) + ","
				}
				if !strings.Contains(got.body, want) {
					t.Errorf("visitor %d got %q", i, got.body)
				}
				_, value, _ := strings.Cut(got.Header.Get("Set-Cookie"), "=")
				value, _, _ = strings.Cut(value, ";")
				if p, err := f.keys.Open([]byte(value), crdt.RoomID{1}, "127.0.0.1"); err != nil || p.Visitor != me {
					t.Errorf("visitor %d got the pass of %v, %v", i, p.Visitor, err)
				}
			}
		})
	}
	wg.Wait()
}
