package httpfront

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// The tests below have a real node decide, alone and in memory.

// oneNode is a node.Core with its time.
type oneNode struct {
	mu    sync.Mutex // Core takes one call at a time, but for requests
	core  *node.Core
	ahead atomic.Int64 // of the machine's clock, in ns
}

// clock is that of the node and of the front before it.
func (n *oneNode) clock() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) }

func (n *oneNode) tick() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.core.Tick(n.clock())
}

// pass lets time pass, in steps as long as the node is used to.
func (n *oneNode) pass(d time.Duration) {
	for d > 0 {
		step := min(d, 250*time.Millisecond)
		n.ahead.Add(int64(step))
		n.tick()
		d -= step
	}
}

func (n *oneNode) Route(host, path string) Room {
	if r := n.core.Route(host, path); r != nil {
		return r
	}
	return nil
}

func (n *oneNode) configure(t *testing.T, s room.Settings) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.core.Configure(s, n.clock()); err != nil {
		t.Fatal(err)
	}
}

// smallRoom holds one visitor.
func smallRoom() room.Settings {
	return room.Settings{
		ID: crdt.RoomID{1}, Name: "shop", TotalActiveUsers: 1, NewUsersPerMinute: 100,
		Policy: room.Even, SessionDuration: time.Minute, RefreshInterval: time.Second, BucketSpan: time.Second,
	}.WithDefaults()
}

// newCore returns a node that is alone and in memory.
func newCore(tb testing.TB, cfg node.CoreConfig) *node.Core {
	tb.Helper()
	cfg.Self, cfg.Site = crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 1}, "a"
	cfg.OwnerKey, cfg.Rand = []byte("an owner key"), rand.New(rand.NewPCG(1, 2))
	cfg.LimitMemory = 1 << 20
	core, err := node.NewCore(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return core
}

// serveNode starts a front in front of shop, with the rooms of a node.
func serveNode(t *testing.T, s room.Settings) (*oneNode, *front) {
	t.Helper()
	core := newCore(t, node.CoreConfig{Rooms: []room.Settings{s}})
	n := &oneNode{core: core}
	core.SetPeers(nil, n.clock())
	run(t, func(ctx context.Context) error {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
				n.tick()
			}
		}
	})
	waitFor(t, "the node", core.Ready)
	return n, serve(t, n, http.HandlerFunc(shop), func(c *Config) { c.Clock = n.clock })
}

// shop is an origin that ends the session of whom it thanks, and says back what is said in
// a tunnel.
func shop(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(c, rw)
		return
	}
	if r.URL.Path == "/paid" {
		w.Header().Set("Cf-Waiting-Room-Command", "revoke")
	}
	io.WriteString(w, "shop")
}

// guest is a visitor who keeps cookies.
type guest struct {
	t      *testing.T
	f      *front
	cookie string
}

// ask requests path, and reports whether the shop answered.
func (g *guest) ask(path string) (reply, bool) {
	g.t.Helper()
	got := g.f.get(path, "Accept", "application/json", "Cookie", g.cookie)
	for _, k := range got.Cookies() {
		if g.cookie = k.Name + "=" + k.Value; k.MaxAge < 0 {
			g.cookie = ""
		}
	}
	return got, got.body == "shop"
}

// pass is what the visitor carries.
func (g *guest) pass() node.Pass {
	g.t.Helper()
	p, err := g.f.keys.Open([]byte(strings.TrimPrefix(g.cookie, "ropeline=")), crdt.RoomID{1}, "127.0.0.1")
	if err != nil {
		g.t.Fatalf("cookie %q: %v", g.cookie, err)
	}
	return p
}

// comeIn asks until the shop answers.
func (g *guest) comeIn() {
	g.t.Helper()
	waitFor(g.t, "the shop", func() bool {
		_, in := g.ask("/")
		return in
	})
}

func TestAnEndedSessionIsOverAndItsPlaceFree(t *testing.T) {
	s := smallRoom()
	s.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	_, f := serveNode(t, s)
	first, second := guest{t: t, f: f}, guest{t: t, f: f}
	first.comeIn()
	if _, in := second.ask("/"); in {
		t.Fatal("two visitors in a room for one")
	}
	old := first
	if _, in := first.ask("/paid"); !in || first.cookie != "" {
		t.Fatalf("the answer came from the shop: %v; the visitor is left with %q", in, first.cookie)
	}
	session := old.pass()
	old.ask("/")
	if got := old.pass(); got.Visitor == session.Visitor && got.Accepted() {
		t.Errorf("the ended pass goes on: %+v", got)
	}
	second.comeIn()
}

// TestATunnelOfAnEndedSessionTakesNoPlace has the site end a session whose visitor goes on
// to talk in a tunnel: that ends, and the place is free, also from the look at who it was.
func TestATunnelOfAnEndedSessionTakesNoPlace(t *testing.T) {
	s := smallRoom()
	s.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	n, f := serveNode(t, s)
	first, second := guest{t: t, f: f}, guest{t: t, f: f}
	first.comeIn()
	c := f.dial()
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nCookie: %s\r\n\r\n", first.cookie)
	if resp := c.response("GET"); resp.StatusCode != 101 {
		t.Fatalf("got %d", resp.StatusCode)
	}
	c.talk(t, "x")
	if _, in := first.ask("/paid"); !in {
		t.Fatal("the shop did not answer")
	}
	n.pass(s.SessionDuration / activePart)
	waitFor(t, "the end of the tunnel", func() bool {
		io.WriteString(c, "x")
		_, err := c.br.ReadByte()
		return err != nil
	})
	second.comeIn()
}

