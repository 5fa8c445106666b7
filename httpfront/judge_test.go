package httpfront

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/forwarding"
	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

var loopback = prefixes("127.0.0.0/8")

func prefixes(text string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(text)} }

// trusts has a front believe what proxies in these networks tell.
func trusts(proxies []netip.Prefix) func(*Config) {
	return func(c *Config) { c.TrustedProxies = proxies }
}

// asksFirst are the fields that make OPTIONS a preflight.
var asksFirst = []string{"Origin", "https://other.example", "Access-Control-Request-Method", "PUT"}

// asks returns the question of a proxy on loopback, with fields given as name, value,
// name, value, ….
func asks(method, target string, fields ...string) *Question {
	return &Question{
		Peer: netip.MustParseAddr("127.0.0.1"), Method: method, Target: target, Host: "shop.example", Scheme: "http",
		For: "192.0.2.1",
		Fields: func(yield func(name, value string) bool) {
			for i := 0; i < len(fields); i += 2 {
				if !yield(fields[i], fields[i+1]) {
					return
				}
			}
		},
	}
}

// judges returns a front that judges for a room with a clock that stands still.
func judges(tb testing.TB, rooms Rooms, change ...func(*Config)) *Front {
	cfg := Config{Rooms: rooms, Keys: newKeys(), Logger: testLogger(tb), TrustedProxies: loopback}
	for _, c := range change {
		c(&cfg)
	}
	return must(New(cfg))
}

// TestJudgeAnswersAsTheProxyDoes sends each request through the proxy, as one that a
// trusted peer has forwarded, and asks about the same one.
func TestJudgeAnswersAsTheProxyDoes(t *testing.T) {
	rooms := map[string]func(node.Pass, bool, time.Time) node.Verdict{"never": never, "always": always, "let in": letIn}
	for name, decide := range rooms {
		r := newRoom(decide)
		r.settings.QueueingStatusCode = 202
		f := serve(t, fakeRooms{"/room", r}, http.HandlerFunc(echo), trustLoopback, at(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)))
		questions := []*Question{
			asks("GET", "/room/a?b=c", "Accept", "application/json"),
			asks("GET", "/room", "Accept", page.Question),
			asks("HEAD", "/room"),
			asks("POST", "/room"),
			asks("DELETE", "/room", "Accept", "application/json"),
			asks("OPTIONS", "/room"),
			asks("OPTIONS", "/room", asksFirst...),
			asks("GET", "/room", "X_Custom", "a", "X-Custom", "b"),
			asks("GET", "/room", "X-Forwarded-Proto", "https"), // the visitor's: does not count
		}
		for _, target := range []string{
			"/room", "/elsewhere", "/room//x", "/room/../x", "/x/..;/room", `/\room`, "/;/room;x/a%2fb", "/%72oom", "/room#x", "/" + strings.Repeat("a", 8<<10),
		} {
			questions = append(questions, asks("GET", target))
		}
		for _, q := range questions {
			got := f.front.Judge(q)
			header := []string{"Host", q.Host, "X-Forwarded-For", q.For, "X-Forwarded-Proto", q.Scheme}
			for n, v := range q.Fields {
				if !forwarding.Is(n) {
					header = append(header, n, v)
				}
			}
			compareAnswers(t, name+" "+q.Method+" "+q.Target[:min(len(q.Target), 40)], f, got, f.send(q.Method, q.Target, header...))
		}
	}
}

// send is do for targets that are not in order, on a connection of its own.
func (f *front) send(method, target string, header ...string) reply {
	f.tb.Helper()
	head := method + " " + target + " HTTP/1.1\r\nConnection: close\r\n"
	for i := 0; i < len(header); i += 2 {
		head += header[i] + ": " + header[i+1] + "\r\n"
	}
	return f.says(method, head+"\r\n")
}

// says is what answers bytes on a connection of their own.
func (f *front) says(method, request string) reply {
	f.tb.Helper()
	return whole(f.tb, readResponse(f.tb, bufio.NewReader(strings.NewReader(f.raw(request))), method))
}

// compareAnswers holds an answer to a question against that of the proxy.
func compareAnswers(t *testing.T, what string, f *front, got Answer, want reply) {
	t.Helper()
	isEcho := strings.HasPrefix(want.body, want.Request.Method+" ") || want.body == "" && want.Header.Get(stateField) == ""
	if admitted := want.StatusCode == 200 && isEcho; admitted != (got.Outcome == Admitted) {
		t.Errorf("%s: %v, the proxy answered %d %.40q", what, got.Outcome, want.StatusCode, want.body)
		return
	}
	cookies := want.Header.Values("Set-Cookie")
	if (got.Cookie != "") != (len(cookies) == 1) {
		t.Errorf("%s: cookie %q, the proxy's %q", what, got.Cookie, cookies)
	} else if len(cookies) == 1 {
		comparePasses(t, what, f, got.Cookie, cookies[0])
	}
	if got.Outcome == Admitted {
		return
	}
	equal(t, what+": the status", got.Status, want.StatusCode)
	if want.Request.Method != "HEAD" {
		equal(t, what+": the body", string(got.Body), want.body)
	}
	fields := http.Header{}
	for _, f := range got.Fields {
		fields.Add(f.Name, f.Value)
	}
	for _, apart := range []string{"Set-Cookie", "Date", "Connection", "Content-Length"} {
		want.Header.Del(apart)
	}
	equal(t, what+": the fields", fmt.Sprint(fields), fmt.Sprint(want.Header))
}

