package httpfront

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// metersOf returns what counts at a node.
func metersOf(core *node.Core) func(limit.ID) Meter {
	return func(id limit.ID) Meter {
		if m := core.Meter(id); m != nil {
			return m
		}
		return nil
	}
}

// fiveAMinute is a rule about all requests, by address.
func fiveAMinute(change ...func(*limit.Rule)) limit.Rule {
	r := limit.Rule{
		ID: limit.ID{1}, Name: "five", Expression: "true", Characteristics: []string{"ip.src"},
		Period: time.Minute, RequestsPerPeriod: 5, MitigationTimeout: 10 * time.Minute,
	}
	for _, c := range change {
		c(&r)
	}
	return r.WithDefaults()
}

// open is a room with many places, and full one with none left.
func open() room.Settings {
	s := smallRoom()
	s.TotalActiveUsers, s.NewUsersPerMinute = 1000, 1000
	return s
}

const (
	greedy = "192.0.2.1"
	other  = "192.0.2.2"
)

// exhaust asks as often as a rule allows.
func (c *crowded) exhaust(address, cookie string) {
	c.t.Helper()
	for i := range 5 {
		if a := c.ask(address, cookie); a.Outcome == Limited {
			c.t.Fatalf("request %d is limited", i+1)
		}
	}
}

func TestALimitBlocksWhoComesTooOften(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) {
		r.Response = limit.Response{StatusCode: 403, Content: "<b>no</b>", ContentType: "text/html"}
	}))
	c.exhaust(greedy, "")
	a := c.ask(greedy, "")
	if a.Outcome != Limited || a.Status != 403 || a.Cookie != "" {
		t.Fatalf("got %v, %d, %q", a.Outcome, a.Status, a.Cookie)
	}
	if b := c.ask(other, ""); b.Outcome != Admitted {
		t.Errorf("another address is %v", b.Outcome)
	}
	a = c.page(greedy)
	if string(a.Body) != "<b>no</b>" || a.field("Content-Type") != "text/html; charset=utf-8" || a.retryAfter() != 600 || a.field("Cache-Control") != "private, no-store" {
		t.Errorf("got %q with %v", a.Body, a.Fields)
	}
	c.pass(10*time.Minute + time.Second)
	if a := c.ask(greedy, ""); a.Outcome != Admitted {
		t.Errorf("after the timeout: %v", a.Outcome)
	}
	if got := c.front.LimitTallies(); len(got) != 1 || got[0].Limited != 2 || got[0].Name != "five" {
		t.Errorf("got %+v, want two limited requests", got)
	}
	if n := strings.Count(c.log.text(), "comes too often for a rate limit"); n != 1 {
		t.Errorf("the log tells of it %d times, want once", n)
	}
}

func TestALimitThatOnlyLogs(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) { r.Action = limit.Log }))
	for range 8 {
		if a := c.ask(greedy, ""); a.Outcome != Admitted {
			t.Fatalf("got %v", a.Outcome)
		}
	}
	if got := c.front.LimitTallies()[0].Limited; got != 3 {
		t.Errorf("got %d limited, want 3", got)
	}
}

