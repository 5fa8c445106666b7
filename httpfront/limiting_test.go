package httpfront

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
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
	equal(c.t, "requests that are limited", c.count(5, Limited, address, cookie), 0)
}

// count is how many of n requests of an address have that outcome.
func (c *crowded) count(n int, of Outcome, address, cookie string) (count int) {
	for range n {
		if c.awaited(address, cookie).Outcome == of {
			count++
		}
	}
	return count
}

func TestALimitBlocksWhoComesTooOften(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) {
		r.Response = limit.Response{StatusCode: 403, Content: "<b>no</b>", ContentType: "text/html"}
	}))
	c.exhaust(greedy, "")
	a := c.ask(greedy, "").is(t, Limited)
	equal(t, "a limited request", fmt.Sprint(a.Status, a.Cookie), "403")
	c.ask(other, "").is(t, Admitted, "another address")
	a = c.page(greedy)
	equal(t, "the page", string(a.Body), "<b>no</b>")
	has(t, "the page", fmt.Sprint(a.Fields), "{Content-Type text/html; charset=utf-8}", "{Retry-After 600}", "{Cache-Control private, no-store}")
	c.pass(10*time.Minute + time.Second)
	c.ask(greedy, "").is(t, Admitted, "after the timeout")
	equal(t, "what is limited", fmt.Sprint(c.front.LimitTallies()), fmt.Sprint([]LimitTally{{limit.ID{1}, "five", limit.Block, 2}}))
	equal(t, "lines of the log", strings.Count(c.log.text(), "comes too often for a rate limit"), 1)
}

func TestALimitThatOnlyLogs(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) { r.Action = limit.Log }))
	equal(t, "requests that pass", c.count(8, Admitted, greedy, ""), 8)
	equal(t, "limited", c.front.LimitTallies()[0].Limited, 3)
}

// What counts together, and what does not.
func TestCharacteristics(t *testing.T) {
	header := []string{`http.request.headers["x-key"]`}
	for name, x := range map[string]struct {
		by    []string
		as    []string // fields of the first five requests
		same  []string // of one that counts with them
		other [][]string
	}{
		"header":  {header, []string{"X-Key", "a"}, []string{"x-key", "a"}, [][]string{{"X-Key", "b"}, {"X-Key", ""}, {}}},
		"missing": {header, []string{}, []string{"X-Other", "b"}, [][]string{{"X-Key", ""}}},
		"empty":   {header, []string{"X-Key", ""}, []string{"X-Key", ""}, [][]string{{}}},
		"cookie":  {[]string{`http.request.cookies["s"]`}, []string{"Cookie", "s=1"}, []string{"Cookie", "t=9; s=1"}, [][]string{{"Cookie", "s=2"}}},
		"two": {
			[]string{`http.request.headers["a"]`, `http.request.headers["b"]`},
			[]string{"A", "xy", "B", "z"},
			[]string{"B", "z", "A", "xy"},
			[][]string{{"A", "x", "B", "yz"}, {"A", "xyz", "B", ""}, {"A", "xyz"}},
		},
		"none": {nil, []string{}, []string{"X-Any", "1"}, nil},
	} {
		c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) { r.Characteristics = x.by }))
		for range 5 {
			c.judge(greedy, "GET", "/", x.as...)
		}
		c.judge(greedy, "GET", "/", x.same...).is(t, Limited, name, "that counts with", x.as)
		for _, o := range x.other {
			c.judge(greedy, "GET", "/", o...).is(t, Admitted, name, o, "that does not count with", x.as)
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
		c.ask(address, "").is(t, want, address)
	}
}

// Visitors count by their passes where they have one, from whatever address.
func TestVisitorsCountByTheirPasses(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) { r.Characteristics = []string{limit.VisitorID} }))
	one, two := c.ask(greedy, ""), c.ask(greedy, "")
	for i := range 5 {
		c.ask("198.51.100."+strconv.Itoa(i), one.Cookie).is(t, Admitted, "request", i)
	}
	c.ask(other, one.Cookie).is(t, Limited, "from another address with the pass")
	c.ask(greedy, two.Cookie).is(t, Admitted, "another visitor at the address")
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
		equal(t, by+": requests of 7 that are limited", limited, 2)
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
	f.gets(20, "/right", 200)
	f.gets(5, "/wrong", 401)
	for _, path := range []string{"/wrong", "/right"} {
		f.get(path).is(t, 429)
	}
}

// follow has a front follow rules, by a clock that stands still.
func (f *front) follow(rules ...limit.Rule) {
	f.tb.Helper()
	core := newCore(node.CoreConfig{Limits: rules})
	noError(f.tb, f.front.FollowLimits(rules, metersOf(core)))
}

// at is a clock that stands still.
func at(now time.Time) func(*Config) {
	return func(c *Config) { c.Clock = func() time.Time { return now } }
}

