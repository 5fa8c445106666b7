package httpfront

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/httpfront/conn/address"
	"github.com/ropeline/ropeline/httpfront/gate/setassoc"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// crowded is a front with a real node behind it, alone and in memory, whose room lets
// one visitor in, and a clock that a test moves.
type crowded struct {
	t     testing.TB
	front *Front
	core  *node.Core
	log   lockedLog
	now   time.Time
}

func newCrowded(t *testing.T, limits room.NewVisitors) *crowded {
	t.Helper()
	s := smallRoom()
	s.Front.NewVisitors = limits
	return newCrowdedRoom(t, s)
}

// newCrowdedRoom is newCrowded with a room, and rate limits.
func newCrowdedRoom(tb testing.TB, s room.Settings, limits ...limit.Rule) *crowded {
	tb.Helper()
	return newCrowdedRooms(tb, node.CoreConfig{Rooms: []room.Settings{s}, Limits: limits})
}

// newCrowdedRooms is newCrowded with the rooms and rate limits of a node.
func newCrowdedRooms(tb testing.TB, of node.CoreConfig, change ...func(*Config)) *crowded {
	tb.Helper()
	c := &crowded{t: tb, now: time.Now().Truncate(time.Hour)} // a period begins
	c.core = newCore(of)
	c.core.SetPeers(nil, c.now)
	c.pass(5 * time.Second)
	c.front = judges(tb, &oneNode{core: c.core}, append(change, func(cfg *Config) {
		cfg.Logger, cfg.Clock = c.log.logger(), func() time.Time { return c.now }
	})...)
	for _, s := range of.Rooms {
		configure(tb, c.front, s)
	}
	noError(tb, c.front.FollowLimits(of.Limits, metersOf(c.core)))
	return c
}

// pass lets time pass, with a disk that takes everything.
func (c *crowded) pass(d time.Duration) {
	for range d / (250 * time.Millisecond) {
		c.now = c.now.Add(250 * time.Millisecond)
		c.core.Tick(c.now)
		c.core.Writes()
		c.core.Written(nil, c.now)
	}
}

// ask is a request from an address, with the pass of an earlier answer if cookie is not
// empty.
func (c *crowded) ask(address, cookie string) Answer {
	name, _, _ := strings.Cut(cookie, ";")
	return c.judge(address, "GET", "/", "Cookie", name)
}

// judge is a request from an address, with fields given as name, value, name, value, ….
func (c *crowded) judge(address, method, target string, fields ...string) Answer {
	q := asks(method, target, fields...)
	q.For, q.NoPage = address, true
	return c.front.Judge(q)
}

// page is ask, for the page as well.
func (c *crowded) page(address string) Answer {
	q := asks("GET", "/")
	q.For = address
	return c.front.Judge(q)
}

// awaited is ask for a request that another node may have to be asked about.
func (c *crowded) awaited(address, cookie string) Answer {
	return c.await(func() Answer { return c.ask(address, cookie) })
}

// await returns what ask does, and has the node tell others what it wants of them meanwhile.
func (c *crowded) await(ask func() Answer) Answer {
	done := make(chan Answer, 1)
	go func() { done <- ask() }()
	for {
		select {
		case a := <-done:
			return a
		case <-c.core.Wake():
			c.core.Flush(c.now)
		}
	}
}

// fill takes the one place that there is.
func (c *crowded) fill() {
	c.t.Helper()
	c.ask("203.0.113.1", "").is(c.t, Admitted, "the one place")
	c.pass(time.Second)
}

// waiting is how many wait, as the node counts them a moment later.
func (c *crowded) waiting() int {
	c.pass(time.Second)
	return c.core.Route("", "/").View().Waiting
}

// queues reports whether somebody who has to wait gets a place in the line.
func (a Answer) queues(t testing.TB, of ...any) bool {
	t.Helper()
	a.is(t, Queued, of...)
	is := a.Status == http.StatusOK
	if !is && (a.Status != http.StatusTooManyRequests || a.Cookie != "") {
		t.Errorf("%v: who gets no place gets %d and the cookie %q", of, a.Status, a.Cookie)
	}
	return is
}

// flood is how many of 1000 requests of an address with a cookie get a place in the line.
func (c *crowded) flood(address, cookie string) (queued int) {
	c.t.Helper()
	for range 1000 {
		if a := c.ask(address, cookie); a.queues(c.t) && a.Cookie != "" {
			queued++
		}
	}
	return queued
}

// someAddress returns an address in a network whose prefix ends with a byte.
func someAddress(in netip.Prefix, r *rand.Rand) string {
	a := in.Addr().As16()
	for i := in.Bits() / 8; i < len(a); i++ {
		a[i] = byte(r.Uint32())
	}
	return netip.AddrFrom16(a).String()
}

