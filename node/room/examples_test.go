package room

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// examples is the part of testdata/worked-examples.json that this package
// covers.
type examples struct {
	SiteShares []struct {
		Name             string
		Now              string
		TotalActiveUsers int `json:"total_active_users"`
		Seen             map[string]map[string]int64
		Slots            int
		Want             map[string]int
	} `json:"site_shares"`
	Merge struct {
		Dublin, Nairobi, Want struct {
			Active  int64
			Buckets map[string]int64
		}
	}
	Reserve []struct {
		Name              string
		TotalActiveUsers  int `json:"total_active_users"`
		NewUsersPerMinute int `json:"new_users_per_minute"`
		Active            int64
		Buckets           map[string]int64
		WantSlots         int            `json:"want_slots"`
		WantReserved      map[string]int `json:"want_reserved"`
		WantNew           int            `json:"want_new"`
	}
	PartialBucket []struct {
		Name     string
		Reserved int
		Shares   map[string]float64
		Want     map[string]int
	} `json:"partial_bucket"`
	NodeSplit []struct {
		Policy      Policy
		Slots       int
		Nodes       int
		Utilization float64
		CurveFactor float64 `json:"curve_factor"`
		WantEach    int     `json:"want_each"`
	} `json:"node_split"`
	Arrivals []struct {
		Name          string
		Policy        Policy
		Slots         int
		PerNode       int `json:"per_node"`
		SiteSlots     int `json:"site_slots"`
		AnywhereSlots int `json:"anywhere_slots"`
		Arrive        []int
		WantAdmitted  int  `json:"want_admitted"`
		WantQueued    *int `json:"want_queued"`
		WantOvershoot *int `json:"want_overshoot"`
	}
	Wait []struct {
		Name           string
		LetInPerMinute int64 `json:"let_in_per_minute"`
		Buckets        map[string]int64
		Bucket         string
		Waiting        int64
		P              float64
		WantMinutes    float64 `json:"want_minutes"`
		Tolerance      float64
	}
}

func readExamples(t *testing.T) examples {
	t.Helper()
	data, err := os.ReadFile("testdata/worked-examples.json")
	if err != nil {
		t.Fatal(err)
	}
	var e examples
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// clock returns the time of day on the one day on which all tests take place.
func clock(t testing.TB, s string) time.Time {
	t.Helper()
	for _, layout := range []string{"15:04:05.000", "15:04:05", "15:04"} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.AddDate(2026, 0, 0)
		}
	}
	t.Fatalf("%q is no time of day", s)
	return time.Time{}
}

func nodeID(n int) crdt.NodeID { return crdt.NodeID{byte(n), byte(n >> 8), 1} }

func nodeIDs(n int) []crdt.NodeID {
	ids := make([]crdt.NodeID, n)
	for i := range ids {
		ids[i] = nodeID(i)
	}
	return ids
}

// oneSite is the input of one node of a site that is the whole mesh.
func oneSite(c crdt.Counts, nodes, self int) Input {
	return Input{
		Sites: []Site{{Name: "here", Counts: c, Nodes: nodes, Own: true}},
		Nodes: nodeIDs(nodes), Self: nodeID(self),
	}
}

func buckets(t testing.TB, m map[string]int64) map[int64]int64 {
	t.Helper()
	out := make(map[int64]int64)
	for at, n := range m {
		out[clock(t, at).Unix()] = n
	}
	return out
}

func TestExampleSiteShares(t *testing.T) {
	for _, c := range readExamples(t).SiteShares {
		t.Run(c.Name, func(t *testing.T) {
			now := clock(t, c.Now)
			bySite := map[string]crdt.Counts{}
			for minute, seen := range c.Seen {
				at := now.Truncate(time.Minute).Add(-settledBack * time.Minute)
				if minute != "settled" {
					at = clock(t, minute)
				}
				for site, n := range seen {
					if bySite[site].Seen == nil {
						bySite[site] = crdt.Counts{Seen: map[int64]int64{}}
					}
					bySite[site].Seen[crdt.TickOf(at)] = n
				}
			}
			var in Input
			for site, counts := range bySite {
				in.Sites = append(in.Sites, Site{Name: site, Counts: counts, Nodes: 1, Own: len(in.Sites) == 0})
			}
			var tally tally
			tally.take(new(Settings{Policy: Even}.WithDefaults()), &in, now)
			limit := c.TotalActiveUsers
			if limit == 0 {
				limit = 1
			}
			parts, anywhere := Shares(c.Slots, limit, tally.seen[len(tally.bases)-1]) // at the very edge of a minute, of the one that begins
			got := map[string]int{"anywhere": anywhere}
			for i, s := range tally.sites {
				got[s.name] = parts[i]
			}
			for site, want := range c.Want {
				if got[site] != want {
					t.Errorf("%s: got %d, want %d", site, got[site], want)
				}
			}
			if sum := parts[0] + parts[1] + anywhere; sum != c.Slots {
				t.Errorf("parts add up to %d, want %d", sum, c.Slots)
			}
		})
	}
}

