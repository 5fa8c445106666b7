package room

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// FuzzRights checks meshes of the policy Escrow that know everything, some sites
// of which are out of reach: slots are what the others' rights leave, everyone in
// turn may come in at their own site, and nobody waits for whom a cut keeps away.
func FuzzRights(f *testing.F) {
	for seed := range uint64(128) {
		f.Add(seed, uint16(seed*7), uint16(seed*13), byte(seed), byte(seed*5), int64(seed)*1777)
	}
	f.Fuzz(func(t *testing.T, seed uint64, limit, rate uint16, away, shape byte, ms int64) {
		rng := rand.New(rand.NewPCG(seed, 9))
		now := time.Unix(1_767_268_800, 0).Add(time.Duration(ms%86_400_000) * time.Millisecond)
		s := fuzzSettings(max(1, limit), max(1, rate), shape&^1, 0xe3, now)
		if s.closed() {
			return
		}
		in, reserved, slots := 0, 0, -1
		for own, nodes := range world(rng, s, now) {
			if own > 0 && away>>own&1 == 1 {
				continue // on the other side
			}
			cut(nodes[0].Sites, away, now)
			v := Build(s, nodes[0], now)
			checkView(t, v, &nodes[0])
			checkAllowed(t, v, &nodes[0])
			checkRights(t, v, nodes[0].Sites, away)
			if slots >= 0 && v.Slots != slots {
				t.Errorf("site %d has %d slots, another one %d, from the same counts", own, v.Slots, slots)
			}
			slots, reserved = v.Slots, v.Slots-v.SlotsNew
			in += v.AllowWaiting
			if !v.OpenToNew {
				in += v.AllowNew
			}
		}
		if in != reserved {
			t.Errorf("%d may come in, places for %d are reserved", in, reserved)
		}
	})
}

// cut has the sites of a bit set fall silent: half of them as membership sees it.
func cut(sites []Site, away byte, now time.Time) {
	for i := range sites {
		sites[i].Closed = crdt.TickOf(now) - 1
		switch gone := away>>i&1 == 1; {
		case gone && i%2 == 1 && i > 0:
			sites[i].Nodes = 0
		case gone && i > 0:
			sites[i].Closed -= 4
		}
	}
}

// checkRights works out the plain way what a view of the policy Escrow has to say.
func checkRights(t *testing.T, v *View, sites []Site, away byte) {
	t.Helper()
	places, rateMost, rateLeast, active, last60s, atMost60s, waiting := int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), 0
	held := int64(0)
	tick := crdt.TickOf(v.BuiltAt)
	for i, site := range sites {
		if i > 0 && away>>i&1 == 1 {
			if !v.Sites[i].Frozen {
				t.Errorf("site %s is not out of reach", site.Name)
			}
			continue
		}
		whole, full := int64(0), int64(0)
		for at, n := range site.Admitted {
			if back := tick - at; back >= -1 && back <= ticksPerMinute {
				whole += n
				if back < ticksPerMinute {
					full += n
				}
			}
		}
		places += max(0, site.Held-site.Active)
		rateMost += max(0, site.HeldRate-full)
		rateLeast += max(0, site.HeldRate-whole)
		active += site.Active
		last60s += full
		atMost60s += whole
		for _, n := range site.Waiting {
			waiting += int(n)
		}
		if site.Own {
			held = min(site.Held, site.HeldRate)
		}
	}
	s := v.Settings
	most := max(0, min(places, rateMost, int64(s.TotalActiveUsers)-active, int64(s.NewUsersPerMinute)-last60s))
	if v.Settings.QueueingMethod == FIFO {
		// A few more may be promised to those who wait.
		soon := int64(math.Round(v.AdmittedMinute*freesSoon.Minutes())) + rateMost - rateLeast
		if over := int64(v.Slots) - most; over > 0 && (over > soon || v.SlotsNew > 0) {
			t.Errorf("%d slots, want at most %d and %d soon; %d for new visitors", v.Slots, most, soon, v.SlotsNew)
		}
	} else if int64(v.Slots) > most {
		t.Errorf("%d slots, with %d free places and at most %d free rate rights: want at most %d", v.Slots, places, rateMost, most)
	}
	if least := min(most, rateLeast, int64(s.NewUsersPerMinute)-atMost60s); int64(v.Slots) < least {
		t.Errorf("%d slots, want at least %d", v.Slots, least)
	}
	kept := 0
	for _, b := range v.Buckets {
		kept += b.Waiting
	}
	if kept != waiting {
		t.Errorf("%d wait in reach, the view has %d", waiting, kept)
	}
	if open := waiting == 0 && held > 0 || v.SlotsNew > 0; v.OpenToNew != open {
		t.Errorf("open to new visitors: %v; %d wait, %d slots for new ones, %d rights here", v.OpenToNew, waiting, v.SlotsNew, held)
	}
}

