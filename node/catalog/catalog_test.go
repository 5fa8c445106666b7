package catalog

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ropeline/ropeline/bench/golden"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

var begin = time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)

// store is the map of one node.
type store struct {
	crdt.LWW
	clock crdt.Clock
	node  crdt.NodeID
	now   time.Time
}

func newStore(node byte) *store { return &store{node: crdt.NodeID{node}, now: begin} }

func (s *store) write(t interface{ Fatal(...any) }, writes []Write) {
	s.now = s.now.Add(time.Second)
	for _, w := range writes {
		if err := s.Set(w.Key, w.Value, s.clock.Now(s.now, s.node)); err != nil {
			t.Fatal(err)
		}
	}
}

// collect deletes what is of no use any more and was written here.
func (s *store) collect(t interface{ Fatal(...any) }) {
	var gone []Write
	for key := range Read(s).Unused() {
		if _, at, _ := s.Get(key); at.Node == s.node {
			gone = append(gone, Write{Key: key})
		}
	}
	s.write(t, gone)
}

func (s *store) hear(o *store) {
	s.Merge(&o.LWW)
	s.clock.Observe(o.Newest(), o.now)
	s.now = later(s.now, o.now)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// plain is a room that holds, with a name and a host of its own.
func plain(i int) *Room {
	s := room.Settings{
		ID: crdt.RoomID{byte(i), byte(i >> 8), 1}, Name: fmt.Sprintf("room-%d", i), Host: fmt.Sprintf("h%d.example", i),
		TotalActiveUsers: 200, NewUsersPerMinute: 100,
	}
	return &Room{Zone: DefaultZone, Created: begin.Add(time.Duration(i) * time.Second), Settings: s.WithDefaults()}
}

func plainEvent(i int) Event {
	start := begin.Add(time.Duration(i) * 24 * time.Hour)
	return Event{
		ID: ID{byte(i), 2}, Created: begin.Add(time.Duration(i) * time.Minute),
		Event: room.Event{Name: fmt.Sprintf("event-%d", i), Start: start, End: start.Add(time.Hour)},
	}
}

func plainRule(i int) Rule {
	return Rule{
		ID: ID{byte(i), byte(i >> 8), 3}, Version: 1, Created: begin.Add(time.Duration(i) * time.Minute),
		Rule: room.Rule{Expression: fmt.Sprintf(`http.request.uri.path eq "/%d"`, i), Action: room.Bypass},
	}
}

// anyRoom draws a room with everything that a room can have.
func anyRoom(t *rapid.T, id int) *Room {
	r := plain(id)
	s := &r.Settings
	text := rapid.StringMatching(`[a-zäß<>{} ]{0,40}`)
	flag := rapid.Bool()
	number := rapid.IntRange(1, 1<<31-1)
	span := func(lo, hi int) time.Duration {
		return time.Duration(rapid.IntRange(lo, hi).Draw(t, "seconds")) * time.Second
	}
	r.Description = text.Draw(t, "description")
	r.Turnstile = Turnstile{rapid.SampledFrom(turnstileModes).Draw(t, "mode"), rapid.SampledFrom(turnstileActions).Draw(t, "action")}
	s.Path = rapid.SampledFrom([]string{"/", "/a", "/a/b"}).Draw(t, "path")
	if flag.Draw(t, "routes") {
		s.CookieSuffix = "suffix"
		s.AdditionalRoutes = []room.Route{{Host: fmt.Sprintf("x%d.example", id), Path: "/z"}}
	}
	s.TotalActiveUsers, s.NewUsersPerMinute = number.Draw(t, "total"), number.Draw(t, "rate")
	s.QueueingMethod = rapid.SampledFrom([]room.Method{room.FIFO, room.Random, room.Passthrough, room.Reject}).Draw(t, "method")
	s.Policy = rapid.SampledFrom([]room.Policy{room.Escrow, room.Even, room.Curve}).Draw(t, "policy")
	s.ShareFreeze = rapid.SampledFrom([]time.Duration{-1, time.Minute}).Draw(t, "freeze")
	s.OnPartition = rapid.SampledFrom([]room.OnPartition{room.PartitionHold, room.PartitionOpen}).Draw(t, "partition")
	s.SessionDuration, s.PlaceKept, s.RefreshInterval = span(1, 3600), span(1, 3600), span(1, 600)
	s.QueueAll, s.Suspended, s.DisableSessionRenewal = flag.Draw(t, "all"), flag.Draw(t, "suspended"), flag.Draw(t, "renewal")
	if flag.Draw(t, "commands") {
		s.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	}
	f := &s.Front
	f.CustomPage, f.Message, f.NoJSON = text.Draw(t, "page"), "be patient", flag.Draw(t, "json")
	f.FrameAncestors = rapid.SampledFrom([][]string{nil, {}, {"https://shop.example"}}).Draw(t, "ancestors")
	f.Language = rapid.SampledFrom([]string{"", "de-DE"}).Draw(t, "language")
	f.Cookie = room.CookieAttributes{SameSite: room.SameSiteNone, Secure: room.SecureAlways, Partitioned: flag.Draw(t, "partitioned")}
	f.Binding = room.Binding{Address: flag.Draw(t, "bind"), IPv4Prefix: 16}
	f.NewVisitors = room.NewVisitors{PerAddress: 5, All: 1000}
	f.Sharing = room.Sharing{Action: room.SharedLog, Addresses: 3}
	for i := range rapid.IntRange(0, 3).Draw(t, "events") {
		r.Events = append(r.Events, anyEvent(t, i))
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "rules") {
		r.Rules = append(r.Rules, plainRule(i))
	}
	return r
}

func anyEvent(t *rapid.T, i int) Event {
	e := plainEvent(i)
	flag := rapid.Bool()
	e.Description = "for the fans"
	if i == 2 {
		e.Start, e.End = e.Start.In(time.FixedZone("", -12600)), e.End.In(time.FixedZone("", 0))
	}
	e.Suspended = flag.Draw(t, "event suspended")
	if flag.Draw(t, "prequeue") {
		e.PrequeueStart, e.Shuffle = e.Start.Add(-time.Hour), flag.Draw(t, "shuffle")
	}
	if flag.Draw(t, "overrides") {
		total, rate, session, method, renewal, page := 5, 6, time.Minute, room.Random, true, "event page"
		e.TotalActiveUsers, e.NewUsersPerMinute, e.SessionDuration = &total, &rate, &session
		e.QueueingMethod, e.DisableSessionRenewal, e.CustomPage = &method, &renewal, &page
		e.Turnstile.Mode = "off"
	}
	return e
}

// bare returns a room without what only reading fills in.
func bare(r *Room) *Room {
	c := r.Clone()
	c.Modified, c.thing, c.page = time.Time{}, thing{}, textRef{}
	for i := range c.Events {
		c.Events[i].Modified, c.Events[i].thing, c.Events[i].page = time.Time{}, thing{}, nil
	}
	for i := range c.Rules {
		c.Rules[i].Modified, c.Rules[i].thing = time.Time{}, thing{}
	}
	return c
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStore(1)
		var was *Room
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			is := anyRoom(t, 7)
			s.write(t, new(Catalog).Writes(was, is))
			got := Read(s).Room(is.Settings.ID)
			if got == nil || !reflect.DeepEqual(bare(got), bare(is)) {
				t.Fatalf("read\n%+v\nof\n%+v", got, is)
			}
			if again := new(Catalog).Writes(got, is); len(again) > 0 {
				t.Fatalf("%d writes for no difference, the first of %s", len(again), again[0].Key)
			}
			was = got
		}
		s.write(t, new(Catalog).Writes(was, nil))
		s.collect(t)
		for key := range s.Keys() {
			t.Fatalf("the room is dropped, and %s is left", key)
		}
	})
}

