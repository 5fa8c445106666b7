package limits

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/limit"
)

var seeds = flag.Uint64("seeds", 200, "how many schedules of faults are run")

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
	for seed := range *seeds {
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