// What counts together, and what does not.
func TestCharacteristics(t *testing.T) {
	for name, x := range map[string]struct {
		by    []string
		more  func(*limit.Rule)
		as    []string // fields of the first five requests
		same  []string // of one that counts with them
		other [][]string
	}{
		"header":  {by: []string{`http.request.headers["x-key"]`}, as: []string{"X-Key", "a"}, same: []string{"x-key", "a"}, other: [][]string{{"X-Key", "b"}, {"X-Key", ""}, {}}},
		"missing": {by: []string{`http.request.headers["x-key"]`}, as: []string{}, same: []string{"X-Other", "b"}, other: [][]string{{"X-Key", ""}}},
		"empty":   {by: []string{`http.request.headers["x-key"]`}, as: []string{"X-Key", ""}, same: []string{"X-Key", ""}, other: [][]string{{}}},
		"cookie":  {by: []string{`http.request.cookies["s"]`}, as: []string{"Cookie", "s=1"}, same: []string{"Cookie", "t=9; s=1"}, other: [][]string{{"Cookie", "s=2"}}},
		"two": {
			by: []string{`http.request.headers["a"]`, `http.request.headers["b"]`}, as: []string{"A", "xy", "B", "z"}, same: []string{"B", "z", "A", "xy"},
			other: [][]string{{"A", "x", "B", "yz"}, {"A", "xyz", "B", ""}, {"A", "xyz"}},
		},
		"none": {by: nil, as: []string{}, same: []string{"X-Any", "1"}},
	} {
		c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) { r.Characteristics = x.by }))
		ask := func(fields []string) Outcome { return c.judge(greedy, "GET", "/", fields...).Outcome }
		for range 5 {
			ask(x.as)
		}
		if got := ask(x.same); got != Limited {
			t.Errorf("%s: %v counts with %v: got %v", name, x.same, x.as, got)
		}
		for _, o := range x.other {
			if got := ask(o); got == Limited {
				t.Errorf("%s: %v does not count with %v", name, o, x.as)
			}
		}
	}
}

func TestNetworksCountTogether(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) { r.IPv4Prefix = 24 }))
	for i := range 5 {
		c.ask("192.0.2."+strconv.Itoa(i), "")
		c.ask("2001:db8:0:1::"+strconv.Itoa(i), "")
	}
	for address, want := range map[string]Outcome{
		"192.0.2.77": Limited, "192.0.3.77": Admitted, "::ffff:192.0.2.78": Limited, "2001:db8:0:1:ffff::1": Limited, "2001:db8:0:2::1": Admitted,
	} {
		if got := c.ask(address, "").Outcome; got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
}

// Visitors count by their passes where they have one, from whatever address.
func TestVisitorsCountByTheirPasses(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) { r.Characteristics = []string{limit.VisitorID} }))
	one, two := c.ask(greedy, ""), c.ask(greedy, "")
	for i := range 5 {
		if a := c.ask("198.51.100."+strconv.Itoa(i), one.Cookie); a.Outcome != Admitted {
			t.Fatalf("request %d is %v", i, a.Outcome)
		}
	}
	if a := c.ask(other, one.Cookie); a.Outcome != Limited {
		t.Errorf("got %v from another address with the pass", a.Outcome)
	}
	if a := c.ask(greedy, two.Cookie); a.Outcome != Admitted {
		t.Errorf("another visitor at the address is %v", a.Outcome)
	}
}

// Nobody gets round a rule about a path, or one that counts by paths, by writing it in
// another way.
func TestNoPathIsAWayRound(t *testing.T) {
	for _, by := range []string{limit.Source, "http.request.uri.path", "lower(http.request.uri.path)"} {
		c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) {
			r.Expression, r.Characteristics = `http.request.uri.path eq "/a/login"`, []string{by}
		}))
		limited := 0
		for _, path := range []string{"/a/login", "/a//login", "/a/%6cogin", "/a%2Flogin", "/a;v=1/login", "/a/login;2", "/a/login"} {
			if c.judge(greedy, "GET", path).Outcome == Limited {
				limited++
			}
		}
		if limited != 2 {
			t.Errorf("by %s: %d of 7 requests are limited, want 2", by, limited)
		}
	}
}

// Only what the response says is counted, and then the next request is limited.
func TestCountingByTheResponse(t *testing.T) {
	r := fiveAMinute(func(r *limit.Rule) { r.CountingExpression = `http.response.code eq 401` })
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wrong" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	f.follow(r)
	for range 20 {
		if a := f.get("/right"); a.StatusCode != 200 {
			t.Fatalf("got %d for what is not counted", a.StatusCode)
		}
	}
	for i := range 5 {
		if a := f.get("/wrong"); a.StatusCode != 401 {
			t.Fatalf("got %d for wrong request %d", a.StatusCode, i+1)
		}
	}
	for _, path := range []string{"/wrong", "/right"} {
		if a := f.get(path); a.StatusCode != 429 {
			t.Errorf("got %d for %s after five wrong ones", a.StatusCode, path)
		}
	}
}

