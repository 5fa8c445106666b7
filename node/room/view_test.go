package room

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// busyInput is a room of three sites with a line of half an hour.
func busyInput(now time.Time) Input { return busySites(now, 3, 1800) }

// busySites is a room in which people have waited for so many seconds at each of
// so many sites.
func busySites(now time.Time, sites, waiting int) Input {
	in := Input{Nodes: nodeIDs(4), Self: nodeID(2)}
	for i := range sites {
		c := crdt.Counts{Active: 100, Waiting: map[int64]int64{}, Seen: map[int64]int64{}, Admitted: map[int64]int64{}}
		step := 60
		if i == 0 {
			step = 5
		}
		for s := 0; s < waiting; s += step {
			c.Waiting[GranuleOf(now.Add(-time.Duration(s)*time.Second), time.Minute)] += 3
		}
		for s := 0; s < 300; s += 10 {
			c.Seen[crdt.TickOf(now.Add(-time.Duration(s)*time.Second))] = 40
			c.Admitted[crdt.TickOf(now.Add(-time.Duration(s)*time.Second))] = 10
		}
		in.Sites = append(in.Sites, Site{Name: fmt.Sprintf("%03d", i), Counts: c, Nodes: 4, Own: i == 0})
	}
	return in
}

func benchmarkView(now time.Time) *View {
	return Build(Settings{Policy: Even, TotalActiveUsers: 600, NewUsersPerMinute: 1000}, busyInput(now), now)
}

// BenchmarkBuild: every node builds a view of every room four times a second.
func BenchmarkBuild(b *testing.B) {
	now := clock(b, "12:00:31")
	for _, c := range []struct {
		name           string
		sites, waiting int
	}{{"idle", 5, 0}, {"idle", 300, 0}, {"busy", 5, 1800}, {"busy", 300, 300}} {
		b.Run(fmt.Sprintf("sites=%d/crowd=%s", c.sites, c.name), func(b *testing.B) {
			in := busySites(now, c.sites, c.waiting)
			if c.waiting == 0 {
				for i := range in.Sites {
					in.Sites[i].Counts = crdt.Counts{}
				}
			}
			s := Settings{Policy: Even, TotalActiveUsers: 600, NewUsersPerMinute: 1000}
			var builder Builder
			b.ReportAllocs()
			for b.Loop() {
				builder.Build(&s, &in, now)
			}
		})
	}
}

// BenchmarkRules is a decision by a view alone.
func BenchmarkRules(b *testing.B) {
	now := clock(b, "12:00:31")
	v := benchmarkView(now)
	vis := Visitor{Arrival: now.Add(-50 * time.Second), LastPoll: now.Add(-20 * time.Second), Refresh: 20 * time.Second}
	b.ReportAllocs()
	for b.Loop() {
		v.Decide(vis, now)
	}
}

func BenchmarkEstimate(b *testing.B) {
	now := clock(b, "12:00:31")
	v := benchmarkView(now)
	b.ReportAllocs()
	for b.Loop() {
		v.Estimate(now.Add(-10*time.Minute), Shown{})
	}
}

// TestBuilderKeepsNothing: a builder that has built other views, larger and
// smaller ones, builds what a new one does, and earlier views stay as they were.
func TestBuilderKeepsNothing(t *testing.T) {
	now := clock(t, "12:00:31")
	var used Builder
	var views []*View
	var before []string
	for i, in := range []Input{busyInput(now), {}, busySites(now, 7, 200), oneSite(benchCounts(now), 2, 1), busyInput(now.Add(-time.Hour))} {
		s := Settings{TotalActiveUsers: 600, NewUsersPerMinute: 1000, Policy: []Policy{Even, Counter}[i%2]}
		got, want := used.Build(&s, &in, now), Build(s, in, now)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("input %d:\n%+v\nwant\n%+v", i, got, want)
		}
		views, before = append(views, got), append(before, fmt.Sprintf("%+v", *got))
	}
	for i, v := range views {
		if after := fmt.Sprintf("%+v", *v); after != before[i] {
			t.Errorf("view %d has changed", i)
		}
	}
}