// TestToldIntervalShrinksTowardsTheHead: nobody ahead is told to come later than
// somebody behind, and nothing outside of its bounds is told.
func TestToldIntervalShrinksTowardsTheHead(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 5 * time.Second, 20 * time.Second, time.Minute} {
		for _, rate := range []float64{0, 0.1, 7, 600, 1e6} {
			v := &View{Slots: 2, AdmittedMinute: rate, Settings: complete(Settings{
				Policy: Escrow, QueueingMethod: FIFO, RefreshInterval: every,
			})}
			last := time.Duration(0)
			for ahead := range 20_000 {
				e := Estimate{Known: rate > 0, Ahead: ahead, Position: ahead + 1}
				told := v.Told([16]byte{1}, e, time.Unix(1_767_268_800, 0))
				if told < last || told < time.Second || told > every || told%time.Second != 0 {
					t.Fatalf("%d ahead, %v per minute: told %v of %v, the one before %v", ahead, rate, told, every, last)
				}
				if ahead < v.Slots && told > max(2*time.Second, every/10) {
					t.Errorf("with a place reserved: told %v of %v", told, every)
				}
				// Half of the time until the turn, as far as that is inside the bounds.
				turn := time.Duration(float64(ahead-1) / rate * float64(time.Minute))
				if rate > 0 && told > max(2*time.Second, every/10) && told > turn/2 {
					t.Fatalf("%d ahead, %v per minute: told %v, the turn is in %v", ahead, rate, told, turn)
				}
				last = told
			}
			if want := every; rate < 600 && last != want {
				t.Errorf("far from the head: told %v, want %v", last, want)
			}
		}
	}
}

// TestToldWhereNobodyWasLetInLately: the room has been full for a while, or is closed.
func TestToldWhereNobodyWasLetInLately(t *testing.T) {
	const every, soon = 20 * time.Second, 2 * time.Second
	busy := complete(Settings{Policy: Escrow, QueueingMethod: FIFO, RefreshInterval: every, SessionDuration: 5 * time.Minute, NewUsersPerMinute: 120})
	for _, c := range []struct {
		name  string
		view  View
		ahead int
		want  time.Duration
	}{
		{"next, in a full room", View{Active: 10}, 0, soon},
		{"next, and nobody inside", View{}, 0, soon},
		{"second, of a small room", View{Active: 10}, 1, every},
		{"second, of a large one", View{Active: 1000}, 1, soon},
		{"fiftieth: 200 leave in a minute, 120 may enter", View{Active: 1000}, 49, 12 * time.Second},
		{"far behind", View{Active: 1000}, 500, every},
		{"behind, and nobody inside", View{}, 1, every},
		{"a place is reserved", View{Active: 10, Slots: 3}, 2, soon},
		{"everybody waits for the operator", View{closed: true, Active: 10}, 0, every},
		{"everybody waits for an event", View{Event: EventState{Prequeueing: true}, Slots: 100}, 5, every},
	} {
		v := c.view
		v.Settings = busy
		if told := v.Told([16]byte{1}, Estimate{Ahead: c.ahead, Position: c.ahead + 1}, time.Unix(1_767_268_800, 0)); told != c.want {
			t.Errorf("%s: told %v, want %v", c.name, told, c.want)
		}
	}
}