func TestAFloodMakesALineNoLongerThanAllowed(t *testing.T) {
	perAddress, all, unlimited, floods, addresses := 300, 5000, 6000, 15_000, 100_000
	if testing.Short() {
		perAddress, all, unlimited, floods, addresses = 30, 500, 2000, 5000, 5000
	}
	for name, tt := range map[string]struct {
		limits room.NewVisitors
		from   string
		flood  int
		want   int
	}{
		"one address":                  {room.NewVisitors{PerAddress: perAddress, All: all}, "2001:db8:1:2::/64", floods, perAddress},
		"many addresses":               {room.NewVisitors{PerAddress: perAddress, All: all}, "2001:db8::/32", addresses, all},
		"no limit by address":          {room.NewVisitors{All: all}, "2001:db8:1:2::/64", floods, all},
		"no limit on all":              {room.NewVisitors{PerAddress: perAddress}, "2001:db8:1:2::/64", floods, perAddress},
		"no limit":                     {room.NewVisitors{}, "2001:db8:1:2::/64", unlimited, unlimited},
		"who is trusted, and says not": {room.NewVisitors{PerAddress: perAddress}, "", unlimited, unlimited},
	} {
		c := newCrowded(t, tt.limits)
		c.fill()
		r := rand.New(rand.NewPCG(1, 2))
		queued := 0
		for range tt.flood {
			address := ""
			if tt.from != "" {
				address = someAddress(netip.MustParsePrefix(tt.from), r)
			}
			if a := c.ask(address, ""); a.queues(t, name) && a.Cookie != "" {
				queued++
			}
		}
		equal(t, name+": how many queue", queued, tt.want)
		equal(t, name+": how many wait", c.waiting(), tt.want)
	}
}

// TestALineGoesOnGrowingAsAllowed: a limit is one per minute.
func TestALineGoesOnGrowingAsAllowed(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{PerAddress: 60, All: 600})
	c.fill()
	equal(t, "at once", c.flood("192.0.2.1", ""), 60)
	c.now = c.now.Add(time.Second) // and the node is not told: it would let somebody in
	equal(t, "more after a second", c.flood("192.0.2.1", ""), 1)
	c.now = c.now.Add(time.Minute)
	equal(t, "more after a minute", c.flood("192.0.2.1", ""), 60)
	equal(t, "of another address", c.flood("192.0.2.2", ""), 60)
}

// TestManyBehindOneAddressQueue has an office come, and come again.
func TestManyBehindOneAddressQueue(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{PerAddress: 1000, All: 600_000})
	c.fill()
	passes := make([]string, 800)
	for range 5 {
		c.pass(2 * time.Second)
		for i, p := range passes {
			a := c.ask("192.0.2.1", p)
			if passes[i] = cmp.Or(a.Cookie, p); !a.queues(t, "number", i+1) || passes[i] == "" {
				t.Fatalf("number %d has no place in the line", i+1)
			}
		}
	}
	equal(t, "how many wait", c.waiting(), len(passes))
}

// TestALimitOnNewVisitorsTouchesNobodyElse asks from an address that may bring nobody more.
func TestALimitOnNewVisitorsTouchesNobodyElse(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{PerAddress: 1, All: 1})
	inside := c.ask("192.0.2.1", "").is(t, Admitted, "somebody new while a place is free")
	c.pass(time.Second)
	waits := c.ask("192.0.2.1", "")
	equal(t, "the first one queues", waits.queues(t), true)
	equal(t, "the second one queues", c.ask("192.0.2.1", "").queues(t), false)
	c.ask("192.0.2.1", inside.Cookie).is(t, Admitted, "who is inside")
	c.pass(time.Second)
	equal(t, "who waits goes on to", c.ask("192.0.2.1", waits.Cookie).queues(t), true)
}

func TestAFreePlaceIsForAnybody(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{PerAddress: 1, All: 1})
	limits := &c.front.frontOf(&room.Settings{ID: crdt.RoomID{1}, Name: "shop"}).newVisitors
	key := c.front.crowd.key(crdt.RoomID{1}, netip.MustParsePrefix("192.0.2.1/32"))
	if !limits.all.AllowN(c.now, 1) || !c.front.crowd.addresses.take(key, 1, c.now.UnixNano()) {
		t.Fatal("the limits are reached from the beginning")
	}
	if a := c.ask("192.0.2.1", "").is(t, Admitted); a.Cookie == "" {
		t.Errorf("got %+v, want a pass", a)
	}
	c.pass(time.Second)
	equal(t, "somebody queues without a free place", c.ask("192.0.2.1", "").queues(t), false)
}