func TestBuildKeepsNothingOfItsInput(t *testing.T) {
	now := clock(t, "12:00:31")
	in := busyInput(now)
	v := Build(Settings{Policy: Even, TotalActiveUsers: 600, NewUsersPerMinute: 1000}, in, now)
	before := fmt.Sprintf("%+v", *v)
	for i := range in.Sites {
		for at := range in.Sites[i].Waiting {
			in.Sites[i].Waiting[at] = 99
		}
		in.Sites[i].Name = "x"
	}
	clear(in.Nodes)
	if after := fmt.Sprintf("%+v", *v); after != before {
		t.Errorf("view changed with its input:\n%s\n%s", before, after)
	}
}

func TestViewIsJSON(t *testing.T) {
	v := benchmarkView(clock(t, "12:00:31"))
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back View
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back.Sites, v.Sites) || back.AllowWaiting != v.AllowWaiting {
		t.Error("the view does not survive JSON")
	}
}

// TestOwnSiteIsNeverGone: this node is there, whatever is said of its site.
func TestOwnSiteIsNeverGone(t *testing.T) {
	in := oneSite(crdt.Counts{}, 2, 0)
	in.Sites[0].Gone = true
	s := Settings{Policy: Even, TotalActiveUsers: 10, NewUsersPerMinute: 10}
	if v := Build(s, in, clock(t, "12:00:31")); v.AllowNew != 5 {
		t.Errorf("one of two nodes may let in %d of 10", v.AllowNew)
	}
}

// TestEstimateGoesDown: as the line is let in, nobody's estimate gets worse.
func TestEstimateGoesDown(t *testing.T) {
	now := clock(t, "12:00:31")
	in := busyInput(now)
	s := Settings{Policy: Even, TotalActiveUsers: 600, NewUsersPerMinute: 1000}
	arrival := now.Add(-5 * time.Minute)
	last, _ := Build(s, in, now).Estimate(arrival, Shown{})
	if !last.Known || last.Ahead == 0 {
		t.Fatalf("estimate %+v says nothing", last)
	}
	for s2 := 1790; s2 >= 300; s2 -= 5 {
		delete(in.Sites[0].Waiting, GranuleOf(now.Add(-time.Duration(s2)*time.Second), time.Minute))
		e, _ := Build(s, in, now).Estimate(arrival, Shown{})
		if e.Minutes > last.Minutes || e.Position > last.Position {
			t.Fatalf("estimate went from %+v to %+v", last, e)
		}
		last = e
	}
}

func TestSpans(t *testing.T) {
	at := func(s string) time.Time { return clock(t, s) }
	cases := []struct {
		arrival string
		span    time.Duration
		bucket  string
		granule string
	}{
		{"12:00:00", time.Minute, "12:00:00", "12:00:00"},
		{"12:00:59.999", time.Minute, "12:00:00", "12:00:55"},
		{"12:00:07", 5 * time.Second, "12:00:05", "12:00:07"},
		{"12:00:24", 25 * time.Second, "12:00:00", "12:00:24"}, // the last granule is short
		{"12:00:07", 0, "12:00:07", "12:00:07"},
	}
	for _, c := range cases {
		// Spans are counted from 1970; a day is a multiple of every one here.
		if got := time.Unix(BucketOf(at(c.arrival), c.span), 0); !got.Equal(at(c.bucket)) {
			t.Errorf("bucket of %s by %v: got %v, want %s", c.arrival, c.span, got.UTC(), c.bucket)
		}
		if got := time.Unix(GranuleOf(at(c.arrival), c.span), 0); !got.Equal(at(c.granule)) {
			t.Errorf("granule of %s by %v: got %v, want %s", c.arrival, c.span, got.UTC(), c.granule)
		}
	}
	for span := time.Second; span <= time.Minute; span += time.Second {
		for s := range 300 {
			a := at("12:00").Add(time.Duration(s) * time.Second)
			g := time.Unix(GranuleOf(a, span), 0)
			if BucketOf(g, span) != BucketOf(a, span) || g.After(a) {
				t.Fatalf("span %v: the granule of %v starts in another bucket", span, a)
			}
			end := granuleEnd(g.Unix(), seconds(span))
			if end <= a.Unix() || end-g.Unix() > granule(seconds(span)) {
				t.Fatalf("span %v: granule of %v is %d to %d", span, a, g.Unix(), end)
			}
		}
	}
}

