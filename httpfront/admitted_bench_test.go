package httpfront

import (
	"net/netip"
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
	tb    testing.TB
	front *Front
	core  *node.Core
	now   time.Time
	req   *request
	peer  netip.Addr
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
	o := &onSite{tb: tb, now: time.Now(), peer: netip.MustParseAddr("192.0.2.1")}
	o.core = newCore(tb, node.CoreConfig{Rooms: rooms, Found: true, Limits: limits})
	o.core.SetPeers(nil, o.now)
	office, err := expr.AddressList([]string{"198.51.100.0/24", "2001:db8:7::/48"})
	if err != nil {
		tb.Fatal(err)
	}
	o.front = judges(tb, &oneNode{core: o.core}, func(c *Config) {
		c.Lists, c.Clock = expr.Lists{"office": office}, func() time.Time { return o.now }
	})
	configure(tb, o.front, s)
	if err := o.front.FollowLimits(limits, metersOf(o.core)); err != nil {
		tb.Fatal(err)
	}
	o.comeIn(&s)
	return o
}

// tick gives the node as much time as it has between two looks at its counts, and a
// disk that takes everything.
func (o *onSite) tick() {
	o.now = o.now.Add(250 * time.Millisecond)
	o.core.Tick(o.now)
	o.core.Writes()
	o.core.Written(nil, o.now)
}

// comeIn lets the visitor in, and makes the request.
func (o *onSite) comeIn(s *room.Settings) {
	o.tb.Helper()
	for range 20 {
		o.tick()
	}
	r := o.core.Route("shop.example", "/shop/item")
	if r == nil {
		o.tb.Fatal("the request has no room")
	}
	later := make(chan node.Verdict, 1)
	v, ok := r.Begin(node.Pass{}, false, o.now, func(v node.Verdict) { later <- v })
	for i := 0; !ok; i++ {
		o.core.Flush(o.now)
		o.tick()
		select {
		case v = <-later:
			ok = true
		default:
			if i > 100 {
				o.tb.Fatal("the node does not decide")
			}
		}
	}
	if !v.Admit {
		o.tb.Fatalf("the visitor is not let in: %+v", v)
	}
	v.Pass.Room = s.ID
	o.req = newRequest()
	no := o.req.Parse(http1.RawHead{
		Method: []byte("GET"), Target: []byte("/shop/item?id=7"), Protocol: []byte("HTTP/1.1"),
		Fields: []byte("Host: shop.example\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: text/html,*/*;q=0.8\r\n" +
			"Accept-Language: en\r\nCookie: theme=dark; ropeline=" + string(o.front.cfg.Keys.AppendSeal(nil, v.Pass, "shop.example")) +
			"; basket=7\r\nConnection: keep-alive\r\n\r\n"),
	})
	if no.Code != 0 {
		o.tb.Fatal(no)
	}
	for range 3 { // the notes of who came in are collected
		o.tick()
		o.ask()
	}
}

// ask does all that is done with a request between its parser and the origin: who asks,
// which site and room, the rules, the pass, the decision, and its note in the counts.
func (o *onSite) ask() {
	a := admitted{req: o.req}
	o.req.limits = o.req.limits[:0]
	a.site = o.front.sites.find(o.req.Host, o.req.Path.Route)
	if _, err := o.front.unavailable(o.req); err != nil {
		o.tb.Fatal(err)
	}
	o.req.via.Locate(&o.req.Request, o.peer, true, &o.front.trust)
	o.req.via.Secure = false // the name of the cookie is that of plain HTTP
	var w waiting
	if r := o.front.roomOf(o.req); r == nil || !o.front.judge(r, &a, &w) || a.room == nil || a.cookie != nil {
		o.tb.Fatalf("let in by room %v with the cookie %q", a.room, a.cookie)
	}
}

// BenchmarkJudge measures what an admitted request costs in the node beyond parsing and
// proxying. The work of the node every quarter of a second, which it costs whether or
// not anybody comes, is not in the figure.
func BenchmarkJudge(b *testing.B) {
	for _, policy := range []room.Policy{room.Escrow, room.Even} {
		b.Run(string(policy), func(b *testing.B) {
			o := newOnSite(b, policy)
			b.ReportAllocs()
			for b.Loop() {
				o.ask()
			}
		})
	}
	b.Run("limits", func(b *testing.B) {
		o := newOnSite(b, room.Escrow, manyRequests()...)
		b.ReportAllocs()
		for b.Loop() {
			o.ask()
		}
	})
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
