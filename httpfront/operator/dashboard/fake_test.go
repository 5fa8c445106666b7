package dashboard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// fakeMesh is a mesh of which a test says what happens.
type fakeMesh struct {
	asked atomic.Int32 // snapshots that were asked for

	mu      sync.Mutex // guards the following
	rng     *rand.Rand
	snap    Snapshot
	details map[string]Detail
	moving  bool // every room changes each time that the mesh is looked at
}

var _ Source = (*fakeMesh)(nil)

var (
	siteNames = []string{"fra", "iad", "sin", "syd"}
	shops     = []string{"tickets", "drops", "museum", "exam", "clinic", "library", "festival", "registry"}
)

// newFakeMesh makes a mesh in which all is well.
func newFakeMesh(seed uint64, rooms, nodes int) *fakeMesh {
	f := &fakeMesh{rng: rand.New(rand.NewPCG(seed, 1)), details: map[string]Detail{}}
	now := time.Now()
	for _, name := range siteNames {
		f.snap.Sites = append(f.snap.Sites, Site{Site: name})
	}
	for i := range nodes {
		f.snap.Nodes = append(f.snap.Nodes, f.newNode(i))
	}
	for i := range f.snap.Nodes {
		f.snap.Nodes[i].RTTs = f.rtts(i)
	}
	f.snap.Node, f.snap.Limits = f.snap.Nodes[0].Node, newLimits(nodes)
	for i := range rooms {
		r := f.newRoom(i)
		n := &f.snap.Nodes[i%nodes]
		n.Leads = append(n.Leads, r.ID)
		f.snap.Rooms = append(f.snap.Rooms, r)
		f.details[r.ID] = f.newDetail(r, now)
	}
	return f
}

func (f *fakeMesh) newNode(i int) Node {
	site := siteNames[i%len(siteNames)]
	return Node{
		Node: fmt.Sprintf("%016x%016x", 0xa1b2c3d4e5f60718+uint64(i)*0x9e3779b97f4a7c15, f.rng.Uint64()), Name: fmt.Sprintf("%s-%d", site, 1+i/len(siteNames)),
		Site: site, Address: fmt.Sprintf("192.0.2.%d:7946", 10+i), Boot: 3, Version: "0.9.0", State: "alive", Ready: true,
		Store: "ok", Clock: "ok", ClockOffset: time.Duration(f.rng.IntN(4000)-2000) * time.Microsecond, Leads: []string{},
		Rights: Rights{Held: Amount{Places: 17500, Rate: 9200}, Free: Amount{Places: 4100, Rate: 2100}, InUse: 13400},
		Limits: &LimitMemory{Bytes: 64 << 20, Room: 1_800_000, Keys: 212_400},
	}
}

// newLimits are rate limits for which so many nodes count.
func newLimits(nodes int) []Limit {
	of := func(n int64) OverNodes { return OverNodes{n, n * int64(nodes) * 2 / 3} }
	all := []Limit{
		{
			Name: "logins", Expression: `http.request.uri.path eq "/login" and http.request.method eq "POST"`, Characteristics: []string{"ip.src"},
			Period: 60, RequestsPerPeriod: 5, MitigationTimeout: 600, Action: "block", Keys: of(3120),
		},
		{
			Name: "searches", Expression: `starts_with(http.request.uri.path, "/search")`, Characteristics: []string{`http.request.headers["x-api-key"]`},
			Period: 3600, RequestsPerPeriod: 1000, Action: "queue", Keys: of(41_200),
		},
		{
			Name: "scrapers", Expression: "true", Characteristics: []string{"ip.src", "http.host"}, Period: 90, RequestsPerPeriod: 12_000, Action: "log",
			Scope: "site", Keys: of(168_080),
		},
		{Name: "checkout", Expression: `http.request.uri.path eq "/checkout"`, Period: 1, RequestsPerPeriod: 250, Action: "block", State: LimitDisabled},
	}
	for i := range all {
		l := &all[i]
		l.ID, l.Order = fmt.Sprintf("%032x", i+1), i+1
		l.Scope, l.State = cmp.Or(l.Scope, "mesh"), cmp.Or(l.State, LimitCounts)
		if l.State == LimitCounts {
			l.DelaySeconds, l.Most, l.Nodes = 1.24, int64(nodes-1)*l.RequestsPerPeriod, nodes
		}
	}
	return all
}

// rtts are those of a node to all others, as far as sites in these places are apart.
func (f *fakeMesh) rtts(i int) map[string]time.Duration {
	far := [4][4]float64{{0, 88, 160, 245}, {88, 0, 220, 200}, {160, 220, 0, 92}, {245, 200, 92, 0}}
	to := map[string]time.Duration{}
	for k, n := range f.snap.Nodes {
		if k != i {
			ms := far[i%4][k%4] + 0.3 + f.rng.Float64()
			to[n.Node] = time.Duration(ms * float64(time.Millisecond)).Round(10 * time.Microsecond)
		}
	}
	return to
}