// Who has used up a limit is not limited by what does not count.
func TestWhatDoesNotCountLimitsNobody(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) { r.CountingExpression = `http.request.method eq "POST"` }))
	ask := func(method string, want Outcome, of string) {
		t.Helper()
		c.judge(greedy, method, "/").is(t, want, method, of)
	}
	for range 5 {
		ask("POST", Admitted, "at first")
	}
	for range 3 {
		ask("GET", Admitted, "which does not count, with the limit used up")
	}
	for method, limited := range map[string]bool{"GET": false, "POST": true} {
		q := asks(method, "/")
		q.Peer, q.For = netip.MustParseAddr(greedy), ""
		if x := c.front.Explain(q); len(x.Limits) != 1 || x.Limits[0].Limited != limited || x.Passes == limited {
			t.Errorf("explained: %s passes: %v, %+v", method, x.Passes, x.Limits)
		}
	}
	ask("POST", Limited, "one too many")
	ask("GET", Limited, "after that")
}

// The fields of the draft are on answers of the site and on ours, beside what the site
// says of its own limits.
func TestLimitFields(t *testing.T) {
	slow := fiveAMinute(func(r *limit.Rule) {
		r.ID, r.Name, r.Period, r.RequestsPerPeriod, r.Scope = limit.ID{2}, "slow.path", time.Hour, 100, limit.Site
	})
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("RateLimit", `"own";r=9`) })
	f := serve(t, nil, origin, at(time.Date(2026, 3, 4, 12, 0, 20, 0, time.UTC)))
	f.follow(fiveAMinute(), slow)
	a := f.get("/")
	equal(t, "the policy", limitsIn(t, a, "RateLimit-Policy"), `"five";q=5;w=60, "slow.path";q=100;w=3600`)
	equal(t, "the site's answer", limitsIn(t, a, "RateLimit"), `"own";r=9, "five";r=4;t=40, "slow.path";r=99;t=3580`)
	f.gets(4, "/", 200)
	a = f.get("/").is(t, 429, "\r\nRetry-After: 600\r\n", "\r\nRefresh: 600\r\n", "\r\nRopeline-State: limited\r\n", "<h1>Too many requests</h1>", "reloads by itself")
	equal(t, "our answer", limitsIn(t, a, "RateLimit"), `"five";r=0;t=600`)
	f.get("/", "Accept", "application/json").is(t, 429, "\r\n\r\n"+`{"error":"too many requests","limit":"five","retry_after":600}`)
	f.get("/", "Accept-Language", "de").is(t, 429, "Zu viele Anfragen")
	equal(t, "the body for HEAD", f.do("HEAD", "/", nil).is(t, 429).body, "")
}

// A request without a room is limited too, and the connection goes on.
func TestALimitWithoutARoom(t *testing.T) {
	reached := 0
	f := serve(t, nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }), at(time.Now()))
	f.follow(fiveAMinute(func(r *limit.Rule) { r.Action = limit.Queue }))
	f.gets(5, "/", 200)
	for range 3 {
		f.do("POST", "/", strings.NewReader("a body")).is(t, 429)
	}
	equal(t, "requests that reached the site", reached, 5)
}

// Rules may change while requests run; what they have done is not forgotten.
func TestFollowLimits(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), at(time.Now()))
	r := fiveAMinute()
	f.follow(r)
	f.gets(5, "/", 200)
	f.gets(2, "/", 429)
	r.Name, r.RequestsPerPeriod = "six", 6
	f.follow(r)
	equal(t, "what is limited", fmt.Sprint(f.front.LimitTallies()), fmt.Sprint([]LimitTally{{limit.ID{1}, "six", limit.Block, 2}}))
	r.Action = limit.Log
	f.follow(r)
	equal(t, "what is logged", fmt.Sprint(f.front.LimitTallies()), fmt.Sprint([]LimitTally{{limit.ID{1}, "six", limit.Log, 0}}))
	r.Disabled = true
	f.follow(r)
	equal(t, "with a rule that is disabled", f.get("/").is(t, 200).Header.Get("RateLimit"), "")
	bad := fiveAMinute(func(r *limit.Rule) { r.Expression = "http.hots eq 1" })
	err := f.front.FollowLimits([]limit.Rule{bad}, func(limit.ID) Meter { return (*node.Meter)(nil) })
	has(t, "a rule with a mistake", fmt.Sprint(err), `rate limit "five"`)
}

