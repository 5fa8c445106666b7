package limits

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/limit"
)

// Nodes of all sites are killed and start again, one after the other, within one period of a day. What one client gets
// is the limit and, for each kill, what had come to that node within the delay: not the limit once more. And who keeps
// to the limit, to the last request, is not limited.
func TestRestartsForgetNothing(t *testing.T) {
	for seed := range someSeeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			runRestarts(t, seed)
		})
	}
}

// restarts is a mesh whose nodes start again in turn, and what clients got of it.
type restarts struct {
	m     *Mesh
	rng   *rand.Rand
	rule  limit.Rule
	delay limit.Millis
	since map[*Node]limit.Millis // when a node began to start again
	late  map[*Node]limit.Millis // when a node hears who lives

	passed    int                      // requests of the greedy client
	recent    map[*Node][]limit.Millis // when they passed, at each node
	forgotten int                      // of them, at killed nodes within the delay
	within    int                      // the most that came within the delay
	came      []limit.Millis
	honest    int
}

func runRestarts(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 9))
	period := []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour}[rng.IntN(3)]
	r := rule(5+rng.IntN(200), period, 0, limit.Mesh)
	cfg := Config{
		Sites: make([]int, 2+rng.IntN(3)), Rules: []limit.Rule{r}, Memory: 1 << 16, Seed: seed,
		Near: [2]limit.Millis{0, 5}, Far: [2]limit.Millis{5, limit.Millis(10 + rng.IntN(100))}, Doubled: 0.2 * rng.Float64(),
	}
	nodes := 0
	for i := range cfg.Sites {
		cfg.Sites[i] = 1 + rng.IntN(2)
		nodes += cfg.Sites[i]
	}
	m := New(cfg)
	bound := limit.NewBound(&r, nodes, len(cfg.Sites), 2*cfg.Near[1].Duration(), 2*cfg.Far[1].Duration())
	x := &restarts{
		m: m, rng: rng, rule: r, delay: limit.Millis(bound.Delay.Milliseconds()),
		since: map[*Node]limit.Millis{}, late: map[*Node]limit.Millis{}, recent: map[*Node][]limit.Millis{},
	}
	m.Run(m.Now + 500)
	for kill, end := 0, m.Now+limit.Millis(nodes)*6000; m.Now < end; kill++ {
		x.come(t, 1000+limit.Millis(rng.IntN(1000)))
		x.kill(m.Nodes[kill%nodes])
		x.come(t, limit.Millis(200+rng.IntN(3000)))
		x.start(m.Nodes[kill%nodes])
		x.come(t, 2000)
	}
	most := r.RequestsPerPeriod + min(x.within, bound.Most) + x.forgotten
	if x.passed > most {
		t.Errorf("%d passed; the limit is %d in %v, %d came within %v, and %d were forgotten (%v)",
			x.passed, r.RequestsPerPeriod, period, x.within, bound.Delay, x.forgotten, cfg.Sites)
	}
	if x.passed < r.RequestsPerPeriod {
		t.Errorf("%d of %d passed", x.passed, r.RequestsPerPeriod)
	}
}

// come has clients come for a while: one that has no end of requests, and one that makes as many as it may.
func (x *restarts) come(t *testing.T, span limit.Millis) {
	t.Helper()
	const greedy, honest = 1, 2
	for end := x.m.Now + span; x.m.Now < end; {
		x.m.Run(x.m.Now + 1 + limit.Millis(x.rng.Int64N(60)))
		for _, n := range x.m.Nodes {
			if at, ok := x.late[n]; ok && x.m.Now >= at {
				delete(x.late, n)
				x.m.MeetAt(n)
			}
		}
		n := x.serving()
		x.came = append(x.came, x.m.Now)
		for x.m.Now-x.came[0] > x.delay {
			x.came = x.came[1:]
		}
		x.within = max(x.within, len(x.came))
		if !x.m.Take(n, x.rule.ID, greedy).Limited {
			x.passed++
			x.recent[n] = append(x.recent[n], x.m.Now)
		}
		if x.honest < x.rule.RequestsPerPeriod && x.rng.IntN(2) == 0 {
			x.honest++
			if v := x.m.Take(x.serving(), x.rule.ID, honest); v.Limited {
				t.Fatalf("who has come %d times of %d is limited: %+v", x.honest, x.rule.RequestsPerPeriod, v)
			}
		}
	}
}

// serving returns a node that takes requests: one that has been told by others what they know, or has waited for it.
func (x *restarts) serving() *Node {
	for {
		n := x.m.Nodes[x.rng.IntN(len(x.m.Nodes))]
		if !n.down && (len(n.exchange.Awaits()) == 0 && x.m.Now > x.since[n]+100 || x.m.Now >= x.since[n]+3000) {
			return n
		}
	}
}

func (x *restarts) kill(n *Node) {
	for _, at := range x.recent[n] {
		if x.m.Now-at <= x.delay {
			x.forgotten++
		}
	}
	x.recent[n] = nil
	x.m.Kill(n)
	x.meet()
}

func (x *restarts) start(n *Node) {
	x.since[n] = x.m.Now
	x.m.Begin(n)
	x.m.MeetAt(n)
	x.meet()
}

// meet has nodes hear who lives, one after the other.
func (x *restarts) meet() {
	for _, n := range x.m.Nodes {
		x.late[n] = x.m.Now + limit.Millis(x.rng.Int64N(1000))
	}
}