func (f *fakeMesh) newRoom(i int) Room {
	limit := int64(200 * (1 + f.rng.IntN(20)))
	r := Room{
		ID: fmt.Sprintf("%016x", uint64(i+1)*0x9e3779b97f4a7c15), Name: fmt.Sprintf("%s-%03d", shops[i%len(shops)], i+1),
		Zone: fmt.Sprintf("zone-%d", 1+i/50), Routes: []Route{{fmt.Sprintf("%s%d.example", shops[i%len(shops)], i+1), "/"}},
		Policy: "escrow", QueueingMethod: "fifo", TotalActiveUsers: limit, NewUsersPerMinute: limit / 4,
		Active: limit * int64(30+f.rng.IntN(55)) / 100, AdmittedPerMinute: limit / 4 * int64(20+f.rng.IntN(60)) / 100,
		Rights: &Rights{
			Minted: Amount{Places: limit, Rate: limit / 4}, Minter: f.snap.Nodes[0].Node,
			Held: Amount{Places: limit, Rate: limit / 4}, Free: Amount{Places: limit / 4, Rate: limit / 20}, InUse: limit * 3 / 4,
		},
	}
	if i%9 == 0 {
		r.Waiting, r.Active, r.AdmittedPerMinute = 100+f.rng.Int64N(10*limit), r.TotalActiveUsers, r.NewUsersPerMinute
		r.WaitSeconds = new(60 * (r.Waiting/max(1, r.AdmittedPerMinute) + 1))
	}
	for t := range 30 {
		wave := 0.8 + 0.2*math.Sin(float64(t+i)/5)
		r.RecentActive = append(r.RecentActive, int64(float64(r.Active)*wave))
		r.RecentWaiting = append(r.RecentWaiting, int64(float64(r.Waiting)*wave))
	}
	return r
}

func (f *fakeMesh) newDetail(r Room, now time.Time) Detail {
	d := Detail{ID: r.ID, Time: now, Settings: Settings{r.TotalActiveUsers, r.NewUsersPerMinute}, SessionSeconds: 300, Buckets: []Bucket{}, Sites: []SiteShare{}, Events: []Event{}}
	for i, site := range siteNames {
		d.Sites = append(d.Sites, SiteShare{
			Site: site, Active: r.Active / 4, Waiting: r.Waiting / 4, Counter: f.snap.Nodes[i%len(f.snap.Nodes)].Node,
			Rights: &Rights{Held: Amount{Places: r.TotalActiveUsers / 4, Rate: 0}, Free: Amount{Places: r.TotalActiveUsers / 16, Rate: 0}},
		})
	}
	if r.Waiting == 0 {
		return d
	}
	const spans = 24
	for i := range spans {
		n := r.Waiting / spans * int64(60+f.rng.IntN(80)) / 100
		d.Buckets = append(d.Buckets, Bucket{now.Add(time.Duration(i-spans) * time.Minute).Truncate(time.Minute), 60, n})
	}
	d.Cursor = new(d.Buckets[0].Arrived.Add(255 * time.Second))
	return d
}

// first returns the first room.
func (f *fakeMesh) first() Room {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snap.Rooms[0]
}

// change changes the mesh. What was handed out before stays as it was.
func (f *fakeMesh) change(how func(*fakeMesh)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snap.Rooms, f.snap.Nodes, f.snap.Sites = slices.Clone(f.snap.Rooms), slices.Clone(f.snap.Nodes), slices.Clone(f.snap.Sites)
	f.snap.Limits = slices.Clone(f.snap.Limits)
	how(f)
}

// changeDetail changes what is shown of one room.
func (f *fakeMesh) changeDetail(room string, how func(*Detail)) {
	f.change(func(f *fakeMesh) {
		d := f.details[room]
		how(&d)
		f.details[room] = d
	})
}

// moveLocked changes every room and every time.
func (f *fakeMesh) moveLocked() {
	f.snap.Rooms, f.snap.Nodes = slices.Clone(f.snap.Rooms), slices.Clone(f.snap.Nodes)
	for i := range f.snap.Rooms {
		r := &f.snap.Rooms[i]
		step := func(n, most int64) int64 { return min(most, max(1, n+int64(f.rng.IntN(21))-10)) }
		r.Active = step(r.Active, r.TotalActiveUsers)
		r.AdmittedPerMinute = step(r.AdmittedPerMinute, r.NewUsersPerMinute)
		if r.Waiting > 0 {
			r.Waiting = step(r.Waiting, 1e6)
		}
		if f.asked.Load()%10 == 0 {
			r.RecentActive = append(slices.Clone(r.RecentActive[1:]), r.Active)
			r.RecentWaiting = append(slices.Clone(r.RecentWaiting[1:]), r.Waiting)
		}
	}
	for i := range f.snap.Nodes {
		n := &f.snap.Nodes[i]
		n.RTTs, n.Rights.InUse = f.rtts(i), max(0, n.Rights.InUse+int64(f.rng.IntN(21))-10)
	}
}

func (f *fakeMesh) Snapshot(now time.Time) Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked.Add(1)
	if f.moving {
		f.moveLocked()
	}
	s := f.snap
	s.Time = now
	return s
}