func TestExampleMerge(t *testing.T) {
	m := readExamples(t).Merge
	v := Build(Settings{Policy: Even, TotalActiveUsers: 200, NewUsersPerMinute: 200}, Input{
		Sites: []Site{
			{Name: "dublin", Counts: crdt.Counts{Active: m.Dublin.Active, Waiting: buckets(t, m.Dublin.Buckets)}, Nodes: 1, Own: true},
			{Name: "nairobi", Counts: crdt.Counts{Active: m.Nairobi.Active, Waiting: buckets(t, m.Nairobi.Buckets)}, Nodes: 1},
		},
		Nodes: nodeIDs(1), Self: nodeID(0),
	}, clock(t, "15:58"))
	if int64(v.Active) != m.Want.Active {
		t.Errorf("active: got %d, want %d", v.Active, m.Want.Active)
	}
	got := map[int64]int64{}
	for _, b := range v.Buckets {
		got[b.Start] = int64(b.Waiting)
	}
	if want := buckets(t, m.Want.Buckets); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("buckets: got %v, want %v", got, want)
	}
}

func TestExampleReserve(t *testing.T) {
	for _, c := range readExamples(t).Reserve {
		t.Run(c.Name, func(t *testing.T) {
			counts := crdt.Counts{Active: c.Active, Waiting: buckets(t, c.Buckets)}
			v := Build(Settings{Policy: Even, TotalActiveUsers: c.TotalActiveUsers, NewUsersPerMinute: c.NewUsersPerMinute},
				oneSite(counts, 1, 0), clock(t, "15:58"))
			if v.Slots != c.WantSlots || v.SlotsNew != c.WantNew {
				t.Errorf("got %d slots, %d for new visitors; want %d, %d", v.Slots, v.SlotsNew, c.WantSlots, c.WantNew)
			}
			for at, want := range c.WantReserved {
				start := clock(t, at).Unix()
				i := slices.IndexFunc(v.Buckets, func(b Bucket) bool { return b.Start == start })
				if v.Buckets[i].Reserved != want {
					t.Errorf("bucket %s: got %d reserved, want %d", at, v.Buckets[i].Reserved, want)
				}
			}
		})
	}
}

func TestExamplePartialBucket(t *testing.T) {
	for _, c := range readExamples(t).PartialBucket {
		t.Run(c.Name, func(t *testing.T) {
			var weights []int
			var names []string
			for site, share := range c.Shares {
				names = append(names, site)
				weights = append(weights, int(share*100))
			}
			for i, got := range Apportion(c.Reserved, weights) {
				if want := c.Want[names[i]]; got != want {
					t.Errorf("%s: got %d, want %d", names[i], got, want)
				}
			}
		})
	}
}

// allowances returns what each of a site's nodes may admit of slots, in a room
// that is as full as utilization says.
func allowances(t *testing.T, p Policy, slots, nodes int, utilization, factor float64) []int {
	t.Helper()
	active := 0
	if utilization > 0 {
		active = 1_000_000
	}
	limit := slots + active
	if utilization > 0 {
		limit = int(float64(active) / utilization)
	}
	s := Settings{TotalActiveUsers: limit, NewUsersPerMinute: slots, Policy: p, CurveFactor: factor}
	out := make([]int, nodes)
	for i := range out {
		// The pause of a turn: what does not divide goes to nobody.
		v := Build(s, oneSite(crdt.Counts{Active: int64(active)}, nodes, i), clock(t, "12:00:00"))
		if v.Slots != slots {
			t.Fatalf("got %d slots, want %d", v.Slots, slots)
		}
		out[i] = v.AllowNew
	}
	return out
}

func TestExampleNodeSplit(t *testing.T) {
	for i, c := range readExamples(t).NodeSplit {
		t.Run(fmt.Sprintf("%d_%s", i, c.Policy), func(t *testing.T) {
			for node, got := range allowances(t, c.Policy, c.Slots, c.Nodes, c.Utilization, c.CurveFactor) {
				if got != c.WantEach {
					t.Errorf("node %d: got %d, want %d", node, got, c.WantEach)
				}
			}
		})
	}
}