// TestPassesThatRanOutAreNoWayAround floods with a pass that was good once.
func TestPassesThatRanOutAreNoWayAround(t *testing.T) {
	const limit = 50
	for name, was := range map[string]Outcome{"of a session": Admitted, "of a place": Queued} {
		c := newCrowded(t, room.NewVisitors{PerAddress: limit})
		if was == Queued {
			c.fill()
		}
		old := c.ask("192.0.2.1", "").is(t, was, name).Cookie
		c.pass(10 * time.Minute)
		c.fill()
		equal(t, name+": how many queue", c.flood("192.0.2.1", old), limit)
		equal(t, name+": how many wait", c.waiting(), limit)
	}
}

// queues makes everybody wait, and tells who is new.
func queues(p node.Pass, known bool, now time.Time) node.Verdict {
	v := never(p, known, now)
	v.New = !known
	return v
}

// TestWhoMayNotQueueIsTold what those are told who wait, in the room's language and
// frames, and with no place.
func TestWhoMayNotQueueIsTold(t *testing.T) {
	r := newRoom(queues)
	r.settings.Front.NewVisitors = room.NewVisitors{PerAddress: 1}
	r.settings.Front.Language = "fr-FR"
	r.settings.Front.FrameAncestors = []string{"https://partner.example"}
	var log lockedLog
	f := serve(t, fakeRooms{room: r}, http.HandlerFunc(echo), trustLoopback, func(c *Config) { c.Logger = log.logger() })
	configure(t, f.front, r.settings)
	f.get("/", "X-Forwarded-For", "192.0.2.77").is(t, 200, "\r\nSet-Cookie: ropeline=")
	told := 0
	for _, tt := range []struct{ method, accept, language, want, in string }{
		{"GET", "text/html", "de", "Im Moment wird niemand eingelassen", "de-DE"},
		{"GET", "text/html", "en", "Nobody is let in right now", "en-US"},
		{"GET", "text/html", "", `lang="fr-FR"`, "fr-FR"},
		{"POST", "text/html", "ar", `dir="rtl"`, "ar-EG"},
		{"GET", "application/json", "de", `"title":"Im Moment wird niemand eingelassen"`, "de-DE"},
		{"POST", "application/json", "", `"notDelivered":true`, "fr-FR"},
	} {
		got := f.do(tt.method, "/", nil, "X-Forwarded-For", "192.0.2.77", "Accept", tt.accept, "Accept-Language", tt.language)
		after := got.Header.Get("Retry-After")
		seconds, err := strconv.Atoi(after)
		if err != nil || seconds < crowdRetry || seconds >= 2*crowdRetry {
			t.Errorf("%+v: to come again after %q seconds", tt, after)
		}
		got.is(t, 429, tt.want, "\r\nContent-Language: "+tt.in, "\r\nContent-Type: "+tt.accept, "\r\nRefresh: "+after+"\r\n",
			"\r\nCache-Control: private, no-store\r\n", "\r\nRopeline-State: crowded\r\n")
		lacks(t, "who has no place", got.text(), "Set-Cookie", `"arrival":"`)
		if tt.accept == "application/json" {
			has(t, "who has no place", got.body, `{"cfWaitingRoom":{"inWaitingRoom":true,`, `"waitTimeKnown":false,`, `"position":0,`,
				`"waitTimeText":"",`, `"refreshIntervalSeconds":`+after+`,`)
		} else {
			has(t, "the policy", got.Header.Get("Content-Security-Policy"), "; frame-ancestors https://partner.example")
		}
		q := asks(tt.method, "/", "Accept", tt.accept, "Accept-Language", tt.language)
		q.For = "192.0.2.77"
		a := f.front.Judge(q)
		equal(t, "who asks by a proxy queues", a.queues(t), false)
		has(t, "a proxy that asks", string(a.Body), tt.want)
		if a.retryAfter() < crowdRetry || a.field(stateField) != "crowded" {
			t.Errorf("%+v: a proxy that asks gets %+v", tt, a)
		}
		told += 2
	}
	equal(t, "who gets no place and is counted", r.crowded.Load(), int64(told))
	equal(t, "who queues and is counted", r.queued.Load(), 1)
	equal(t, "how often the log tells", strings.Count(log.text(), "too many new visitors"), 1)
	has(t, "the log", log.text(), "192.0.2.0/24", "room=shop")
	lacks(t, "the log", log.text(), "192.0.2.77")
}