// comparePasses compares two Set-Cookie values, but for what sealing makes of it.
func comparePasses(t *testing.T, what string, f *front, got, want string) {
	t.Helper()
	open := func(cookie string) (node.Pass, string) {
		name, rest, _ := strings.Cut(cookie, "=")
		value, attributes, _ := strings.Cut(rest, ";")
		p, err := f.keys.Open([]byte(value), newRoom(nil).settings.ID, "shop.example")
		if err != nil {
			t.Fatalf("%s: %q: %v", what, cookie, err)
		}
		return p, name + ";" + attributes
	}
	gotPass, gotRest := open(got)
	wantPass, wantRest := open(want)
	if gotPass != wantPass || gotRest != wantRest {
		t.Errorf("%s: pass %+v in %q, the proxy's %+v in %q", what, gotPass, gotRest, wantPass, wantRest)
	}
}

func TestJudgeKnowsTheVisitorsSide(t *testing.T) {
	f := judges(t, fakeRooms{"/", newRoom(never)})
	q := asks("GET", "/")
	q.Scheme = "https"
	has(t, "over TLS", f.Judge(q).Cookie, "__Host-ropeline=", "; Secure")
	q.Peer = netip.MustParseAddr("192.0.2.9")
	equal(t, "a plain cookie where a peer that is not trusted says TLS", strings.HasPrefix(f.Judge(q).Cookie, "ropeline="), true)
	// As package middleware tells what proxies in front of it say.
	for said, secure := range map[[2]string]bool{
		{"198.51.100.1, 127.0.0.2, 127.0.0.3", "https, http, http"}: true,
		{"198.51.100.1, 127.0.0.2, 127.0.0.3", "http, https, http"}: false,
		{"198.51.100.1, 127.0.0.3", "https, http, http"}:            false, // the first is made up
		{"198.51.100.1, 127.0.0.3", "wss"}:                          true,
	} {
		q = asks("GET", "/")
		q.For, q.Scheme = said[0], said[1]
		equal(t, "a secure cookie through "+q.For+" by "+q.Scheme, strings.HasPrefix(f.Judge(q).Cookie, "__Host-ropeline="), secure)
	}
}

func TestJudgeWithoutAPage(t *testing.T) {
	f := judges(t, fakeRooms{"/", newRoom(never)})
	q := asks("GET", "/")
	q.NoPage = true
	if a := f.Judge(q); a.Outcome != Queued || a.Cookie == "" || len(a.Body) != 0 || a.Status != 200 {
		t.Errorf("got %+v", a)
	}
}

func TestJudgeSaysWhoAsksForJSON(t *testing.T) {
	for outcome, decide := range map[Outcome]func(node.Pass, bool, time.Time) node.Verdict{Queued: never, Admitted: always} {
		f := judges(t, fakeRooms{"/", newRoom(decide)})
		for accept, want := range map[string]bool{"application/json": true, "text/html,*/*;q=0.8": false, "": false} {
			a := f.Judge(asks("GET", "/", "Accept", accept)).is(t, outcome, accept)
			equal(t, fmt.Sprint(outcome, " who accepts ", accept, " asks for JSON"), a.JSON, want)
		}
	}
}

func TestJudgeRefusesLineBreaks(t *testing.T) {
	f := judges(t, fakeRooms{"/", newRoom(never)})
	for what, change := range map[string]func(*Question){
		"host":   func(q *Question) { q.Host = "shop.example\r\nX-Forwarded-For: 127.0.0.1" },
		"scheme": func(q *Question) { q.Scheme = "http\r\nX-Forwarded-Proto: https" },
		"for":    func(q *Question) { q.For = "192.0.2.1\nX-A: b" },
		"cookie": func(q *Question) { q.Cookie = "a=b\r\nX-A: b; Path=/" },
		"name":   func(q *Question) { *q = *asks("GET", "/", "A: b\r\nX-B", "c") },
		"value":  func(q *Question) { *q = *asks("GET", "/", "A", "b\r\n\r\nc") },
		"target": func(q *Question) { q.Target = "/ HTTP/1.1\r\nHost: x" },
	} {
		q := asks("GET", "/")
		change(q)
		f.Judge(q).isRefused(t, 400, what)
	}
}