func TestCheckLimit(t *testing.T) {
	good := fiveAMinute(func(r *limit.Rule) {
		r.Expression, r.CountingExpression = `http.host eq "a"`, `http.response.code ge 400`
		r.Characteristics = []string{limit.VisitorID, `http.request.headers["x"]`, "lower(http.host)"}
	})
	check := func(r *limit.Rule) error {
		_, err := CheckLimit(r, nil)
		return err
	}
	noError(t, check(&good))
	costly := fiveAMinute(func(r *limit.Rule) {
		r.Expression, r.CountingExpression = `http.cookie matches ".{1,400}x"`, `http.cookie matches ".{1,100}x"`
		r.Characteristics = []string{"lower(http.cookie)"}
	})
	if n, err := CheckLimit(&costly, nil); n < 1000 || n > 1020 || err != nil {
		t.Errorf("a rule costs %d steps, %v", n, err)
	}
	bad := fiveAMinute(func(r *limit.Rule) {
		r.Expression, r.CountingExpression = `http.response.code eq 1`, `http.response.cod eq 1`
		r.Characteristics = []string{"ip.src", "http.request.headers"}
	})
	equal(t, "mistakes in", fmt.Sprint(slices.Sorted(maps.Keys(reasons(check(&bad))))), "[characteristics[1] counting-expression expression]")
}

// limitsIn is what a field of an answer says of limits, as RFC 9651 writes it.
func limitsIn(t *testing.T, a reply, name string) string {
	t.Helper()
	list, err := httpsfv.UnmarshalList(a.Header.Values(name))
	text, err2 := httpsfv.Marshal(list)
	if err := errors.Join(err, err2); err != nil {
		t.Fatalf("%q: %v", a.Header.Values(name), err)
	}
	return text
}

// fixedMeter says the same of all keys, and counts how often it was asked.
type fixedMeter struct {
	verdict limit.Verdict
	asked   atomic.Int64
}

func (m *fixedMeter) Key([]byte) limit.Key { return 0 }

func (m *fixedMeter) Take(limit.Key, time.Time) limit.Verdict {
	m.asked.Add(1)
	return m.verdict
}

func (m *fixedMeter) Peek(k limit.Key, now time.Time) limit.Verdict  { return m.Take(k, now) }
func (m *fixedMeter) Check(k limit.Key, now time.Time) limit.Verdict { return m.Take(k, now) }
func (m *fixedMeter) Count(limit.Key, time.Time) limit.Verdict       { return m.verdict }

// TestEachRequestIsHeldAgainstLimitsOnce, whether or not it is of a room.
func TestEachRequestIsHeldAgainstLimitsOnce(t *testing.T) {
	within, beyond := limit.Verdict{Remaining: 3, Reset: 2 * time.Second}, limit.Verdict{Limited: true, Reset: 2 * time.Second}
	for name, c := range map[string]struct {
		verdict limit.Verdict
		action  limit.Action
		counts  string // the counting expression
		code    int    // of the answer to a request of no room
		outcome Outcome
		inRoom  int // instead, in a room
		roomed  Outcome
	}{
		"within":           {within, limit.Block, "", 200, Bypassed, 200, Admitted},
		"by the response":  {within, limit.Block, `http.response.code eq 200`, 200, Bypassed, 200, Admitted},
		"blocked":          {beyond, limit.Block, "", 429, Limited, 429, Limited},
		"sent to the line": {beyond, limit.Queue, "", 429, Limited, 200, Queued},
		"only logged":      {beyond, limit.Log, "", 200, Bypassed, 200, Admitted},
	} {
		for roomed, rooms := range map[string]fakeRooms{"a room": {room: newRoom(always)}, "no room": {path: "/nowhere", room: newRoom(always)}} {
			t.Run(name+" in "+roomed, func(t *testing.T) {
				now, told := time.Now(), new(witness)
				f := serve(t, rooms, http.HandlerFunc(siteOfAllKinds), told.watch, at(now), func(c *Config) { c.sleep = func(time.Duration) {} })
				meter := &fixedMeter{verdict: c.verdict}
				rule := fiveAMinute(func(r *limit.Rule) {
					r.Expression, r.Action, r.CountingExpression = `http.request.uri.path ne "/warm"`, c.action, c.counts
				})
				noError(t, f.front.FollowLimits([]limit.Rule{rule}, func(limit.ID) Meter { return meter }))
				answersAlike(t, f)
				told.forget()
				meter.asked.Store(0)
				conn := f.dial()
				code, outcome := c.code, c.outcome
				if roomed == "a room" {
					code, outcome = c.inRoom, c.roomed
				}
				for n := range 2 {
					if a := conn.ask("GET", "GET /a HTTP/1.1\r\nHost: a\r\n\r\n").is(t, code); a.Header.Get(limitField) == "" {
						t.Errorf("got %v, want the fields that tell of limits", a.Header)
					}
					told.is(t, n+1, outcome, fmt.Sprintf(`HTTP/1.1" %d `, code))
				}
				equal(t, "how often 2 requests were held against the limit", meter.asked.Load(), 2)
			})
		}
	}
}
