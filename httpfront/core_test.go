package httpfront

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
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

// smallRoom holds one visitor.
func smallRoom() room.Settings {
	return room.Settings{
		ID: crdt.RoomID{1}, Name: "shop", TotalActiveUsers: 1, NewUsersPerMinute: 100,
		Policy: room.Even, SessionDuration: time.Minute, RefreshInterval: time.Second, BucketSpan: time.Second,
	}.WithDefaults()
}

// newCore returns a node that is alone and in memory.
func newCore(cfg node.CoreConfig) *node.Core {
	cfg.Self, cfg.Site = crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 1}, "a"
	cfg.OwnerKey, cfg.Rand = []byte("an owner key"), rand.New(rand.NewPCG(1, 2))
	cfg.LimitMemory = 1 << 20
	return must(node.NewCore(cfg))
}

// serveNode starts a front in front of shop, with the rooms of a node, for guests.
func serveNode(t *testing.T, s room.Settings) (*oneNode, func() *guest) {
	t.Helper()
	core := newCore(node.CoreConfig{Rooms: []room.Settings{s}})
	n := &oneNode{core: core}
	core.SetPeers(nil, n.clock())
	run(t, func(ctx context.Context) error {
		for ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
			n.tick()
		}
		return nil
	})
	waitFor(t, "the node", core.Ready)
	f := serve(t, n, http.HandlerFunc(shop), func(c *Config) { c.Clock = n.clock })
	return n, func() *guest { return &guest{t: t, f: f} }
}

// shop is an origin that ends the session of whoever is at /paid, and says back what is said
// in a tunnel.
func shop(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/paid" {
		w.Header().Set("Cf-Waiting-Room-Command", "revoke")
	}
	if r.Header.Get("Upgrade") == "" {
		io.WriteString(w, "shop")
		return
	}
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer c.Close()
	io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
	w.Header().Write(c)
	io.WriteString(c, "\r\n")
	io.Copy(c, rw)
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
func (g *guest) comeIn() *guest {
	g.t.Helper()
	waitFor(g.t, "the shop", func() bool {
		_, in := g.ask("/")
		return in
	})
	return g
}

// revocableRoom holds one visitor, whose session the site may end.
func revocableRoom() room.Settings {
	s := smallRoom()
	s.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	return s
}

func TestAnEndedSessionIsOverAndItsPlaceFree(t *testing.T) {
	_, newGuest := serveNode(t, revocableRoom())
	first, second := newGuest().comeIn(), newGuest()
	_, in := second.ask("/")
	equal(t, "two visitors in a room for one", in, false)
	old := *first
	_, in = first.ask("/paid")
	equal(t, "the shop answers, and what the visitor is left with", fmt.Sprint(in, first.cookie), "true")
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
	n, newGuest := serveNode(t, revocableRoom())
	first := newGuest().comeIn()
	c := first.f.dial()
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nCookie: %s\r\n\r\n", first.cookie)
	equal(t, "an upgrade", c.response("GET").StatusCode, 101)
	c.talk(t, "x")
	_, in := first.ask("/paid")
	equal(t, "the shop answers", in, true)
	n.pass(smallRoom().SessionDuration / activePart)
	waitFor(t, "the end of the tunnel", func() bool {
		io.WriteString(c, "x")
		_, err := c.br.ReadByte()
		return err != nil
	})
	newGuest().comeIn()
}

// told is what somebody who waits is told in JSON, with the pass of an earlier answer if cookie is
// not empty; it fails the test unless that has each of the parts.
func (c *crowded) told(what, cookie string, parts ...string) Answer {
	c.t.Helper()
	name, _, _ := strings.Cut(cookie, ";")
	a := c.await(func() Answer { return c.front.Judge(asks("GET", "/", "Accept", "application/json", "Cookie", name)) }).is(c.t, Queued, what)
	has(c.t, what, string(a.Body), parts...)
	return a
}

func TestASwitchOfMethodsReachesWhoWaits(t *testing.T) {
	s := smallRoom()
	c := newCrowdedRoom(t, s)
	inside := c.ask("192.0.2.1", "").is(t, Admitted).Cookie
	c.pass(time.Second)
	first := c.told("at first", "", `"isFIFOQueue":true`, `"position":1`)
	arrival := regexp.MustCompile(`"arrival":"[^"]+"`).FindString(string(first.Body))

	s.QueueingMethod = room.Reject
	c.configure(s)
	got := c.told("a new visitor", "", `"isRejectQueue":true`, `"refreshIntervalSeconds":0`)
	equal(t, "what keeps a new visitor", got.Cookie+got.field("Refresh"), "")
	c.ask("192.0.2.1", inside).is(t, Admitted, "who is on the site")
	got = c.told("who waits", first.Cookie)

	s.QueueingMethod = room.Random
	c.configure(s)
	c.pass(1250 * time.Millisecond)
	got = c.told("then", cmp.Or(got.Cookie, first.Cookie), `"isRandomQueue":true`, arrival)
	s.QueueAll, s.QueueingMethod = true, room.FIFO
	c.configure(s)
	c.told("at last", cmp.Or(got.Cookie, first.Cookie), `"queueAll":true`, `"waitTimeFormatted":"unavailable"`, arrival)

	s.QueueAll, s.Suspended = false, true
	c.configure(s)
	equal(t, "the cookie while suspended", c.ask("192.0.2.2", "").is(t, Admitted).Cookie, "")
}

// prequeue gives a small room of that method an event, whose pre-queue lets visitors in as they come.
func (c *crowded) prequeue(method room.Method, start time.Time, change ...func(*room.Settings)) {
	s := smallRoom()
	s.QueueingMethod = method
	s.Events = []room.Event{{
		Name: "sale", PrequeueStart: start.Add(-6 * time.Minute), Start: start, End: start.Add(time.Hour), QueueingMethod: new(room.FIFO),
	}}
	for _, f := range change {
		f(&s)
	}
	c.configure(s)
}

func TestAPrequeueWaitsForTheStart(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{})
	start := c.now.Add(59 * time.Second)
	c.prequeue(room.Passthrough, start, func(s *room.Settings) { s.TotalActiveUsers, s.Events[0].Shuffle = 100, true })
	cookie := c.told("before the start", "", `"isEventPrequeueing":true`, `"isEventActive":true`, `"timeUntilEventStart":1,`,
		`"timeUntilEventStartFormatted":"1 minute"`, `"shuffleAtEventStart":true`, `"waitsForEvent":true`, `"position":0,`, `"waitTimeKnown":false`).Cookie
	for c.now.Before(start) {
		cookie = cmp.Or(c.told("before the start", cookie).Cookie, cookie)
		c.pass(time.Second)
	}
	c.pass(3 * time.Second)
	c.awaited("192.0.2.1", cookie).is(t, Admitted, "after the start")
}

// TestAPrequeueOfARoomThatRejects gives a place, so its page asks again, which is what
// keeps it.
func TestAPrequeueOfARoomThatRejects(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{})
	c.prequeue(room.Reject, c.now.Add(3*time.Minute))
	a := c.told("before the start", "", `"isRejectQueue":true`, `"waitsForEvent":true`, `"position":1,`, `"refreshIntervalSeconds":1,`,
		`"title":"It has not started yet"`)
	equal(t, "a pass, and when to ask again", fmt.Sprintln(a.Cookie != "", a.field("Refresh"), a.retryAfter()), "true 1 1\n")
}