// TestNobodyAsksForATunnel: what was said in it would reach the site undecided about.
func TestNobodyAsksForATunnel(t *testing.T) {
	f := judges(t, fakeRooms{"/tickets", newRoom(never)})
	for _, method := range []string{"CONNECT", "PRI", "TRACE", "TRACK"} {
		for _, path := range []string{"/tickets", "/"} {
			f.Judge(asks(method, path)).isRefused(t, 400, method, path)
		}
	}
}

func TestMethodsThatAreNotKnownMayChangeSomething(t *testing.T) {
	f := judges(t, fakeRooms{"/", newRoom(never)})
	for _, method := range []string{"PROPFIND", "get", ""} {
		equal(t, method, f.Judge(asks(method, "/")).is(t, Queued, method).Status, 429)
	}
}

// TestAPageIsNotAnotherVisitor asks twice about one request, with what the first answer
// gave, as front ends do that fetch their page by themselves.
func TestAPageIsNotAnotherVisitor(t *testing.T) {
	visitors := byte(0)
	r := newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		if !known {
			visitors++
			p = node.Pass{Visitor: node.VisitorID{visitors}, Arrival: now}
		}
		return node.Verdict{Pass: p, SetPass: !known, Refresh: time.Second}
	})
	f := judges(t, fakeRooms{"/", r})
	first := f.Judge(asks("GET", "/", "Cookie", "ropeline=stale"))
	q := asks("GET", "/", "Cookie", "ropeline=stale")
	q.Cookie = first.Cookie
	second := f.Judge(q).is(t, Queued)
	equal(t, "visitors", visitors, 1)
	comparePasses(t, "page", &front{tb: t, keys: f.cfg.Keys}, second.Cookie, first.Cookie)

	q.Cookie = "ropeline=made up; Path=/; Domain=example"
	lacks(t, "a made-up cookie", f.Judge(q).Cookie, "Domain")
	equal(t, "visitors, with a made-up cookie", visitors, 2)
}

func TestJudgeFollowsTheRoomWhereItCannotDecide(t *testing.T) {
	notReady := func(c *Config) { c.Ready = func() error { return errors.New("starting") } }
	for what, c := range map[string]struct {
		room   *fakeRoom
		change []func(*Config)
	}{
		"a room that panics": {newRoom(func(node.Pass, bool, time.Time) node.Verdict { panic("broken") }), nil},
		"a node that starts": {newRoom(always), []func(*Config){notReady}},
	} {
		f := judges(t, fakeRooms{"/room", c.room}, c.change...)
		c.room.settings.OnPartition = room.PartitionHold
		a := f.Judge(asks("GET", "/room", "Accept", "text/html")).is(t, Unavailable, what)
		if a.Status != 503 || a.retryAfter() != 2 || a.field("Refresh") < "5" || len(a.Body) == 0 || a.Cookie != "" {
			t.Errorf("%s, hold: got %+v", what, a)
		}
		c.room.settings.OnPartition = room.PartitionOpen
		for _, q := range []*Question{asks("GET", "/room"), asks("GET", "/"), asks("OPTIONS", "/room", asksFirst...)} {
			equal(t, "the cookie", f.Judge(q).is(t, Admitted, what, "open", q.Method, q.Target).Cookie, "")
		}
	}
}

func TestRevokeEndsTheSessionOfTheCookie(t *testing.T) {
	r := newRoom(never)
	f := judges(t, fakeRooms{"/room", r})
	inside := node.Pass{Visitor: node.VisitorID{3}, Room: r.settings.ID, AcceptedAt: time.Now(), LeaseEnd: time.Now().Add(time.Minute)}
	with := func(p node.Pass) *Question {
		return asks("GET", "/room", "Cookie", "a=b; ropeline="+string(f.cfg.Keys.AppendSeal(nil, p, "shop.example")))
	}
	if _, err := f.Revoke(with(inside)); !errors.Is(err, ErrRevokeDisabled) {
		t.Errorf("in a room that does not listen: %v", err)
	}
	r.settings.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	outside := inside
	outside.AcceptedAt = time.Time{}
	nowhere := with(inside)
	nowhere.Target = "/"
	for what, q := range map[string]*Question{
		"no cookie": asks("GET", "/room"), "a visitor who waits": with(outside), "a path without a room": nowhere,
		"a forged cookie": asks("GET", "/room", "Cookie", "ropeline=abc"),
	} {
		if _, err := f.Revoke(q); !errors.Is(err, ErrNoSession) {
			t.Errorf("%s: %v", what, err)
		}
	}
	equal(t, "sessions that have ended", len(r.takeEnded()), 0)
	cookie, err := f.Revoke(with(inside))
	if err != nil || !strings.HasPrefix(cookie, "ropeline=; ") || !strings.Contains(cookie, "Max-Age=0") {
		t.Errorf("got %q, %v", cookie, err)
	}
	if ended := r.takeEnded(); len(ended) != 1 || ended[0].Visitor != inside.Visitor {
		t.Errorf("ended %+v", ended)
	}
}

