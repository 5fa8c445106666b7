package httpfront

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// ruled is a room in which all wait whom no rule lets pass.
func ruled(expressions ...string) *fakeRoom {
	r := newRoom(never)
	for i, e := range expressions {
		r.settings.Front.Rules = append(r.settings.Front.Rules, room.Rule{Expression: e, Description: fmt.Sprintf("rule %d", i), Action: room.Bypass})
	}
	return r
}

// TestRulesSeeTheRequest has one rule after another ask about one request, which
// differs from it in just that.
func TestRulesSeeTheRequest(t *testing.T) {
	for _, tt := range []struct {
		rule, method, path string
		header             []string
		want               bool
	}{
		{`http.request.method eq "POST"`, "POST", "/", nil, true},
		{`http.request.method eq "POST"`, "GET", "/", nil, false},
		{`http.request.version eq "HTTP/1.1"`, "GET", "/", nil, true},
		{`http.host eq "shop.example"`, "GET", "/", []string{"Host", "SHOP.example.:8080"}, true},
		{`starts_with(http.request.uri.path, "/static/")`, "GET", "/static/a.css", nil, true},
		{`starts_with(http.request.uri.path, "/static/")`, "GET", "/%73tatic//a.css", nil, true},
		{`starts_with(http.request.uri.path, "/static/")`, "GET", "/static%2Fa.css", nil, false}, // to some origins one segment
		{`starts_with(http.request.uri.path, "/static")`, "GET", "/static%2Fa.css", nil, true},
		{`not starts_with(http.request.uri.path, "/buy/")`, "GET", "/buy%2fa", nil, false},
		{`http.request.uri.path eq "/health"`, "GET", "/health;x", nil, false},
		{`http.request.uri.path.extension eq "css"`, "GET", "/buy;a.css", nil, false}, // to some sites /buy
		{`http.request.uri.path.extension eq "css"`, "GET", "/shoes;size=42/a.css", nil, true},
		{`not http.request.uri.path contains ";"`, "GET", "/shoes;size=42/a.css", nil, false},
		{`http.request.uri.query eq "a=b?c"`, "GET", "/?a=b?c", nil, true},
		{`http.request.uri.query eq ""`, "GET", "/", nil, true},
		{`any(http.request.headers["x-app"][*] eq "3")`, "GET", "/", []string{"X-App", "2", "X-APP", "3"}, true},
		{`any(http.request.headers["x-app"][*] eq "3")`, "GET", "/", []string{"X-App", "2"}, false},
		{`http.request.cookies["staff"][0] eq "yes"`, "GET", "/", []string{"Cookie", "a=b; staff=yes"}, true},
		{`http.user_agent contains "Monitor"`, "GET", "/", []string{"User-Agent", "Monitor/1"}, true},
		{`ssl`, "GET", "/", nil, false},
		{`ssl`, "GET", "/", []string{"X-Forwarded-Proto", "https"}, true},
		{`ip.src eq 127.0.0.1`, "GET", "/", nil, true},
		{`ip.src eq 192.0.2.7`, "GET", "/", []string{"X-Forwarded-For", "198.51.100.1, 192.0.2.7"}, true},
		{`ip.src in $office`, "GET", "/", []string{"X-Forwarded-For", "192.0.2.7"}, true},
		{`ip.src in $office`, "GET", "/", []string{"X-Forwarded-For", "192.0.3.7"}, false},
		{`ip.src.country eq "DE"`, "GET", "/", []string{"X-Country", "de"}, true},
		{`ip.src.country in {"AT" "CH"}`, "GET", "/", []string{"X-Country", "DE", "x-country", "CH"}, true},
		{`ip.src.country in {"XX" "D" "DEU" ""}`, "GET", "/", []string{"X-Country", "xx"}, false},
		{`ip.src.country in {"XX" "D" "DEU" ""}`, "GET", "/", []string{"X-Country", "DEU"}, false},
		{`ip.src.country in {"XX" "D" "DEU" ""}`, "GET", "/", nil, false},
	} {
		r := ruled(tt.rule)
		office := must(expr.AddressList([]string{"192.0.2.0/24"}))
		f := configured(t, r, func(c *Config) {
			c.TrustedProxies, c.CountryHeader, c.Lists = loopback, "X-Country", expr.Lists{"office": office}
		})
		got := f.do(tt.method, tt.path, nil, tt.header...)
		if passed := got.Header.Get(stateField) == ""; passed != tt.want || (r.bypassed.Load() == 1) != tt.want {
			t.Errorf("%+v: passed %v, counted %d", tt, passed, r.bypassed.Load())
		}
		f.stop()
	}
}