func TestSessionsEndInTimeWithoutRenewal(t *testing.T) {
	for _, disabled := range []bool{false, true} {
		s := smallRoom()
		s.DisableSessionRenewal = disabled
		n, f := serveNode(t, s)
		g := guest{t: t, f: f}
		g.comeIn()
		was := g.pass()
		renewed := false
		for n.clock().Before(was.LeaseEnd.Add(-4 * time.Second)) {
			got, in := g.ask("/")
			if !in {
				t.Fatalf("renewal off %v: out before the end of the session", disabled)
			}
			renewed = renewed || len(got.Cookies()) > 0
			n.pass(2 * time.Second)
		}
		if renewed == disabled {
			t.Errorf("renewal off %v: got a new cookie: %v", disabled, renewed)
		}
		n.pass(was.LeaseEnd.Sub(n.clock()) + 50*time.Millisecond)
		g.ask("/")
		if isNew := g.pass().Visitor != was.Visitor || g.pass().AcceptedAt != was.AcceptedAt; isNew != disabled {
			t.Errorf("renewal off %v: after the end of the first lease the visitor is new: %v", disabled, isNew)
		}
	}
}

func TestASwitchOfMethodsReachesWhoWaits(t *testing.T) {
	s := smallRoom()
	n, f := serveNode(t, s)
	inside, outside := guest{t: t, f: f}, guest{t: t, f: f}
	inside.comeIn()
	if got, in := outside.ask("/"); in || !strings.Contains(got.body, `"isFIFOQueue":true`) || !strings.Contains(got.body, `"position":1`) {
		t.Fatalf("got %s", got.body)
	}
	arrival := outside.pass().Arrival

	s.QueueingMethod = room.Reject
	n.configure(t, s)
	stranger := guest{t: t, f: f}
	got, _ := stranger.ask("/")
	if !strings.Contains(got.body, `"isRejectQueue":true`) || !strings.Contains(got.body, `"refreshIntervalSeconds":0`) ||
		stranger.cookie != "" || got.Header.Get("Refresh") != "" {
		t.Errorf("a new visitor is told %v %s", got.Header, got.body)
	}
	if _, in := inside.ask("/"); !in {
		t.Error("who is on the site is turned away")
	}
	outside.ask("/")

	s.QueueingMethod = room.Random
	n.configure(t, s)
	n.pass(1100 * time.Millisecond)
	if got, in := outside.ask("/"); in || !strings.Contains(got.body, `"isRandomQueue":true`) {
		t.Errorf("got %s", got.body)
	}
	s.QueueAll, s.QueueingMethod = true, room.FIFO
	n.configure(t, s)
	if got, _ := outside.ask("/"); !strings.Contains(got.body, `"queueAll":true`) || !strings.Contains(got.body, `"waitTimeFormatted":"unavailable"`) {
		t.Errorf("got %s", got.body)
	}
	if now := outside.pass().Arrival; !now.Equal(arrival) {
		t.Errorf("the visitor who came at %v now came at %v", arrival, now)
	}

	s.QueueAll, s.Suspended = false, true
	n.configure(t, s)
	if got, in := stranger.ask("/"); !in || len(got.Cookies()) != 0 {
		t.Errorf("while suspended: got %v %q", got.Header, got.body)
	}
}

func TestAPrequeueWaitsForTheStart(t *testing.T) {
	s := smallRoom()
	s.QueueingMethod, s.TotalActiveUsers = room.Passthrough, 100
	fifo := room.FIFO
	start := time.Now().Add(59 * time.Second)
	s.Events = []room.Event{{
		Name: "sale", PrequeueStart: start.Add(-6 * time.Minute), Start: start, End: start.Add(time.Hour),
		Shuffle: true, QueueingMethod: &fifo,
	}}
	n, f := serveNode(t, s)
	g := guest{t: t, f: f}
	got, in := g.ask("/")
	for _, want := range []string{
		`"isEventPrequeueing":true`, `"isEventActive":true`, `"timeUntilEventStart":1,`, `"timeUntilEventStartFormatted":"1 minute"`,
		`"shuffleAtEventStart":true`, `"waitsForEvent":true`, `"position":0,`, `"waitTimeKnown":false`,
	} {
		if in || !strings.Contains(got.body, want) {
			t.Errorf("before the start: let in %v, %s, want %s", in, got.body, want)
		}
	}
	n.pass(start.Sub(n.clock()) - 5*time.Second)
	if _, in := g.ask("/"); in {
		t.Error("let in before the start")
	}
	waitFor(t, "the shop", func() bool {
		_, in := g.ask("/")
		if in && n.clock().Before(start) {
			t.Error("let in before the start")
		}
		n.pass(100 * time.Millisecond)
		return in
	})
}

// TestAPrequeueOfARoomThatRejects gives a place, so its page asks again, which is what
// keeps it.
func TestAPrequeueOfARoomThatRejects(t *testing.T) {
	s := smallRoom()
	s.QueueingMethod = room.Reject
	fifo := room.FIFO
	start := time.Now().Add(3 * time.Minute)
	s.Events = []room.Event{{
		Name: "night", PrequeueStart: start.Add(-6 * time.Minute), Start: start, End: start.Add(time.Hour), QueueingMethod: &fifo,
	}}
	_, f := serveNode(t, s)
	g := guest{t: t, f: f}
	got, in := g.ask("/")
	if in || g.cookie == "" || got.Header.Get("Refresh") != "1" || got.Header.Get("Retry-After") != "1" {
		t.Errorf("let in %v, %v, want a pass and when to ask again", in, got.Header)
	}
	for _, want := range []string{
		`"isRejectQueue":true`, `"waitsForEvent":true`, `"position":1,`, `"refreshIntervalSeconds":1,`, `"title":"It has not started yet"`,
	} {
		if !strings.Contains(got.body, want) {
			t.Errorf("got %s, want %s", got.body, want)
		}
	}
}
