package httpfront

import (
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// crowded is a front with a real node behind it, alone and in memory, whose room lets
// one visitor in, and a clock that a test moves.
type crowded struct {
	t     *testing.T
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
func newCrowdedRoom(t *testing.T, s room.Settings, limits ...limit.Rule) *crowded {
	t.Helper()
	c := &crowded{t: t, now: time.Now().Truncate(time.Hour)} // a period begins
	c.core = newCore(t, node.CoreConfig{Rooms: []room.Settings{s}, Limits: limits})
	c.core.SetPeers(nil, c.now)
	c.pass(5 * time.Second)
	c.front = judges(t, &oneNode{core: c.core}, func(cfg *Config) {
		cfg.Logger, cfg.Clock = c.log.logger(), func() time.Time { return c.now }
	})
	configure(t, c.front, s)
	if err := c.front.FollowLimits(limits, metersOf(c.core)); err != nil {
		t.Fatal(err)
	}
	return c
}

// pass lets time pass.
func (c *crowded) pass(d time.Duration) {
	for range d / (250 * time.Millisecond) {
		c.now = c.now.Add(250 * time.Millisecond)
		c.core.Tick(c.now)
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
	done := make(chan Answer, 1)
	go func() { done <- c.ask(address, cookie) }()
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
	if a := c.ask("203.0.113.1", ""); a.Outcome != Admitted {
		c.t.Fatalf("%v, want the one place", a.Outcome)
	}
	c.pass(time.Second)
}

// waiting is how many wait, as the node counts them a moment later.
func (c *crowded) waiting() int {
	c.pass(time.Second)
	return c.core.Route("", "/").View().Waiting
}

// someAddress returns an address in a network.
func someAddress(in netip.Prefix, r *rand.Rand) string {
	a := in.Addr().As16()
	var random [16]byte
	binary.BigEndian.PutUint64(random[:8], r.Uint64())
	binary.BigEndian.PutUint64(random[8:], r.Uint64())
	bits := in.Bits()
	for i := range a {
		switch left := bits - 8*i; {
		case left <= 0:
			a[i] = random[i]
		case left < 8:
			a[i] |= random[i] >> left
		}
	}
	return netip.AddrFrom16(a).String()
}

func TestAFloodMakesALineNoLongerThanAllowed(t *testing.T) {
	perAddress, all, unlimited, floods := 300, 5000, 20_000, 100_000
	if testing.Short() {
		perAddress, all, unlimited, floods = 30, 500, 2000, 5000
	}
	for name, tt := range map[string]struct {
		limits room.NewVisitors
		from   string
		flood  int
		want   int
	}{
		"one address":                  {room.NewVisitors{PerAddress: perAddress, All: all}, "2001:db8:1:2::/64", floods, perAddress},
		"many addresses":               {room.NewVisitors{PerAddress: perAddress, All: all}, "2001:db8::/32", floods, all},
		"no limit by address":          {room.NewVisitors{All: all}, "2001:db8:1:2::/64", floods, all},
		"no limit on all":              {room.NewVisitors{PerAddress: perAddress}, "2001:db8:1:2::/64", floods, perAddress},
		"no limit":                     {room.NewVisitors{}, "2001:db8:1:2::/64", unlimited, unlimited},
		"who is trusted, and says not": {room.NewVisitors{PerAddress: perAddress}, "", unlimited, unlimited},
	} {
		c := newCrowded(t, tt.limits)
		c.fill()
		r := rand.New(rand.NewPCG(1, 2))
		queued, passes := 0, 0
		for range tt.flood {
			address := ""
			if tt.from != "" {
				address = someAddress(netip.MustParsePrefix(tt.from), r)
			}
			a := c.ask(address, "")
			if a.Status != http.StatusTooManyRequests {
				queued++
			}
			if a.Cookie != "" {
				passes++
			}
			if a.Outcome != Queued {
				t.Fatalf("%s: %v", name, a.Outcome)
			}
		}
		if n := c.waiting(); queued != tt.want || passes != tt.want || n != tt.want {
			t.Errorf("%s: %d queue, with %d passes, and the node counts %d, want %d", name, queued, passes, n, tt.want)
		}
	}
}

// TestALineGoesOnGrowingAsAllowed: a limit is one per minute.
func TestALineGoesOnGrowingAsAllowed(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{PerAddress: 60, All: 600})
	c.fill()
	flood := func(address string) (queued int) {
		for range 1000 {
			if c.ask(address, "").Cookie != "" {
				queued++
			}
		}
		return queued
	}
	if n := flood("192.0.2.1"); n != 60 {
		t.Errorf("%d at once, want 60", n)
	}
	c.now = c.now.Add(time.Second) // and the node is not told: it would let somebody in
	if n := flood("192.0.2.1"); n != 1 {
		t.Errorf("%d more after a second, want 1", n)
	}
	c.now = c.now.Add(time.Minute)
	if n := flood("192.0.2.1"); n != 60 {
		t.Errorf("%d more after a minute, want 60", n)
	}
	if n := flood("192.0.2.2"); n != 60 {
		t.Errorf("%d of another address, want 60", n)
	}
}

// TestManyBehindOneAddressQueue has an office come, and come again.
func TestManyBehindOneAddressQueue(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{PerAddress: 1000, All: 600_000})
	c.fill()
	var passes []string
	for i := range 800 {
		a := c.ask("192.0.2.1", "")
		if a.Cookie == "" {
			t.Fatalf("number %d gets no place in the line", i+1)
		}
		passes = append(passes, a.Cookie)
	}
	for range 4 {
		c.pass(2 * time.Second)
		for i, p := range passes {
			a := c.ask("192.0.2.1", p)
			if a.Outcome == Admitted || a.Status != http.StatusOK {
				t.Fatalf("number %d, who waits, gets %v %d", i+1, a.Outcome, a.Status)
			}
			if a.Cookie != "" {
				passes[i] = a.Cookie
			}
		}
	}
	if n := c.waiting(); n != 800 {
		t.Errorf("%d wait, want 800", n)
	}
}

// TestALimitOnNewVisitorsTouchesNobodyElse asks from an address that may bring nobody more.
func TestALimitOnNewVisitorsTouchesNobodyElse(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{PerAddress: 1, All: 1})
	inside := c.ask("192.0.2.1", "")
	if inside.Outcome != Admitted {
		t.Fatal("a place is free, and somebody new has to wait")
	}
	c.pass(time.Second)
	waits := c.ask("192.0.2.1", "")
	if waits.Cookie == "" {
		t.Fatal("the first one does not queue")
	}
	if a := c.ask("192.0.2.1", ""); a.Status != http.StatusTooManyRequests || a.Cookie != "" || a.Outcome != Queued {
		t.Fatalf("the second one gets %+v", a)
	}
	if a := c.ask("192.0.2.1", inside.Cookie); a.Outcome != Admitted {
		t.Errorf("who is inside gets %v", a.Outcome)
	}
	c.pass(time.Second)
	if a := c.ask("192.0.2.1", waits.Cookie); a.Outcome != Queued || a.Status != http.StatusOK {
		t.Errorf("who waits gets %v %d", a.Outcome, a.Status)
	}
}

