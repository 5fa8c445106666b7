package limits

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/limit"
)

var seeds = flag.Uint64("seeds", 200, "how many schedules of faults are run")

// someSeeds is how many, and with -short a quarter of them.
func someSeeds() uint64 {
	if testing.Short() {
		return *seeds / 4
	}
	return *seeds
}

// trouble is what happens to a mesh while it is asked.
type trouble struct {
	m    *Mesh
	rng  *rand.Rand
	down []*Node
	late map[*Node]limit.Millis // when nodes hear who lives
}

// act has something happen: a node is killed or starts again, the mesh is cut or whole
// again. The nodes hear of it one after the other.
func (x *trouble) act() {
	m := x.m
	switch x.rng.IntN(6) {
	case 0, 1:
		if n := m.Nodes[x.rng.IntN(len(m.Nodes))]; !n.down && len(x.down) < len(m.Nodes)-1 {
			m.Kill(n)
			x.down = append(x.down, n)
		}
	case 2:
		if len(x.down) > 0 {
			m.Start(x.down[0])
			x.down = x.down[1:]
		}
	case 3:
		side := map[*Node]bool{}
		for _, n := range m.Nodes {
			side[n] = x.rng.IntN(2) == 0
		}
		oneWay := x.rng.IntN(3) == 0
		m.Cut(func(a, b *Node) bool { return side[a] != side[b] && (!oneWay || side[a]) })
	case 4:
		m.Cut(nil)
	}
	for _, n := range m.Nodes {
		x.late[n] = m.Now + limit.Millis(x.rng.Int64N(3000))
	}
}

func (x *trouble) meet() {
	for _, n := range x.m.Nodes {
		if at, ok := x.late[n]; ok && x.m.Now >= at {
			delete(x.late, n)
			x.m.MeetAt(n)
		}
	}
}

// Whatever happens to nodes, messages and clocks: who keeps to the limit is never limited,
// and each node lets no more pass in a period than the limit.
func TestFaultsLimitNobodyElse(t *testing.T) {
	for seed := range someSeeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			runFaults(t, seed)
		})
	}
}

func runFaults(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	period := time.Duration(1+rng.IntN(40)) * time.Second
	requests := 10 + rng.IntN(300)
	cfg := Config{
		Sites: make([]int, 1+rng.IntN(3)), Memory: 1 << 20, Seed: seed, Near: [2]limit.Millis{0, 5}, Far: [2]limit.Millis{5, 200},
		Doubled: 0.3 * rng.Float64(), Lost: 0.3 * rng.Float64(),
	}
	for i := range cfg.Sites {
		cfg.Sites[i] = 1 + rng.IntN(4)
	}
	scope := []limit.Scope{limit.Mesh, limit.Site}[rng.IntN(2)]
	r := rule(requests, period, time.Duration(rng.IntN(3))*10*time.Second, scope)
	cfg.Rules = []limit.Rule{r}
	m := New(cfg)
	for _, n := range m.Nodes {
		n.Skew = limit.Millis(rng.Int64N(7_200_000) - 3_600_000)
	}
	x := &trouble{m: m, rng: rng, late: map[*Node]limit.Millis{}}

	const honest, greedy = 1, 2
	p := limit.Millis(period.Milliseconds())
	every := float64(p) / (0.9 * float64(requests))
	nextHonest, nextGreedy, nextAct := float64(m.Now), float64(m.Now), float64(m.Now)
	type life struct {
		n      *Node
		boot   uint64
		period limit.Millis
	}
	passed := map[life]int{}
	for end := m.Now + 12*p; m.Now < end; {
		m.Run(limit.Millis(min(nextHonest, nextGreedy, nextAct)))
		x.meet()
		n := m.Nodes[rng.IntN(len(m.Nodes))]
		for n.down {
			n = m.Nodes[rng.IntN(len(m.Nodes))]
		}
		if now := float64(m.Now + 1); now > nextHonest {
			nextHonest += every
			if v := m.Take(n, r.ID, honest); v.Limited {
				t.Fatalf("after %v who keeps to nine tenths of the limit is limited at %s: %+v; %d in %v, %+v",
					(m.Now - (end - 12*p)).Duration(), n.Name, v, requests, period, cfg)
			}
		}
		if now := float64(m.Now + 1); now > nextGreedy {
			nextGreedy += every / 8 * rng.ExpFloat64()
			if !m.Take(n, r.ID, greedy).Limited {
				passed[life{n, n.boot, n.now(m) / p}]++
			}
		}
		if now := float64(m.Now + 1); now > nextAct {
			nextAct += float64(p) / 3 * rng.ExpFloat64()
			x.act()
		}
	}
	for l, n := range passed {
		if n > 2*requests { // its window may lie across two of the clock's
			t.Errorf("%s let %d pass in a period of its clock, and the limit is %d", l.n.Name, n, requests)
		}
	}
}

// However the owners of keys change and whatever nodes believe of that, no node takes a
// client to have come more often than it did. Clients come as often as they may, at random
// nodes within a part of the period, and then not again.
func TestChangesOfOwnersCountNothingTwice(t *testing.T) {
	for seed := range someSeeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			runChanges(t, seed)
		})
	}
}

// visits are those of one client.
type visits struct {
	client    uint64
	came      int
	next, gap float64
}