func TestAFrontWithoutAnOriginOnlyJudges(t *testing.T) {
	has(t, "run", fmt.Sprint(judges(t, fakeRooms{}).Run(t.Context())), "no origin")
}

// FuzzJudge holds that whatever a proxy passes on, nobody is let into a room that lets
// nobody in, and nothing makes us plant a field or a cookie.
func FuzzJudge(f *testing.F) {
	f.Add("GET", "/", "shop.example", "http", "192.0.2.1", "Accept", "text/html", "")
	f.Add("POST", "/a?b=c", "shop.example:8080", "https", "2001:db8::1, 127.0.0.1", "Cookie", "ropeline=x", "ropeline=y; Path=/")
	f.Add("OPTIONS", "*", "", "", "", ":path", "/x", ";")
	f.Add("GET", "http://shop.example/", "shop.example", "ftp", "unknown", "X-Forwarded-Host", "evil.example", "a=b")
	f.Add("GET", "/\r\n", "a\r\nb", "http\n", "\r", "A\n", "b\r\n", "c\r\n;")
	front := judges(f, fakeRooms{"/", newRoom(never)})
	f.Fuzz(func(t *testing.T, method, target, host, scheme, via, name, value, cookie string) {
		q := asks(method, target, name, value)
		q.Host, q.Scheme, q.For, q.Cookie = host, scheme, via, cookie
		a := front.Judge(q)
		if a.Outcome == Admitted || a.Outcome == Unavailable { // one field alone makes no preflight
			t.Errorf("%v", a.Outcome)
		}
		if strings.ContainsAny(a.Cookie, "\r\n") || a.Cookie != "" && !isOurs([]byte(a.Cookie[:strings.IndexByte(a.Cookie, '=')])) {
			t.Errorf("cookie %q", a.Cookie)
		}
		if a.Status >= 500 {
			t.Errorf("status %d", a.Status)
		}
		for _, field := range a.Fields {
			lacks(t, "a field", field.Name+field.Value, "\r", "\n")
		}
	})
}

// again asks once more, for the page.
func (c *crowded) again(address string) Answer {
	q := asks("GET", "/")
	q.For, q.Again = address, true
	return c.front.Judge(q)
}

// A proxy that asks once more, for the page, does not have the request count twice.
func TestAskingAgainDoesNotCount(t *testing.T) {
	many := fiveAMinute(func(r *limit.Rule) { r.ID, r.Name, r.RequestsPerPeriod = limit.ID{2}, "many", 100 })
	c := newCrowdedRoom(t, open(), many, fiveAMinute())
	c.exhaust(greedy, "")
	c.ask(greedy, "").is(t, Limited)
	for range 3 {
		a := c.again(greedy).is(t, Limited)
		has(t, "the fields", a.field("RateLimit"), `"many";r=94;`)
		equal(t, "that there is a page", len(a.Body) > 0, true)
	}
	equal(t, "limited requests", c.front.LimitTallies()[1].Limited, 1)
}

// The page for a request that one rule has refused uses up nothing of another, whose limit
// that request has reached.
func TestAskingAgainLimitsNobody(t *testing.T) {
	hour := fiveAMinute(func(r *limit.Rule) {
		r.ID, r.Name, r.RequestsPerPeriod, r.Period, r.MitigationTimeout = limit.ID{2}, "hour", 6, time.Hour, time.Hour
	})
	c := newCrowdedRoom(t, open(), hour, fiveAMinute(func(r *limit.Rule) { r.MitigationTimeout = 0 }))
	c.exhaust(greedy, "")
	c.ask(greedy, "").is(t, Limited)
	if a := c.again(greedy).is(t, Limited); a.retryAfter() >= 3600 {
		t.Errorf("to come again in %d s; want less than an hour", a.retryAfter())
	}
}

// A rule that counts by responses is told of in the log where they are not seen.
func TestRulesAboutResponsesThatAreNotSeen(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) { r.CountingExpression = "http.response.code eq 401" }))
	equal(t, "requests that pass", c.count(10, Admitted, greedy, ""), 10)
	equal(t, "lines of the log", strings.Count(c.log.text(), "limit=five"), 1)
}

// field returns the value of the first field of that name.
func (a *Answer) field(name string) string {
	for _, f := range a.Fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// retryAfter is in how many seconds the visitor may ask again; 0 if the answer says nothing of it.
func (a *Answer) retryAfter() int {
	n, _ := strconv.Atoi(a.field("Retry-After")) // 0 with an error
	return n
}