// twoSites is a full room of the policy Escrow: five visitors a second are let in,
// and as many leave. Visitors wait in the own site by granule, in the other by
// bucket.
func twoSites(now time.Time, here, there map[int64]int64) Input {
	admitted := map[int64]int64{}
	for back := range int64(12) {
		admitted[crdt.TickOf(now)-back] = 25
	}
	counts := crdt.Counts{Active: 100, Held: 100, HeldRate: 1000, Admitted: admitted}
	own, other := counts, counts
	own.Waiting, other.Waiting = here, there
	closed := crdt.TickOf(now) - 1
	return Input{Nodes: nodeIDs(1), Self: nodeID(0), Sites: []Site{
		{Name: "a", Counts: own, Nodes: 1, Own: true, Closed: closed},
		{Name: "b", Counts: other, Nodes: 1, Closed: closed},
	}}
}

// TestNewVisitorsGetWhatHasComeFree: in a full room that nobody has left as far as
// counts tell, as many new visitors are let in beyond those who wait as leave until
// that is known; during a pre-queue none.
func TestNewVisitorsGetWhatHasComeFree(t *testing.T) {
	now := time.Unix(1_767_268_805, 0)
	bucket := now.Add(-2 * time.Minute).Unix()
	s := Settings{Policy: Escrow, TotalActiveUsers: 200, NewUsersPerMinute: 2000}
	for waiting, want := range map[int64]int{1: 4, 3: 2, 5: 0, 50: 0} {
		in := twoSites(now, map[int64]int64{bucket: waiting}, nil)
		v := Build(s, in, now)
		if v.SlotsNew != want || v.OpenToNew != (want > 0) {
			t.Errorf("%d wait: %d slots for new visitors, open %v; want %d", waiting, v.SlotsNew, v.OpenToNew, want)
		}
		before := s
		before.Events = []Event{{Name: "e", PrequeueStart: now.Add(-time.Minute), Start: now.Add(time.Hour), End: now.Add(2 * time.Hour)}}
		if v := Build(before, in, now); v.SlotsNew != 0 {
			t.Errorf("%d wait: %d slots for new visitors during a pre-queue", waiting, v.SlotsNew)
		}
	}
}

// TestPlaceInABucketThatIsBeingServed: of a bucket whose older half was let in, few
// are ahead of the first who are left, wherever those wait. They are told to come
// soon; else places lie idle until they do.
func TestPlaceInABucketThatIsBeingServed(t *testing.T) {
	now := time.Unix(1_767_268_805, 0)
	start := now.Add(-3 * time.Minute).Truncate(time.Minute)
	s := Settings{Policy: Escrow, TotalActiveUsers: 200, NewUsersPerMinute: 2000}
	for _, x := range []struct {
		from, here, there, least, most int
	}{
		{from: 30, here: 20, there: 300, least: 0, most: 30},
		{from: 0, here: 20, there: 300, least: 140, most: 180},
		{from: 30, here: 1, there: 300, least: 75, most: 180}, // one tells nothing
	} {
		here := map[int64]int64{}
		for i := range x.here {
			at := start.Add(time.Duration(x.from+(60-x.from)*i/x.here) * time.Second)
			here[GranuleOf(at, time.Minute)]++
		}
		v := Build(s, twoSites(now, here, map[int64]int64{start.Unix(): int64(x.there)}), now)
		e, _ := v.Estimate(start.Add(31*time.Second), Shown{})
		if e.Ahead < x.least || e.Ahead > x.most {
			t.Errorf("%+v: %d are ahead", x, e.Ahead)
		}
		if told := v.Told([16]byte{1}, e, now); x.most < 50 && told > 3*time.Second {
			t.Errorf("%+v: told %v although the turn is near", x, told)
		}
	}
}