func TestExampleArrivals(t *testing.T) {
	ran := 0
	for _, c := range readExamples(t).Arrivals {
		ran++
		t.Run(c.Name, func(t *testing.T) {
			if c.Policy == Counter {
				checkQueued(t, c.Arrive, counted(t, c.Slots, c.SiteSlots, c.AnywhereSlots, c.Arrive), c.WantAdmitted, *c.WantQueued)
				return
			}
			utilization := 0.0
			if c.PerNode > 0 {
				// slots ÷ (nodes · utilization) = per node
				utilization = float64(c.Slots) / float64(c.PerNode*len(c.Arrive))
			}
			admitted, arrived := 0, 0
			for i, allow := range allowances(t, c.Policy, c.Slots, len(c.Arrive), utilization, 1) {
				admitted += min(allow, c.Arrive[i])
				arrived += c.Arrive[i]
			}
			if admitted != c.WantAdmitted {
				t.Errorf("admitted %d, want %d", admitted, c.WantAdmitted)
			}
			if c.WantQueued != nil && arrived-admitted != *c.WantQueued {
				t.Errorf("queued %d, want %d", arrived-admitted, *c.WantQueued)
			}
			if c.WantOvershoot != nil && admitted-c.Slots != *c.WantOvershoot {
				t.Errorf("overshoot %d, want %d", admitted-c.Slots, *c.WantOvershoot)
			}
		})
	}
	if ran != 6 {
		t.Errorf("ran %d cases, want 6", ran)
	}
}

// counted brings visitors to the nodes of one site whose counter, the same for
// all nodes, hands out what the view allows, and returns how many enter. siteSlots
// of the slots are the site's by its traffic, the rest is anywhere's; if neither
// is given, all are the site's.
func counted(t *testing.T, slots, siteSlots, anywhere int, arrive []int) int {
	t.Helper()
	now := clock(t, "12:05:30")
	seen := map[int64]int64{crdt.TickOf(clock(t, "12:03")): int64(siteSlots)}
	if slots == 0 {
		slots = siteSlots + anywhere
	} else {
		seen[crdt.TickOf(clock(t, "12:03"))] = int64(slots)
	}
	s := Settings{TotalActiveUsers: slots, NewUsersPerMinute: slots, Policy: Counter}
	var allow [2]int
	for node := range arrive {
		v := Build(s, oneSite(crdt.Counts{Seen: seen}, len(arrive), node), now)
		if got := [2]int{v.AllowNew, v.AllowAnywhere}; node > 0 && got != allow {
			t.Fatalf("node %d: the site may let in %v, another one says %v", node, got, allow)
		} else {
			allow = got
		}
	}
	if allow[0]+allow[1] != slots || siteSlots > 0 && allow[0] != siteSlots {
		t.Fatalf("the site has %d and anywhere %d of %d slots", allow[0], allow[1], slots)
	}
	entered := 0
	for _, n := range arrive {
		for class := range allow {
			took := min(n, allow[class])
			allow[class] -= took
			n -= took
			entered += took
		}
	}
	return entered
}

func checkQueued(t *testing.T, arrive []int, admitted, wantAdmitted, wantQueued int) {
	t.Helper()
	queued := -admitted
	for _, n := range arrive {
		queued += n
	}
	if admitted != wantAdmitted || queued != wantQueued {
		t.Errorf("admitted %d and queued %d, want %d and %d", admitted, queued, wantAdmitted, wantQueued)
	}
}

func TestExampleWait(t *testing.T) {
	for _, c := range readExamples(t).Wait {
		t.Run(c.Name, func(t *testing.T) {
			if c.P > 0 {
				got := randomWait(float64(c.LetInPerMinute), float64(c.Waiting), c.P)
				if math.Abs(got-c.WantMinutes) > c.Tolerance {
					t.Errorf("got %f minutes, want %f", got, c.WantMinutes)
				}
				return
			}
			now := clock(t, "15:58")
			counts := crdt.Counts{Waiting: buckets(t, c.Buckets), Admitted: map[int64]int64{}}
			for i := int64(1); i <= ticksPerMinute; i++ {
				counts.Admitted[crdt.TickOf(now)-i] = c.LetInPerMinute / ticksPerMinute
			}
			v := Build(Settings{Policy: Even, TotalActiveUsers: 1, NewUsersPerMinute: 1}, oneSite(counts, 1, 0), now)
			if e, _ := v.Estimate(clock(t, c.Bucket), Shown{}); !e.Known || e.Minutes != int(c.WantMinutes) {
				t.Errorf("got %+v, want %v minutes", e, c.WantMinutes)
			}
		})
	}
}