// follow has a front follow rules, by a clock that stands still.
func (f *front) follow(rules ...limit.Rule) {
	f.tb.Helper()
	core := newCore(f.tb, node.CoreConfig{Limits: rules})
	if err := f.front.FollowLimits(rules, metersOf(core)); err != nil {
		f.tb.Fatal(err)
	}
}

// at is a clock that stands still.
func at(now time.Time) func(*Config) {
	return func(c *Config) { c.Clock = func() time.Time { return now } }
}

// Who has used up a limit is not limited by what does not count.
func TestWhatDoesNotCountLimitsNobody(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) { r.CountingExpression = `http.request.method eq "POST"` }))
	ask := func(method string) Outcome { return c.judge(greedy, method, "/").Outcome }
	for i := range 5 {
		if got := ask("POST"); got != Admitted {
			t.Fatalf("request %d is %v", i+1, got)
		}
	}
	for range 3 {
		if got := ask("GET"); got != Admitted {
			t.Errorf("a request that does not count is %v, with the limit used up", got)
		}
	}
	for method, limited := range map[string]bool{"GET": false, "POST": true} {
		q := asks(method, "/")
		q.Peer, q.For = netip.MustParseAddr(greedy), ""
		if x := c.front.Explain(q); len(x.Limits) != 1 || x.Limits[0].Limited != limited || x.Passes == limited {
			t.Errorf("explained: %s passes: %v, %+v", method, x.Passes, x.Limits)
		}
	}
	if got := ask("POST"); got != Limited {
		t.Errorf("one too many is %v", got)
	}
	if got := ask("GET"); got != Limited {
		t.Errorf("after that, one that does not count is %v", got)
	}
}

// The fields of the draft are on answers of the site and on ours, beside what the site
// says of its own limits.
func TestLimitFields(t *testing.T) {
	slow := fiveAMinute(func(r *limit.Rule) {
		r.ID, r.Name, r.Period, r.RequestsPerPeriod, r.Scope = limit.ID{2}, "slow.path", time.Hour, 100, limit.Site
	})
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("RateLimit", `"own";r=9`) })
	now := time.Date(2026, 3, 4, 12, 0, 20, 0, time.UTC)
	f := serve(t, nil, origin, at(now))
	f.follow(fiveAMinute(), slow)
	a := f.get("/")
	policy, limits := fields(t, a.Header.Values("RateLimit-Policy"), a.Header.Values("RateLimit"))
	if len(policy) != 2 || len(limits) != 3 || limits[0].Value != "own" {
		t.Fatalf("got %v and %v", a.Header.Values("RateLimit-Policy"), a.Header.Values("RateLimit"))
	}
	for i, want := range []struct {
		name       string
		q, w, r, t int64
	}{{"five", 5, 60, 4, 40}, {"slow.path", 100, 3600, 99, 3580}} {
		p, l := policy[i], limits[i+1]
		if p.Value != want.name || l.Value != want.name || param(p, "q") != want.q || param(p, "w") != want.w || param(l, "r") != want.r || param(l, "t") != want.t {
			t.Errorf("got %v and %v, want %+v", p, l, want)
		}
	}
	for range 4 {
		f.get("/")
	}
	a = f.get("/")
	_, limits = fields(t, a.Header.Values("RateLimit-Policy"), a.Header.Values("RateLimit"))
	if a.StatusCode != 429 || len(limits) != 1 || param(limits[0], "r") != int64(0) || param(limits[0], "t") != int64(600) || a.Header.Get("Retry-After") != "600" {
		t.Errorf("got %d with %v", a.StatusCode, a.Header)
	}
	if !strings.Contains(a.body, "<h1>Too many requests</h1>") || a.Header.Get("Ropeline-State") != "limited" {
		t.Errorf("got %q", a.body)
	}
	a = f.get("/", "Accept", "application/json")
	if want := `{"error":"too many requests","limit":"five","retry_after":600}`; strings.TrimSpace(a.body) != want {
		t.Errorf("got %q, want %q", a.body, want)
	}
	a = f.get("/", "Accept-Language", "de")
	if !strings.Contains(a.body, "Zu viele Anfragen") {
		t.Errorf("got %q", a.body)
	}
	if a = f.do("HEAD", "/", nil); a.StatusCode != 429 || a.body != "" {
		t.Errorf("HEAD: got %d, %q", a.StatusCode, a.body)
	}
}