// TestEveryFieldIsKept fails where a setting is added that no group has.
func TestEveryFieldIsKept(t *testing.T) {
	r := plain(1)
	fill(t, reflect.ValueOf(&r.Settings).Elem(), "Settings")
	r.Settings.ID = crdt.RoomID{1}
	r.Settings.Events, r.Settings.Front.Rules = nil, nil
	r.Settings.Front.CrawlerBypass = false // is the zone's
	r.Turnstile = Turnstile{"off", "log"}
	e := plainEvent(1)
	fill(t, reflect.ValueOf(&e.Event).Elem(), "Event")
	r.Events = []Event{e}
	rule := plainRule(1)
	fill(t, reflect.ValueOf(&rule.Rule).Elem(), "Rule")
	r.Rules = []Rule{rule}
	s := newStore(1)
	s.write(t, new(Catalog).Writes(nil, r))
	if got := Read(s).Room(r.Settings.ID); !reflect.DeepEqual(bare(got), bare(r)) {
		t.Errorf("read\n%+v\nof\n%+v", bare(got), bare(r))
	}
}

// fill gives every field a value that is not its zero.
func fill(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(begin.Add(time.Duration(len(name)) * time.Second)))
		return
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), name)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), name)
	case v.Kind() == reflect.Array:
		fill(t, v.Index(0), name)
	case v.Kind() == reflect.String:
		v.SetString("x" + name)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(int64(7 + len(name)%100))
	case v.CanUint():
		v.SetUint(7)
	case v.CanFloat():
		v.SetFloat(0.5)
	default:
		t.Fatalf("%s: a %s is not known here", name, v.Kind())
	}
}