func (f *fakeMesh) Room(id string, now time.Time) (Detail, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, ok := f.details[id]
	d.Time = now
	return d, ok
}

// analytics is how a room was, as the admin API tells it; false if there is no such room.
func (f *fakeMesh) analytics(args *fasthttp.Args, room string) (any, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.snap.Rooms, func(r Room) bool { return r.ID == room })
	if i < 0 {
		return nil, false
	}
	moment := func(name string) time.Time { return must(time.Parse(time.RFC3339, string(args.Peek(name)))) }
	r, from, to, step := f.snap.Rooms[i], moment("from"), moment("to"), must(time.ParseDuration(string(args.Peek("step"))))
	points := []map[string]any{}
	n := int(to.Sub(from) / step)
	for k := n / 12; k < n; k++ { // the node did not run before
		x := float64(k+1) / float64(n)
		wave := 1 + (0.16*math.Sin(9*x)+0.04*math.Sin(61*x))*(1-x*x*x)
		points = append(points, map[string]any{
			"time":                          from.Add(time.Duration(k) * step),
			"active_users_avg":              math.Round(min(1, wave) * float64(r.Active)),
			"waiting_users_avg":             math.Round(wave * x * x * float64(r.Waiting)),
			"admitted_users_avg_per_minute": math.Round(min(1, wave) * float64(r.AdmittedPerMinute)),
			"total_active_users":            r.TotalActiveUsers, "new_users_per_minute": r.NewUsersPerMinute,
		})
	}
	return map[string]any{"points": points}, true
}

const looks, write = "read", "write" // what a token is good for

// edit is the part of the admin API that the page edits with, in memory. It notes requests that are allowed.
func (s *stage) edit(ctx *fasthttp.RequestCtx) {
	token, _ := strings.CutPrefix(string(ctx.Request.Header.Peek("Authorization")), "Bearer ")
	if room, ok := strings.CutSuffix(strings.TrimPrefix(string(ctx.Path()), apiPath+"rooms/"), "/analytics"); ok {
		past, _ := s.mesh.analytics(ctx.QueryArgs(), room)
		answer(ctx, past)
		return
	}
	if !s.may(token, write) {
		refuse(ctx, fasthttp.StatusForbidden, problem{Message: "this token has not the scope write"})
		return
	}
	method, path, body := string(ctx.Method()), string(ctx.Path()), map[string]any{}
	if len(ctx.PostBody()) > 0 {
		body = decode[map[string]any](ctx.PostBody())
	}
	s.mu.Lock()
	s.edits = append(s.edits, fmt.Sprint(method, " ", path, " ", body))
	s.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(path, apiPath+"rooms/"), "/")
	var wrong []problem
	s.mesh.change(func(m *fakeMesh) {
		i := slices.IndexFunc(m.snap.Rooms, func(r Room) bool { return r.ID == parts[0] })
		switch {
		case i < 0:
			wrong = []problem{{Field: "room", Message: "there is no such room"}}
		case len(parts) == 1:
			r := &m.snap.Rooms[i]
			wrong = patchRoom(r, body)
			d := m.details[r.ID]
			d.Settings = Settings{r.TotalActiveUsers, r.NewUsersPerMinute}
			m.details[r.ID] = d
		default:
			wrong = m.patchEventLocked(parts[0], strings.Join(parts[2:], ""), method, body)
		}
	})
	if len(wrong) > 0 {
		refuse(ctx, fasthttp.StatusUnprocessableEntity, wrong...)
		return
	}
	answer(ctx, body)
}

// merge sets what a body has of something.
func merge(body map[string]any, into any) {
	if err := json.Unmarshal(must(json.Marshal(body)), into); err != nil {
		panic(err)
	}
}

func patchRoom(r *Room, body map[string]any) (wrong []problem) {
	for _, field := range []string{"total_active_users", "new_users_per_minute"} {
		v, there := body[field]
		if n, _ := v.(float64); there && (n < 1 || n > math.MaxInt32) {
			wrong = append(wrong, problem{field, fmt.Sprint(v), "1 to 2147483647", fmt.Sprintf("%s is %v; allowed is 1 to 2,147,483,647", field, v)})
		}
	}
	if len(wrong) == 0 {
		merge(body, r)
	}
	return wrong
}

func (f *fakeMesh) patchEventLocked(room, id, method string, body map[string]any) []problem {
	d := f.details[room]
	d.Events = slices.Clone(d.Events)
	i := slices.IndexFunc(d.Events, func(ev Event) bool { return ev.ID == id })
	if i < 0 {
		i = len(d.Events)
		d.Events = append(d.Events, Event{ID: fmt.Sprintf("event-%d", i+1)})
	}
	next := &d.Events[i]
	merge(body, next)
	switch {
	case method == "DELETE":
		d.Events = slices.Delete(d.Events, i, i+1)
	case !next.End.After(next.Start):
		return []problem{{Field: "event_end_time", Message: "event_end_time is not after event_start_time"}}
	}
	f.details[room] = d
	return nil
}