func TestValidateNamesEveryField(t *testing.T) {
	good := Settings{Name: "shop", TotalActiveUsers: 1, NewUsersPerMinute: 1}.WithDefaults()
	if err := good.Validate(); err != nil {
		t.Fatalf("defaults are refused: %v", err)
	}
	breaks := map[string]func(s *Settings){
		"name":                    func(s *Settings) { s.Name = "a b" },
		"host":                    func(s *Settings) { s.Host = "Shop:80" },
		"path":                    func(s *Settings) { s.Path = "shop" },
		"cookie-suffix":           func(s *Settings) { s.CookieSuffix = "a;b" },
		"total-active-users":      func(s *Settings) { s.TotalActiveUsers = 0 },
		"new-users-per-minute":    func(s *Settings) { s.NewUsersPerMinute = 1 << 31 },
		"session-duration":        func(s *Settings) { s.SessionDuration = -1 },
		"queueing-method":         func(s *Settings) { s.QueueingMethod = "lifo" },
		"policy":                  func(s *Settings) { s.Policy = "fair" },
		"curve-factor":            func(s *Settings) { s.CurveFactor = 9 },
		"bucket-span":             func(s *Settings) { s.BucketSpan = 1500 * time.Millisecond },
		"refresh-interval":        func(s *Settings) { s.RefreshInterval = time.Hour },
		"place-kept":              func(s *Settings) { s.PlaceKept = 0 },
		"queueing-status-code":    func(s *Settings) { s.QueueingStatusCode = 503 },
		"share-freeze":            func(s *Settings) { s.ShareFreeze = 25 * time.Hour },
		"on-partition":            func(s *Settings) { s.OnPartition = "closed" },
		"enabled-origin-commands": func(s *Settings) { s.EnabledOriginCommands = []OriginCommand{Revoke, "restart"} },
		"events": func(s *Settings) {
			at := clock(t, "12:00")
			for i := range MaxEvents + 1 {
				s.Events = append(s.Events, Event{Name: "e", Start: at.Add(time.Duration(i) * time.Hour), End: at.Add(time.Duration(i+1) * time.Hour)})
			}
		},
	}
	all := good
	for field, damage := range breaks {
		s := good
		damage(&s)
		damage(&all)
		err := s.Validate()
		fe, ok := errors.AsType[*FieldError](err)
		if !ok || fe.Field != field || fe.Allowed == "" {
			t.Errorf("%s: got error %v", field, err)
		}
	}
	joined, ok := all.Validate().(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != len(breaks) {
		t.Errorf("all at once: got %v, want %d errors", all.Validate(), len(breaks))
	}
}

// TestCompleteSettingsAreThoseWithDefaults: complete knows each setting that has a default.
func TestCompleteSettingsAreThoseWithDefaults(t *testing.T) {
	full := Settings{}.WithDefaults()
	if !full.complete() {
		t.Error("settings with all defaults are not complete")
	}
	of := reflect.TypeFor[Settings]()
	for i := range of.NumField() {
		s := full
		if f := reflect.ValueOf(&s).Elem().Field(i); f.IsZero() {
			continue
		} else {
			f.SetZero()
		}
		if s.complete() {
			t.Errorf("settings without %s are taken for complete", of.Field(i).Name)
		}
	}
}

// TestViewsShareSettings, as long as no event changes them, and so take less memory.
func TestViewsShareSettings(t *testing.T) {
	now := time.Unix(1_767_268_800, 0)
	total := 7
	s := Settings{TotalActiveUsers: 10, Events: []Event{{Name: "sale", Start: now.Add(time.Hour), End: now.Add(2 * time.Hour), TotalActiveUsers: &total}}}.WithDefaults()
	var b Builder
	if v := b.Build(&s, &Input{}, now); v.Settings != &s {
		t.Error("a view has settings of its own while there is no event")
	}
	if v := b.Build(&s, &Input{}, now.Add(90*time.Minute)); v.Settings == &s || v.Settings.TotalActiveUsers != total || s.TotalActiveUsers != 10 {
		t.Errorf("in an event the view has %d, the settings say %d", v.Settings.TotalActiveUsers, s.TotalActiveUsers)
	}
}