func TestChangesOfDifferentGroupsBothStay(t *testing.T) {
	a, b := newStore(1), newStore(2)
	was := plain(1)
	a.write(t, new(Catalog).Writes(nil, was))
	b.hear(a)

	limits := was.Clone()
	limits.Settings.TotalActiveUsers = 999
	queue := was.Clone()
	queue.Settings.QueueAll = true
	queue.Events = []Event{plainEvent(1)}
	rules := was.Clone()
	rules.Rules = []Rule{plainRule(1)}
	a.write(t, new(Catalog).Writes(was, limits))
	b.write(t, new(Catalog).Writes(was, queue))
	b.write(t, new(Catalog).Writes(queue, func() *Room { r := queue.Clone(); r.Rules = rules.Rules; return r }()))
	a.hear(b)
	b.hear(a)
	for _, s := range []*store{a, b} {
		got := Read(s).Room(was.Settings.ID)
		if got.Settings.TotalActiveUsers != 999 || !got.Settings.QueueAll || len(got.Events) != 1 || len(got.Rules) != 1 {
			t.Errorf("node %d has %+v", s.node[0], got)
		}
	}
}

// TestNodesThatHaveHeardTheSameReadTheSame lets three nodes change what they like without
// hearing each other, and compares what they make of it afterwards.
func TestNodesThatHaveHeardTheSameReadTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := []*store{newStore(1), newStore(2), newStore(3)}
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			n := rapid.SampledFrom(nodes).Draw(t, "node")
			id := rapid.IntRange(1, 4).Draw(t, "room")
			was := Read(n).Room(plain(id).Settings.ID)
			var is *Room
			if was == nil || rapid.IntRange(0, 3).Draw(t, "drop") > 0 {
				is = anyRoom(t, id)
				is.Settings.Host = rapid.SampledFrom([]string{"a.example", "b.example"}).Draw(t, "host")
			}
			n.write(t, new(Catalog).Writes(was, is))
			if rapid.Bool().Draw(t, "hears") {
				n.hear(rapid.SampledFrom(nodes).Draw(t, "whom"))
			}
		}
		for range 2 {
			for _, n := range nodes {
				for _, o := range nodes {
					n.hear(o)
				}
			}
		}
		first := Read(nodes[0])
		settings, refused := first.Effective(nil)
		for _, n := range nodes[1:] {
			c := Read(n)
			s, r := c.Effective(nil)
			if !reflect.DeepEqual(first.order, c.order) || !reflect.DeepEqual(settings, s) || fmt.Sprint(refused) != fmt.Sprint(r) {
				t.Fatalf("node 1 reads %+v and node %d %+v", first.order, n.node[0], c.order)
			}
		}
		for i := range settings {
			if err := settings[i].Validate(); err != nil {
				t.Fatalf("%s is in force: %v", settings[i].Name, err)
			}
			for j := range i {
				if err := room.Apart(&settings[i], &settings[j]); err != nil {
					t.Fatalf("both are in force: %v", err)
				}
			}
		}
		if len(settings)+len(slices.DeleteFunc(refused, func(r Refusal) bool { return r.Event != "" })) != first.Len() {
			t.Fatalf("%d rooms, %d in force, refused: %v", first.Len(), len(settings), refused)
		}
	})
}

func TestOlderOnesHold(t *testing.T) {
	s := newStore(1)
	first, second, third := plain(1), plain(2), plain(3)
	second.Settings.Host = first.Settings.Host
	second.Settings.CookieSuffix = "second"
	third.Events = []Event{plainEvent(3), plainEvent(1), plainEvent(2), plainEvent(4), plainEvent(5), plainEvent(6)}
	third.Events[2].Event.Start = third.Events[1].Event.Start.Add(time.Minute) // event-2 overlaps event-1
	third.Events[2].Event.End = third.Events[1].Event.End
	third.Events[5].Name = "event-1"
	for i := range 120 {
		third.Rules = append(third.Rules, plainRule(i))
	}
	for _, r := range []*Room{third, second, first} {
		s.write(t, new(Catalog).Writes(nil, r))
	}
	settings, refused := Read(s).Effective(nil)
	if len(settings) != 2 || settings[0].Name != "room-1" || settings[1].Name != "room-3" {
		t.Fatalf("in force: %+v", settings)
	}
	var names []string
	for _, e := range settings[1].Events {
		names = append(names, e.Name)
	}
	if want := []string{"event-1", "event-3", "event-4", "event-5"}; !slices.Equal(names, want) {
		t.Errorf("events %v, want %v", names, want)
	}
	if n := len(settings[1].Front.Rules); n != room.MaxRules {
		t.Errorf("%d rules in force", n)
	}
	var why []string
	for _, r := range refused {
		why = append(why, r.Name+"/"+r.Event+": "+r.Why.Error())
	}
	for _, want := range []string{"room-2/: ", "room-3/event-2: event-start-time", `no time that the event "event-1", with its pre-queue, takes`, "room-3/event-1: an older event", "rules from the 101th"} {
		if !slices.ContainsFunc(why, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("nothing is refused with %q; refused: %q", want, why)
		}
	}
}

