package httpfront

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/gate/expr"
	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// onSite is a front with a real node behind it, with five rooms and rules that do
// not match, and a request of a visitor who is on the site.
type onSite struct {
	*crowded
	req  *request
	peer netip.Addr
}

// ruleTexts are those of a site that lets some requests pass its room.
var ruleTexts = []string{
	`starts_with(http.request.uri.path, "/static/") or http.request.uri.path matches "\.(css|js|png|svg|woff2)$"`,
	`ip.src in $office and not http.request.method in {"POST" "PUT"}`,
	`http.user_agent contains "Monitor/" and http.request.uri.query eq ""`,
	`any(http.request.headers["x-app-version"][*] eq "3") or http.request.cookies["staff"][0] eq "yes"`,
}

func newOnSite(tb testing.TB, policy room.Policy, limits ...limit.Rule) *onSite {
	tb.Helper()
	s := room.Settings{
		ID: crdt.RoomID{1}, Name: "shop", Host: "shop.example", Path: "/shop", TotalActiveUsers: 1000, NewUsersPerMinute: 1000,
		Policy: policy, SessionDuration: 24 * time.Hour,
	}.WithDefaults()
	s.Front.Sharing = room.Sharing{Action: room.SharedLog, Addresses: 4}
	for _, text := range ruleTexts {
		s.Front.Rules = append(s.Front.Rules, room.Rule{Expression: text, Action: room.Bypass})
	}
	rooms := []room.Settings{s}
	for i, path := range []string{"/shop/tickets", "/shop/basket", "/account", "/"} {
		rooms = append(rooms, room.Settings{
			ID: crdt.RoomID{byte(i + 2)}, Name: path, Path: path, Policy: room.Even,
			TotalActiveUsers: 1, NewUsersPerMinute: 1, CookieSuffix: string(rune('a' + i)),
		}.WithDefaults())
	}
	office := must(expr.AddressList([]string{"198.51.100.0/24", "2001:db8:7::/48"}))
	o := &onSite{peer: netip.MustParseAddr("192.0.2.1"), crowded: newCrowdedRooms(tb, node.CoreConfig{Rooms: rooms, Found: true, Limits: limits}, func(c *Config) {
		c.Lists = expr.Lists{"office": office}
	})}
	in := o.await(func() Answer { return o.front.Judge(asks("GET", "/shop/item")) }).is(tb, Admitted)
	cookie, _, _ := strings.Cut(in.Cookie, ";")
	o.req = parsed(tb, "Host: shop.example\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: text/html,*/*;q=0.8\r\n"+
		"Accept-Language: en\r\nCookie: theme=dark; "+cookie+"; basket=7\r\nConnection: keep-alive\r\n\r\n")
	for range 3 { // the notes of who came in are collected
		o.pass(250 * time.Millisecond)
		o.comeAgain()
	}
	return o
}

// parsed is a request for an item of the shop, with those fields.
func parsed(tb testing.TB, fields string) *request {
	tb.Helper()
	r := newRequest()
	no := r.Parse(http1.RawHead{
		Method: []byte("GET"), Target: []byte("/shop/item?id=7"), Protocol: []byte("HTTP/1.1"), Fields: []byte(fields),
	})
	if no.Code != 0 {
		tb.Fatal(no)
	}
	return r
}

// comeAgain does all that is done with a request between its parser and the origin: who asks,
// which site and room, the rules, the pass, the decision, and its note in the counts.
func (o *onSite) comeAgain() {
	a := admitted{req: o.req}
	o.req.limits = o.req.limits[:0]
	a.site = o.front.sites.find(o.req.Host, o.req.Path.Route)
	if _, err := o.front.unavailable(o.req); err != nil {
		o.t.Fatal(err)
	}
	o.req.via.Locate(&o.req.Request, o.peer, true, &o.front.trust)
	o.req.via.Secure = false // the name of the cookie is that of plain HTTP
	var w waiting
	if r := o.front.roomOf(o.req); r == nil || !o.front.judge(r, &a, &w) || a.room == nil || a.cookie != nil {
		o.t.Fatalf("let in by room %v with the cookie %q", a.room, a.cookie)
	}
}