func runChanges(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 6))
	period := time.Duration(1+rng.IntN(20)) * time.Second
	r := rule(10+rng.IntN(100), period, 10*time.Second, limit.Mesh)
	cfg := Config{
		Sites: make([]int, 1+rng.IntN(3)), Rules: []limit.Rule{r}, Memory: 1 << 20, Seed: seed, Near: [2]limit.Millis{0, 5}, Far: [2]limit.Millis{5, 100},
		Doubled: 0.2 * rng.Float64(), Lost: 0.1 * float64(rng.IntN(2)),
	}
	for i := range cfg.Sites {
		cfg.Sites[i] = 1 + rng.IntN(5)
	}
	m := New(cfg)
	x := &trouble{m: m, rng: rng, late: map[*Node]limit.Millis{}}
	clients := make([]visits, 10)
	fresh := uint64(0)
	nextAct := float64(m.Now) + 1000
	for end := m.Now + 20_000; m.Now < end; {
		at := nextAct
		for i := range clients {
			if v := &clients[i]; v.client == 0 || v.came == r.RequestsPerPeriod {
				fresh++
				spread := float64(period.Milliseconds()) * rng.Float64() * rng.Float64()
				*v = visits{fresh, 0, float64(m.Now) + rng.Float64()*1000, spread / float64(r.RequestsPerPeriod)}
			}
			at = min(at, clients[i].next)
		}
		m.Run(max(limit.Millis(at), m.Now))
		x.meet()
		for i := range clients {
			clients[i].come(t, x, &r)
		}
		if float64(m.Now+1) > nextAct {
			nextAct += 500 * rng.ExpFloat64()
			x.act()
		}
	}
}

// come has a client come as often as it is due, and holds what nodes know of it to that.
func (v *visits) come(t *testing.T, x *trouble, r *limit.Rule) {
	t.Helper()
	for ; v.came < r.RequestsPerPeriod && v.next < float64(x.m.Now+1); v.next += v.gap {
		n := x.m.Nodes[x.rng.IntN(len(x.m.Nodes))]
		for n.down {
			n = x.m.Nodes[x.rng.IntN(len(x.m.Nodes))]
		}
		v.came++
		if l := x.m.Take(n, r.ID, v.client); l.Limited {
			t.Fatalf("%s limits who has come %d times, and may %d times: %+v", n.Name, v.came, r.RequestsPerPeriod, l)
		}
	}
	for _, n := range x.m.Nodes {
		c := n.Rules.Counter(r.ID)
		rep, _ := n.table.Report(KeyOf(c, v.client), &c.Terms, true, n.now(x.m))
		if known := rep.Previous + rep.Current; !n.down && known > v.came {
			t.Fatalf("%s knows of %d requests, and there were %d", n.Name, known, v.came)
		}
	}
}

// What a node could not tell any more when it lost all others, they do not hear of as if it
// came when they meet again.
func TestWhatNobodyHeardOfIsNotToldLater(t *testing.T) {
	r := rule(10, 10*time.Second, time.Minute, limit.Mesh)
	m := New(Config{Sites: []int{1, 1}, Rules: []limit.Rule{r}, Memory: 1 << 20, Near: [2]limit.Millis{0, 1}, Far: [2]limit.Millis{20, 40}})
	m.Run(m.Now + 1000)
	come := func(n *Node, requests int) {
		t.Helper()
		for range requests {
			if v := m.Take(n, r.ID, 1); v.Limited {
				t.Fatalf("%s limits who keeps to the limit: %+v", n.Name, v)
			}
		}
	}
	come(m.Nodes[0], 8)
	m.Cut(func(a, b *Node) bool { return true })
	m.Meet()
	for range 4 { // so that the key is not forgotten
		m.Run(m.Now + 10_000)
		come(m.Nodes[0], 1)
	}
	m.Cut(nil)
	m.Meet()
	m.Run(m.Now + 1000)
	come(m.Nodes[1], 5)
}

// Who comes as often as it may, all at once and then not for two periods, is not limited
// because a node was stopped for seconds and hears late of some of that.
func TestStoppedNodesLimitNobody(t *testing.T) {
	for seed := range someSeeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			runStops(t, seed)
		})
	}
}

func runStops(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	period := time.Duration(1+rng.IntN(5)) * time.Second
	p := limit.Millis(period.Milliseconds())
	r := rule(100, period, time.Minute, []limit.Scope{limit.Mesh, limit.Site}[rng.IntN(2)])
	cfg := Config{Sites: []int{3, 2}, Rules: []limit.Rule{r}, Memory: 1 << 20, Seed: seed, Near: [2]limit.Millis{0, 1}, Far: [2]limit.Millis{20, 40}, Doubled: 0.1}
	m := New(cfg)
	for _, n := range m.Nodes {
		n.Skew = limit.Millis(rng.Int64N(7_200_000) - 3_600_000)
	}
	burst := func(client uint64, requests int) {
		up := slices.DeleteFunc(slices.Clone(m.Nodes), func(n *Node) bool { return m.Now < n.stopped })
		one := up[rng.IntN(len(up))]
		for range requests {
			if v := m.Take(one, r.ID, client); v.Limited {
				t.Fatalf("%s limits client %d of %d in %v: %+v", one.Name, client, r.RequestsPerPeriod, period, v)
			}
		}
	}
	m.Run(m.Now + 200) // nodes hear of each other before anything happens
	for range 20 {
		for _, n := range m.Nodes[1:] {
			if rng.IntN(3) == 0 {
				n.stopped = m.Now + limit.Millis(rng.Int64N(int64(4*p)))
			}
		}
		m.Run(m.Now + limit.Millis(rng.Int64N(300)))
		for client := range uint64(10) {
			burst(client, r.RequestsPerPeriod)
		}
		m.Run(m.Now + 2*p + limit.Millis(rng.Int64N(int64(p))))
	}
}