// TestLesserMistakesLeaveTheLimit: what a node cannot use is left out, and the rest holds.
func TestLesserMistakesLeaveTheLimit(t *testing.T) {
	s := newStore(1)
	r := plain(1)
	r.Settings.Front.CustomPage = "{{#broken"
	r.Rules = []Rule{plainRule(1), plainRule(2), plainRule(3)}
	r.Rules[1].Expression = "ip.src in $nowhere"
	s.write(t, new(Catalog).Writes(nil, r))
	s.write(t, ZoneWrites(r.Zone, Zone{SearchEngineCrawlerBypass: true}))
	settings, refused := Read(s).Effective(func(s *room.Settings) error {
		if s.Front.CustomPage != "" {
			return errors.New("no page")
		}
		for _, rule := range s.Front.Rules {
			if strings.Contains(rule.Expression, "$nowhere") {
				return errors.New("no list")
			}
		}
		return nil
	})
	if len(settings) != 1 || len(settings[0].Front.Rules) != 2 || settings[0].Front.CustomPage != "" || !settings[0].Front.CrawlerBypass {
		t.Errorf("in force: %+v", settings)
	}
	if len(refused) != 2 || !strings.Contains(refused[0].Why.Error(), "built-in page: no page") || !strings.Contains(refused[1].Why.Error(), "rule 2 is not asked: no list") {
		t.Errorf("refused: %v", refused)
	}
}

func TestRulesAreAskedInOrder(t *testing.T) {
	a, b := newStore(1), newStore(2)
	r := plain(1)
	r.Rules = []Rule{plainRule(3), plainRule(1), plainRule(2)}
	a.write(t, new(Catalog).Writes(nil, r))
	b.hear(a)
	r = Read(a).Room(r.Settings.ID)
	// Both add one at the end, and neither has heard of the other's.
	at, bt := r.Clone(), r.Clone()
	at.Rules = append(at.Rules, plainRule(4))
	bt.Rules = append(bt.Rules, plainRule(5))
	a.write(t, new(Catalog).Writes(r, at))
	b.write(t, new(Catalog).Writes(r, bt))
	a.hear(b)
	var got []byte
	for _, rule := range Read(a).Room(r.Settings.ID).Rules {
		got = append(got, rule.ID[0])
	}
	if !slices.Equal(got[:3], []byte{3, 1, 2}) || len(got) != 5 {
		t.Errorf("asked in the order %v", got)
	}
}

func TestLongPages(t *testing.T) {
	s := newStore(1)
	r := plain(1)
	var text strings.Builder
	for i := 0; text.Len() < MaxPage-100; i++ {
		fmt.Fprintf(&text, "%x-", i*2654435761)
	}
	r.Settings.Front.CustomPage = text.String()
	writes := new(Catalog).Writes(nil, r)
	s.write(t, writes)
	got := Read(s).Room(r.Settings.ID)
	if got.Settings.Front.CustomPage != text.String() || got.Incomplete != "" {
		t.Fatalf("a page of %d bytes came back with %d", text.Len(), len(got.Settings.Front.CustomPage))
	}
	pieces := 0
	for _, w := range writes {
		if strings.HasPrefix(w.Key, kindText) {
			pieces++
			if len(w.Value) > crdt.MaxValue {
				t.Errorf("%s has %d bytes", w.Key, len(w.Value))
			}
		}
	}
	if pieces < 2 {
		t.Errorf("%d pieces", pieces)
	}

	next := got.Clone()
	next.Settings.Front.CustomPage = "short"
	s.write(t, new(Catalog).Writes(got, next))
	s.collect(t)
	left := 0
	for key := range s.Keys() {
		if strings.HasPrefix(key, kindText) {
			left++
		}
	}
	if left != 1 {
		t.Errorf("%d pieces are left after a page of one", left)
	}
}

