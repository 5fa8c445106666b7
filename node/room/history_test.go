package room

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// divided is a mesh whose sites go on closing ticks, each known to those of its
// own component only.
type divided struct {
	set   Settings
	start time.Time
	sites []Site    // as they are; Seen by tick
	part  []int     // component of each site
	cut   [][]int64 // newest tick of a site that another one has; 0: all
	hist  []History
}

func newDivided(rng *rand.Rand, sites int) *divided {
	d := &divided{
		set:   Settings{Policy: Even, TotalActiveUsers: 1 + rng.IntN(300), NewUsersPerMinute: 1 + rng.IntN(300)}.WithDefaults(),
		start: time.Unix(1_767_268_800, 0), part: make([]int, sites), cut: make([][]int64, sites), hist: make([]History, sites),
	}
	for i := range sites {
		d.cut[i] = make([]int64, sites)
		site := Site{Name: string(rune('a' + i)), Nodes: 1 + rng.IntN(4), Counts: crdt.Counts{Seen: map[int64]int64{}}}
		busy := rng.Int64N(60)
		for t := range int64(120) {
			site.Seen[crdt.TickOf(d.start)+t] = rng.Int64N(busy + 1)
		}
		d.sites = append(d.sites, site)
	}
	return d
}

// observe has one site look at all others after d of the test.
func (d *divided) observe(self int, after time.Duration) Frozen {
	now := d.start.Add(after)
	sites := make([]Site, len(d.sites))
	for i, site := range d.sites {
		site.Own = i == self
		site.Closed = crdt.TickOf(now.Add(-3*time.Second)) - 1
		if cut := d.cut[self][i]; cut > 0 {
			site.Closed, site.Nodes = min(site.Closed, cut), 0
		}
		site.Seen = maps.Clone(site.Seen)
		maps.DeleteFunc(site.Seen, func(at, _ int64) bool { return at > site.Closed+1 || at < crdt.TickOf(now)-60 })
		sites[i] = site
	}
	return d.hist[self].Observe(&d.set, sites, now)
}

// sever puts sites into components at a moment. Who is cut off already stays so.
func (d *divided) sever(after time.Duration, part func(i int) int) {
	for i := range d.sites {
		d.part[i] = part(i)
		for j := range d.sites {
			if d.cut[i][j] == 0 && part(i) != part(j) {
				d.cut[i][j] = crdt.TickOf(d.start.Add(after-3*time.Second)) - 1
			}
		}
	}
}

func (d *divided) run(from, to time.Duration) {
	for at := from; at < to; at += 10 * time.Second {
		for i := range d.sites {
			d.observe(i, at)
		}
	}
}

// TestSidesOfACutAddUp: whatever the traffic, what the sides of a cut have for
// themselves is the room, exactly; also when one side is cut a second time, after
// the traffic that the first line was drawn from is forgotten.
func TestSidesOfACutAddUp(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		d := newDivided(rng, 2+rng.IntN(5))
		d.run(0, 130*time.Second)
		first := time.Duration(130+rng.IntN(40)) * time.Second
		d.run(130*time.Second, first)
		side := make([]int, len(d.sites))
		for i := range side {
			side[i] = rng.IntN(2)
		}
		d.sever(first, func(i int) int { return side[i] })
		d.run(first, first+40*time.Second)
		d.check(t, seed, first+40*time.Second)

		second := first + time.Duration(40+rng.IntN(700))*time.Second
		d.run(first+40*time.Second, second)
		d.sever(second, func(i int) int { return side[i] * (1 + i%2) })
		d.run(second, second+40*time.Second)
		d.check(t, seed, second+40*time.Second)
	}
}

// check compares what every component believes to have.
func (d *divided) check(t *testing.T, seed uint64, at time.Duration) {
	t.Helper()
	for _, limit := range []int{1, 2, 7, d.set.TotalActiveUsers, 1 << 30} {
		own := map[int]int{}
		for i := range d.sites {
			has := limit - d.observe(i, at).kept(limit)
			if before, ok := own[d.part[i]]; ok && before != has {
				t.Fatalf("seed %d: sites of one side have %d and %d of %d", seed, before, has, limit)
			}
			own[d.part[i]] = has
		}
		sum := 0
		for _, n := range own {
			sum += n
		}
		if sum != limit {
			t.Fatalf("seed %d: %d sides have %v of %d", seed, len(own), own, limit)
		}
	}
}

// TestRestartInsideACut: a node that starts while sites are silent, which fell
// silent one after the other, draws the same line as its mates, as long as the
// counts of the minutes before are there. So a room for one has one visitor.
func TestRestartInsideACut(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 4))
		d := newDivided(rng, 4)
		d.run(0, 140*time.Second)
		second := 140*time.Second + time.Duration(rng.IntN(200))*time.Second
		d.sever(140*time.Second, func(i int) int { return i / 2 })
		d.run(140*time.Second, second)
		d.sever(second, func(i int) int { return i/2 + 2*(i%2) })
		last := second + time.Duration(40+rng.IntN(100))*time.Second
		d.run(second, last)
		before := d.observe(0, last)
		d.hist[0] = History{}
		after := d.observe(0, last)
		if !slices.Equal(before.line, after.line) || !slices.Equal(after.sites, []string{"b", "c", "d"}) {
			t.Fatalf("seed %d: %v, after the restart %v", seed, before, after)
		}
		d.check(t, seed, last)
		d.hist[0] = History{}
		if f := d.observe(0, second+16*time.Minute); f.Any() {
			t.Fatalf("seed %d: frozen for longer than shares are", seed)
		}
	}
}