// BenchmarkJudge measures what an admitted request costs in the node beyond parsing and
// proxying. The work of the node every quarter of a second, which it costs whether or
// not anybody comes, is not in the figure.
func BenchmarkJudge(b *testing.B) {
	for _, c := range []struct {
		name   string
		policy room.Policy
		limits []limit.Rule
	}{{"escrow", room.Escrow, nil}, {"even", room.Even, nil}, {"limits", room.Escrow, manyRequests()}} {
		b.Run(c.name, func(b *testing.B) {
			o := newOnSite(b, c.policy, c.limits...)
			b.ReportAllocs()
			for b.Loop() {
				o.comeAgain()
			}
		})
	}
}

// manyRequests is rules that count each request, and limit none.
func manyRequests() []limit.Rule {
	return []limit.Rule{
		fiveAMinute(func(r *limit.Rule) { r.RequestsPerPeriod = limit.MaxRequests }),
		fiveAMinute(func(r *limit.Rule) {
			r.ID, r.Name, r.RequestsPerPeriod = limit.ID{2}, "by-visitor", limit.MaxRequests
			r.Expression, r.Characteristics = `starts_with(http.request.uri.path, "/shop/")`, []string{limit.VisitorID, "http.host"}
		}),
	}
}

// attackRate is how often one source comes in BenchmarkAttack, in a second.
const attackRate = 400_000

// BenchmarkAttack measures how long it takes to decide about a visitor who is on the site,
// while nobody else comes and while one source comes 400,000 times a second, beyond a rate
// limit. Rounds of both alternate. It reports the 99th percentile of each, and how far the
// attack got: with less than two cores it does not get as far.
func BenchmarkAttack(b *testing.B) {
	rule := fiveAMinute(func(r *limit.Rule) { r.Expression, r.RequestsPerPeriod = `http.user_agent eq "attack"`, 1000 })
	o := newOnSite(b, room.Escrow, rule, manyRequests()[1])
	hit := o.attacker()
	attacks := 0
	var calm, attacked []time.Duration
	var under time.Duration
	for b.Loop() {
		calm = append(calm, o.visits()...)
		stop, done := make(chan struct{}), make(chan int)
		from := time.Now()
		go func() {
			n := 0
			for begun := time.Now(); ; {
				select {
				case <-stop:
					done <- n
					return
				default:
				}
				for due := int(time.Since(begun).Seconds() * attackRate); n < due; n++ {
					hit()
				}
			}
		}()
		attacked = append(attacked, o.visits()...)
		close(stop)
		attacks += <-done
		under += time.Since(from)
	}
	b.ReportMetric(p99(calm), "calm-p99-ns")
	b.ReportMetric(p99(attacked), "attacked-p99-ns")
	b.ReportMetric(p99(attacked)/p99(calm), "ratio")
	b.ReportMetric(float64(attacks)/under.Seconds(), "attacks/s")
}

// visits asks for the visitor 5,000 times, every tenth of a millisecond, and returns how
// long each took.
func (o *onSite) visits() []time.Duration {
	all, next := make([]time.Duration, 0, 5000), time.Now()
	for range cap(all) {
		next = next.Add(100 * time.Microsecond)
		for time.Now().Before(next) {
		}
		from := time.Now()
		o.comeAgain()
		all = append(all, time.Since(from))
	}
	return all
}

// attacker returns what decides about a request of a source that comes too often.
func (o *onSite) attacker() func() {
	bad := *o
	bad.req, bad.peer = parsed(o.t, "Host: shop.example\r\nUser-Agent: attack\r\n\r\n"), o.peer.Next()
	bad.req.via.Locate(&bad.req.Request, bad.peer, true, &bad.front.trust)
	bad.front.describe(bad.req)
	for l := bad.front.limitRules()[0]; !l.ask(bad.req, node.VisitorID{}, o.now).verdict.Limited; {
	}
	return func() {
		a := admitted{req: bad.req}
		bad.req.limits = bad.req.limits[:0]
		bad.req.via.Locate(&bad.req.Request, bad.peer, true, &bad.front.trust)
		var w waiting
		bad.front.judge(bad.front.roomOf(bad.req), &a, &w)
	}
}

func p99(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)*99/100])
}