func TestATextThatHasNotArrived(t *testing.T) {
	s := newStore(1)
	r := plain(1)
	r.Settings.Front.CustomPage = "page"
	for _, w := range new(Catalog).Writes(nil, r) {
		if !strings.HasPrefix(w.Key, kindText) {
			s.write(t, []Write{w})
		}
	}
	got := Read(s).Room(r.Settings.ID)
	if got.Incomplete != "room" || got.Settings.Front.CustomPage != "" {
		t.Errorf("a room without its page is %+v", got)
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	s := newStore(1)
	s.write(t, new(Catalog).Writes(nil, plain(1)))
	c := Read(s)
	for name, tc := range map[string]struct {
		change func(*Room)
		want   string // empty: nothing is wrong
	}{
		"nothing":           {func(*Room) {}, ""},
		"zone":              {func(r *Room) { r.Zone = "a/b" }, "zone: "},
		"name taken":        {func(r *Room) { r.Settings.Name = "room-1" }, "name: "},
		"in another zone":   {func(r *Room) { r.Settings.Name, r.Zone = "room-1", "other" }, ""},
		"route taken":       {func(r *Room) { r.Settings.Host = "h1.example" }, "room-1"},
		"limit":             {func(r *Room) { r.Settings.TotalActiveUsers = 0 }, "total-active-users: "},
		"description":       {func(r *Room) { r.Description = strings.Repeat("ä", 501) }, "description: "},
		"page":              {func(r *Room) { r.Settings.Front.CustomPage = strings.Repeat("a", MaxPage+1) }, "custom-page-html: "},
		"turnstile":         {func(r *Room) { r.Turnstile.Mode = "maybe" }, "turnstile-mode: "},
		"turnstile action":  {func(r *Room) { r.Turnstile.Action = "maybe" }, "turnstile-action: "},
		"same event twice":  {func(r *Room) { r.Events = []Event{plainEvent(1), plainEvent(2)}; r.Events[1].Name = "event-1" }, "events[1].name: "},
		"event description": {func(r *Room) { r.Events = []Event{plainEvent(1)}; r.Events[0].Description = strings.Repeat("a", 501) }, "events[0].description: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := plain(2)
			tc.change(r)
			err := c.Check(r, nil)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	if err := c.Check(plain(2), func(*room.Settings) error { return fmt.Errorf("the front refuses it") }); err == nil {
		t.Error("what the front refuses is taken")
	}
}

// TestWrittenForm holds the names and meanings that nodes of other versions read.
func TestWrittenForm(t *testing.T) {
	rapidRoom := rapid.Custom(func(t *rapid.T) *Room { return anyRoom(t, 7) }).Example(3)
	var b strings.Builder
	for _, w := range new(Catalog).Writes(nil, rapidRoom) {
		if !strings.HasPrefix(w.Key, kindText) {
			fmt.Fprintf(&b, "%s %s\n", w.Key, w.Value)
		}
	}
	golden.File(t, "testdata/written.txt", b.String())
}

func TestZones(t *testing.T) {
	s := newStore(1)
	s.write(t, ZoneWrites("shop", Zone{SearchEngineCrawlerBypass: true}))
	c := Read(s)
	if !c.Zone("shop").SearchEngineCrawlerBypass || c.Zone("other").SearchEngineCrawlerBypass {
		t.Errorf("zones are %+v", c.zones)
	}
	a, b := plain(1), plain(2)
	a.Zone, b.Zone = "shop", "bar"
	s.write(t, append(new(Catalog).Writes(nil, a), new(Catalog).Writes(nil, b)...))
	if got := Read(s).Zones(); !slices.Equal(got, []string{"bar", "shop"}) {
		t.Errorf("zones are called %q", got)
	}
}

func FuzzRead(f *testing.F) {
	r := plain(1)
	r.Events, r.Rules = []Event{plainEvent(1)}, []Rule{plainRule(1), plainRule(2)}
	r.Settings.Front.CustomPage = "page"
	for _, w := range new(Catalog).Writes(nil, r) {
		f.Add(w.Key, w.Value)
	}
	f.Add("zone/a", []byte(`{"search_engine_crawler_bypass":true}`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		s := newStore(1)
		s.write(t, new(Catalog).Writes(nil, r))
		if len(key) > 512 || len(value) > crdt.MaxValue {
			return
		}
		s.write(t, []Write{{key, value}})
		settings, _ := Read(s).Effective(nil)
		for i := range settings {
			if err := settings[i].Validate(); err != nil {
				t.Fatalf("%q = %q has a room be in force that cannot be: %v", key, value, err)
			}
		}
	})
}