func TestStanding(t *testing.T) {
	now := clock(t, "12:00:00")
	closed := func(age time.Duration) int64 { return crdt.TickOf(now.Add(-age)) - 1 }
	for _, c := range []struct {
		name   string
		site   Site
		freeze time.Duration
		want   standing
	}{
		{"own", Site{Own: true, Closed: closed(time.Hour)}, 0, takesPart},
		{"new", Site{}, 0, takesPart},
		{"in touch", Site{Closed: closed(20 * time.Second)}, 0, takesPart},
		{"silent", Site{Closed: closed(30 * time.Second)}, 0, silent},
		{"silent to the last", Site{Closed: closed(15*time.Minute - 10*time.Second)}, 0, silent},
		{"for too long", Site{Closed: closed(15 * time.Minute)}, 0, left},
		{"for longer than a short freeze", Site{Closed: closed(2 * time.Minute)}, 2 * time.Minute, left},
		{"for as long as nobody freezes it", Site{Closed: closed(time.Hour)}, -1, silent},
		{"gone", Site{Closed: closed(0), Gone: true}, 0, left},
		{"ahead", Site{Closed: closed(-20 * time.Second)}, 0, takesPart},
	} {
		if got := c.site.standing(&Settings{Policy: Even, ShareFreeze: c.freeze}, now); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// TestDoubt: between the moment at which the nodes of a site are out of sight and
// that at which it is silent, each side leaves the other its part of what no
// traffic claims.
func TestDoubt(t *testing.T) {
	for _, policy := range []Policy{Even, Counter} {
		now := clock(t, "12:00:14")
		s := Settings{TotalActiveUsers: 90, NewUsersPerMinute: 90, Policy: policy}
		together := 0
		for _, own := range []string{"a", "b"} {
			var h History
			nodes := map[string]int{"a": 2, "b": 1}
			look := func(now time.Time, reach bool) *View {
				in := Input{Nodes: nodeIDs(nodes[own]), Self: nodeID(0)}
				for name, n := range nodes {
					site := Site{Name: name, Own: name == own, Nodes: n, Closed: crdt.TickOf(clock(t, "12:00:00"))}
					if !reach && name != own {
						site.Nodes = 0
					}
					in.Sites = append(in.Sites, site)
				}
				in.Frozen = h.Observe(&s, in.Sites, now)
				in.Away = !reach && own == "b" // the counter of the places of no site is one of a's
				return Build(s, in, now)
			}
			look(now, true)
			v := look(now.Add(10*time.Second), false)
			for _, p := range v.Sites {
				if p.Own {
					together += p.New
				}
			}
			together += v.AllowAnywhere
		}
		if together != 90 {
			t.Errorf("%s: both sides have %d of 90", policy, together)
		}
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	d := newDivided(rand.New(rand.NewPCG(1, 1)), 5)
	sites := d.sites
	now := d.start
	for i := range sites {
		sites[i].Closed = crdt.TickOf(now) - 2
	}
	var h History
	h.Observe(&d.set, sites, now)
	if n := testing.AllocsPerRun(100, func() { h.Observe(&d.set, sites, now) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	for i := range 1000 {
		h.Observe(&d.set, append(sites[:4:4], Site{Name: fmt.Sprint(i), Nodes: 1}), now)
	}
	if len(h.marks) > 2*len(sites) {
		t.Errorf("remembers %d sites of %d", len(h.marks), len(sites))
	}
}

// TestSilentSiteHoldsWhatItHeld: as long as counts of a silent site have not
// faded, the others leave it what it had in, be it more than its share.
func TestSilentSiteHoldsWhatItHeld(t *testing.T) {
	now := clock(t, "12:10:00")
	seen := func(n int64) map[int64]int64 { return map[int64]int64{crdt.TickOf(clock(t, "12:07:30")): n} }
	for _, c := range []struct{ active, want int }{{0, 50}, {50, 50}, {70, 30}, {100, 0}, {140, 0}} {
		in := Input{Nodes: nodeIDs(1), Self: nodeID(0), Sites: []Site{
			{Name: "a", Own: true, Nodes: 1, Counts: crdt.Counts{Seen: seen(100)}},
			{Name: "b", Closed: crdt.TickOf(now) - 5, Counts: crdt.Counts{Active: int64(c.active), Seen: seen(100)}},
		}}
		s := Settings{Policy: Even, TotalActiveUsers: 100, NewUsersPerMinute: 100}
		var h History
		in.Frozen = h.Observe(&s, in.Sites, now)
		if v := Build(s, in, now); v.Slots != c.want || !v.Sites[1].Frozen {
			t.Errorf("%d active at the silent site: %d slots, want %d", c.active, v.Slots, c.want)
		}
	}
}