func TestAFreePlaceIsForAnybody(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{PerAddress: 1, All: 1})
	limits := &c.front.frontOf(&room.Settings{ID: crdt.RoomID{1}, Name: "shop"}).newVisitors
	key := c.front.crowd.key(crdt.RoomID{1}, netip.MustParsePrefix("192.0.2.1/32"))
	if !limits.all.AllowN(c.now, 1) || !c.front.crowd.addresses.take(key, 1, c.now.UnixNano()) {
		t.Fatal("the limits are reached from the beginning")
	}
	if a := c.ask("192.0.2.1", ""); a.Outcome != Admitted || a.Cookie == "" {
		t.Errorf("got %+v", a)
	}
	c.pass(time.Second)
	if a := c.ask("192.0.2.1", ""); a.Status != http.StatusTooManyRequests {
		t.Errorf("without a free place: got %+v", a)
	}
}

// TestPassesThatRanOutAreNoWayAround floods with a pass that was good once.
func TestPassesThatRanOutAreNoWayAround(t *testing.T) {
	const limit = 50
	for name, wait := range map[string]bool{"of a session": false, "of a place": true} {
		c := newCrowded(t, room.NewVisitors{PerAddress: limit})
		old := c.ask("192.0.2.1", "")
		c.pass(time.Second)
		if wait {
			old = c.ask("192.0.2.1", "")
		}
		if (old.Outcome == Admitted) == wait || old.Cookie == "" {
			t.Fatalf("%s: got %+v", name, old)
		}
		c.pass(10 * time.Minute)
		c.fill()
		queued := 0
		for range 1000 {
			if c.ask("192.0.2.1", old.Cookie).Status != http.StatusTooManyRequests {
				queued++
			}
		}
		if n := c.waiting(); queued != limit || n != limit {
			t.Errorf("%s: %d queue, the node counts %d, want %d", name, queued, n, limit)
		}
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
	first := f.get("/", "X-Forwarded-For", "192.0.2.77")
	if first.StatusCode != 200 || len(first.Cookies()) != 1 {
		t.Fatalf("the first one gets %d %v", first.StatusCode, first.Header)
	}
	told := 0
	for _, tt := range []struct{ method, accept, language, want, typ, in string }{
		{"GET", "text/html", "de", "Im Moment wird niemand eingelassen", "text/html; charset=utf-8", "de-DE"},
		{"GET", "text/html", "en", "Nobody is let in right now", "text/html; charset=utf-8", "en-US"},
		{"GET", "text/html", "", `lang="fr-FR"`, "text/html; charset=utf-8", "fr-FR"},
		{"POST", "text/html", "ar", `dir="rtl"`, "text/html; charset=utf-8", "ar-EG"},
		{"GET", "application/json", "de", `"title":"Im Moment wird niemand eingelassen"`, "application/json", "de-DE"},
		{"POST", "application/json", "", `"notDelivered":true`, "application/json", "fr-FR"},
	} {
		header := []string{"X-Forwarded-For", "192.0.2.77", "Accept", tt.accept, "Accept-Language", tt.language}
		got := f.do(tt.method, "/", nil, header...)
		told++
		h := got.Header
		if got.StatusCode != 429 || !strings.Contains(got.body, tt.want) || h.Get("Content-Type") != tt.typ || h.Get("Content-Language") != tt.in {
			t.Errorf("%+v: got %d %v\n%s", tt, got.StatusCode, h, got.body)
		}
		seconds, err := strconv.Atoi(h.Get("Retry-After"))
		if err != nil || seconds < crowdRetry || seconds >= 2*crowdRetry || h.Get("Refresh") != h.Get("Retry-After") {
			t.Errorf("%+v: %v", tt, h)
		}
		if len(got.Cookies()) != 0 || h.Get("Cache-Control") != "private, no-store" || h.Get(stateField) != "crowded" {
			t.Errorf("%+v: %v", tt, h)
		}
		if tt.accept == "application/json" {
			hasNoPlace(t, got.body, seconds)
		} else if !strings.HasSuffix(h.Get("Content-Security-Policy"), "; frame-ancestors https://partner.example") {
			t.Errorf("%+v: policy %q", tt, h.Get("Content-Security-Policy"))
		}
		q := asks(tt.method, "/", "Accept", tt.accept, "Accept-Language", tt.language)
		q.For = "192.0.2.77"
		a := f.front.Judge(q)
		told++
		if a.Outcome != Queued || a.Status != 429 || !strings.Contains(string(a.Body), tt.want) || a.retryAfter() < crowdRetry || a.Cookie != "" || a.field(stateField) != "crowded" {
			t.Errorf("%+v: a proxy that asks gets %+v", tt, a)
		}
	}
	if n := r.crowded.Load(); n != int64(told) || r.queued.Load() != 1 {
		t.Errorf("%d counted and %d queued, want %d and 1", n, r.queued.Load(), told)
	}
	if strings.Count(log.text(), "too many new visitors") != 1 || !log.has("192.0.2.0/24") || log.has("192.0.2.77") || !log.has("room=shop") {
		t.Errorf("the log tells\n%s", log.text())
	}
}

// hasNoPlace fails unless JSON says, under the key that clients know, that the visitor is
// not in, has no place, and when to ask again.
func hasNoPlace(t *testing.T, body string, seconds int) {
	t.Helper()
	var told struct {
		Room *struct {
			InWaitingRoom          bool       `json:"inWaitingRoom"`
			WaitTimeKnown          bool       `json:"waitTimeKnown"`
			RefreshIntervalSeconds int        `json:"refreshIntervalSeconds"`
			Position               int        `json:"position"`
			Arrival                *time.Time `json:"arrival"`
			WaitTimeText           string     `json:"waitTimeText"`
		} `json:"cfWaitingRoom"`
	}
	err := json.Unmarshal([]byte(body), &told)
	if w := told.Room; err != nil || w == nil || !w.InWaitingRoom || w.WaitTimeKnown || w.RefreshIntervalSeconds != seconds ||
		w.Position != 0 || w.Arrival != nil || w.WaitTimeText != "" {
		t.Errorf("to be asked again in %d s: %s, %v", seconds, body, err)
	}
}

func TestTheLogTellsOfALineThatIsFull(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{All: 1})
	c.fill()
	for range 9 {
		c.ask("192.0.2.1", "")
	}
	if strings.Count(c.log.text(), "too many new visitors") != 1 || !c.log.has("limit=1") {
		t.Errorf("the log tells\n%s", c.log.text())
	}
}

// TestANewLimitForgetsNoOther configures a room again during a flood.
func TestANewLimitForgetsNoOther(t *testing.T) {
	c := newCrowded(t, room.NewVisitors{All: 10})
	c.fill()
	flood := func(limits room.NewVisitors) (queued int) {
		s := smallRoom()
		s.Front.NewVisitors = limits
		configure(t, c.front, s)
		for range 100 {
			if c.ask("192.0.2.1", "").Cookie != "" {
				queued++
			}
		}
		return queued
	}
	for i, tt := range []struct {
		limits room.NewVisitors
		want   int
	}{
		{room.NewVisitors{All: 10}, 10},
		{room.NewVisitors{All: 10}, 0},
		{room.NewVisitors{All: 20}, 20},
		{room.NewVisitors{PerAddress: 5}, 5},
		{room.NewVisitors{PerAddress: 5, All: 30}, 0},
		{room.NewVisitors{}, 100},
	} {
		if n := flood(tt.limits); n != tt.want {
			t.Errorf("%d: with %+v %d queue, want %d", i, tt.limits, n, tt.want)
		}
	}
}