// A request without a room is limited too, and the connection goes on.
func TestALimitWithoutARoom(t *testing.T) {
	reached := 0
	f := serve(t, nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }), at(time.Now()))
	f.follow(fiveAMinute(func(r *limit.Rule) { r.Action = limit.Queue }))
	for range 5 {
		f.get("/")
	}
	for range 3 {
		if a := f.do("POST", "/", strings.NewReader("a body")); a.StatusCode != 429 {
			t.Errorf("got %d", a.StatusCode)
		}
	}
	if reached != 5 {
		t.Errorf("%d requests reached the site", reached)
	}
}

// Rules may change while requests run; what they have done is not forgotten.
func TestFollowLimits(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), at(time.Now()))
	r := fiveAMinute()
	f.follow(r)
	for range 7 {
		f.get("/")
	}
	r.Name, r.RequestsPerPeriod = "six", 6
	f.follow(r)
	if got := f.front.LimitTallies(); len(got) != 1 || got[0].Limited != 2 || got[0].Name != "six" {
		t.Errorf("got %+v", got)
	}
	r.Action = limit.Log
	f.follow(r)
	if got := f.front.LimitTallies(); got[0].Limited != 0 || got[0].Action != limit.Log {
		t.Errorf("got %+v, and nothing was logged", got)
	}
	r.Disabled = true
	f.follow(r)
	if a := f.get("/"); a.StatusCode != 200 || a.Header.Get("RateLimit") != "" {
		t.Errorf("a rule that is disabled: got %d with %v", a.StatusCode, a.Header)
	}
	bad := fiveAMinute(func(r *limit.Rule) { r.Expression = "http.hots eq 1" })
	if err := f.front.FollowLimits([]limit.Rule{bad}, func(limit.ID) Meter { return (*node.Meter)(nil) }); err == nil || !strings.Contains(err.Error(), `rate limit "five"`) {
		t.Errorf("got %v", err)
	}
}

func TestCheckLimit(t *testing.T) {
	good := fiveAMinute(func(r *limit.Rule) {
		r.Expression, r.CountingExpression = `http.host eq "a"`, `http.response.code ge 400`
		r.Characteristics = []string{limit.VisitorID, `http.request.headers["x"]`, "lower(http.host)"}
	})
	if err := CheckLimit(&good, nil); err != nil {
		t.Errorf("got %v", err)
	}
	bad := fiveAMinute(func(r *limit.Rule) {
		r.Expression, r.CountingExpression = `http.response.code eq 1`, `http.response.cod eq 1`
		r.Characteristics = []string{"ip.src", "http.request.headers"}
	})
	err := CheckLimit(&bad, nil)
	var got []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		got = append(got, e.(*room.FieldError).Field)
	}
	if want := []string{"expression", "counting-expression", "characteristics[1]"}; !slices.Equal(got, want) {
		t.Errorf("got mistakes in %v, want %v: %v", got, want, err)
	}
}

// fields parses what an answer says of limits.
func fields(t *testing.T, policy, limits []string) (p, l []httpsfv.Item) {
	t.Helper()
	parse := func(lines []string) (items []httpsfv.Item) {
		list, err := httpsfv.UnmarshalList(lines)
		if err != nil {
			t.Fatalf("%q: %v", lines, err)
		}
		for _, m := range list {
			items = append(items, m.(httpsfv.Item))
		}
		return items
	}
	return parse(policy), parse(limits)
}

func param(i httpsfv.Item, name string) any {
	v, _ := i.Params.Get(name)
	return v
}