// TestNobodyChoosesTheirOwnCountry: what a visitor says of it counts for nothing.
func TestNobodyChoosesTheirOwnCountry(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no trusted proxies": func(c *Config) { c.CountryHeader = "X-Country" },
		"other proxies":      func(c *Config) { c.CountryHeader, c.TrustedProxies = "X-Country", prefixes("192.0.2.0/24") },
		"no header":          trustLoopback,
	} {
		got := configured(t, ruled(`ip.src.country eq "DE"`), change).get("/", "X-Country", "DE")
		equal(t, name, got.Header.Get(stateField), stateWaiting)
	}
}

// TestNobodyWhoAsksChoosesACountry: who asks for a verdict hands on what the visitor
// sends, so the country is believed where the operator says that it is replaced.
func TestNobodyWhoAsksChoosesACountry(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		sends  string
		want   Outcome
	}{
		"of requests that are proxied": {func(c *Config) { c.CountryHeader = "CF-IPCountry" }, "CF-IPCountry", Queued},
		"of others":                    {func(c *Config) { c.VerdictCountryHeader = "X-Country" }, "CF-IPCountry", Queued},
		"of questions":                 {func(c *Config) { c.VerdictCountryHeader = "CF-IPCountry" }, "cf-ipcountry", Admitted},
		"of both":                      {func(c *Config) { c.CountryHeader, c.VerdictCountryHeader = "X-Country", "CF-IPCountry" }, "X-Country", Queued},
	} {
		r := ruled(`ip.src.country eq "CH"`)
		f := judges(t, fakeRooms{"/", r}, c.change)
		configure(t, f, r.settings)
		q := asks("GET", "/", c.sends, "CH")
		f.Judge(q).is(t, c.want, name)
		q.Peer = netip.MustParseAddr("203.0.113.9")
		f.Judge(q).is(t, Queued, name, "of whom nobody trusts")
	}
}

// TestABypassLeavesNoTrace: the room is not asked, the visitor gets no pass and keeps
// the one there is, and the answer obeys nobody.
func TestABypassLeavesNoTrace(t *testing.T) {
	r := ruled(`http.request.uri.path eq "/free"`)
	asked := 0
	r.decide = func(p node.Pass, known bool, now time.Time) node.Verdict {
		asked++
		return letIn(p, known, now)
	}
	f := configured(t, r)
	cookie := strings.SplitN(f.get("/").Header.Get("Set-Cookie"), ";", 2)[0]
	asked = 0
	for _, header := range [][]string{nil, {"Cookie", cookie}, {"Cookie", "ropeline=broken"}} {
		got := f.get("/free", header...).is(t, 200, "\r\n\r\nGET /free ")
		lacks(t, "an answer that obeys nobody", got.text(), "Set-Cookie")
	}
	equal(t, "how often the room was asked", asked, 0)
	f.get("/", "Cookie", cookie)
	equal(t, "how often, of what no rule is about", asked, 1)
	equal(t, "how many bypassed it", r.bypassed.Load(), 3)
}

func TestRulesAreTriedInTurn(t *testing.T) {
	var log lockedLog
	r := ruled(`http.request.uri.path eq "/a"`, `true`, `http.request.uri.path eq "/b"`, `starts_with(http.request.uri.path, "/b")`)
	r.settings.Front.Rules[1].Disabled = true
	f := configured(t, r, func(c *Config) { c.Logger = log.logger() })
	for path, want := range map[string]string{
		"/a": "room=shop rule=0 description=\"rule 0\"", "/b": "room=shop rule=2 description=\"rule 2\"", "/bc": "room=shop rule=3 description=\"rule 3\"",
	} {
		f.get(path)
		has(t, "the log", log.text(), "level=DEBUG msg=\"a request bypasses its room\" "+want)
	}
	equal(t, "with a rule that is disabled", f.get("/c").Header.Get(stateField), stateWaiting)
}

// TestOtherProxiesAreToldOfRules: a question is answered by the rules too, also one
// that comes a second time.
func TestOtherProxiesAreToldOfRules(t *testing.T) {
	r := ruled(`http.request.uri.path eq "/free" and http.request.headers["x-app"][0] eq "3"`)
	f := judges(t, fakeRooms{"/", r})
	configure(t, f, r.settings)
	q := asks("GET", "/free?a", "X-App", "3")
	for _, q.Cookie = range []string{"", "ropeline=x; Path=/"} {
		equal(t, "the cookie", f.Judge(q).is(t, Admitted).Cookie, "")
	}
	f.Judge(asks("GET", "/free", "X-App", "2")).is(t, Queued)
	equal(t, "how many bypassed the room", r.bypassed.Load(), 2)
}

// TestStepsOfAllRules: a request is held against each rule of its room, so that they have a bound together.
func TestStepsOfAllRules(t *testing.T) {
	check := func(n int) error {
		var s room.Settings
		for range n {
			s.Front.Rules = append(s.Front.Rules, room.Rule{Expression: `http.request.uri.path matches ".{1,400}x"`})
		}
		return CheckRoom(&s, nil)
	}
	noError(t, check(2))

	has(t, "three rules", fmt.Sprint(check(3)), "2000 are allowed", "rules[2]")
}