func TestTheLogTellsOfALineThatIsFull(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{All: 1})
	c.fill()
	c.flood("192.0.2.1", "")
	equal(t, "how often the log tells", strings.Count(c.log.text(), "too many new visitors"), 1)
	has(t, "the log", c.log.text(), "limit=1")
}

// TestANewLimitForgetsNoOther configures a room again during a flood.
func TestANewLimitForgetsNoOther(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{All: 10})
	c.fill()
	s := smallRoom()
	for i, tt := range []struct {
		limits room.NewVisitors
		want   int
	}{
		{room.NewVisitors{All: 10}, 10},
		{room.NewVisitors{All: 10}, 0},
		{room.NewVisitors{All: 20}, 20},
		{room.NewVisitors{PerAddress: 5}, 5},
		{room.NewVisitors{PerAddress: 5, All: 30}, 0},
		{room.NewVisitors{}, 1000},
	} {
		s.Front.NewVisitors = tt.limits
		configure(t, c.front, s)
		equal(t, fmt.Sprintf("%d: queue with %+v", i, tt.limits), c.flood("192.0.2.1", ""), tt.want)
	}
}

// FuzzAddressTable holds the table to buckets that are kept apart, as long as no more
// keys come than one set has slots: each byte is a key and how long after the last one
// it comes.
func FuzzAddressTable(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0}, uint16(3))
	f.Add([]byte("\x00\x10\x21\x33\x07\xf7\xff\x00\x00\x00"), uint16(1))
	f.Add([]byte("the quick brown fox jumps over the lazy dog"), uint16(7))
	f.Fuzz(func(t *testing.T, steps []byte, limit uint16) {
		perMinute := int(limit%200) + 1
		table := newAddressTable()
		type bucket struct {
			level float64 // in visitors
			at    int64
		}
		apart := map[uint64]bucket{}
		now := time.Now().UnixNano()
		for i, s := range steps {
			key := uint64(s&(addressWays-1)) * addressSets // all in one set
			now += int64(s>>3) * int64(time.Second)
			b := apart[key]
			b.level = max(0, b.level-float64(now-b.at)*float64(perMinute)/float64(time.Minute))
			b.at = now
			want := b.level+1 <= float64(perMinute)
			near := b.level+1-float64(perMinute) < 1e-3 && b.level+1-float64(perMinute) > -1e-3
			got := table.take(key, perMinute, now)
			if got != want && !near {
				t.Fatalf("step %d, key %d: %v at %f of %d", i, key, got, b.level, perMinute)
			}
			if got {
				b.level++
			}
			apart[key] = b
		}
	})
}

// TestRandomAddressesHideNobody has an address go on far beyond its limit, while others
// that come once each try to have it forgotten.
func TestRandomAddressesHideNobody(t *testing.T) {
	equal(t, "bytes that the slots take", addressSets*addressWays*unsafe.Sizeof(setassoc.Slot[struct{}]{}), 1<<20)
	c := newCrowd()
	id := crdt.RoomID{1}
	hot := c.key(id, address.Counted(netip.MustParseAddr("2001:db8::1")))
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Now().UnixNano()
	const limit = 100
	others := 2_000_000 // come within 20 s
	if testing.Short() {
		others /= 5 // within 4 s
	}
	taken, asked := 0, 0
	for i := range others {
		now += int64(10 * time.Microsecond)
		c.addresses.take(r.Uint64(), limit, now)
		if i%100 == 0 {
			asked++
			if c.addresses.take(hot, limit, now) {
				taken++
			}
		}
	}
	if most := limit + limit/3 + asked/100; taken > most || taken < limit {
		t.Errorf("%d of %d were taken, want between %d and %d", taken, asked, limit, most)
	}
}

func TestAddressesAreCountedApartByRoom(t *testing.T) {
	c := newCrowd()
	seen := map[uint64]string{}
	for _, text := range []string{"192.0.2.1/32", "192.0.2.2/32", "2001:db8::/64", "2001:db8:0:1::/64"} {
		for _, id := range []crdt.RoomID{{1}, {2}} {
			k := c.key(id, netip.MustParsePrefix(text))
			if other, ok := seen[k]; ok {
				t.Errorf("%s and %s are one", text, other)
			}
			seen[k] = text
		}
	}
	a, b := address.Counted(netip.MustParseAddr("2001:db8::1")), address.Counted(netip.MustParseAddr("2001:db8::ffff:1"))
	equal(t, "the key of another address of a /64", c.key(crdt.RoomID{1}, b), c.key(crdt.RoomID{1}, a))
	if other := newCrowd(); other.key(crdt.RoomID{1}, a) == c.key(crdt.RoomID{1}, a) {
		t.Error("another process has the same key")
	}
}
