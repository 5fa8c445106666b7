package limits

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/limit"
)

// Kill ends a node. The others hear of it when Meet is called.
func (m *Mesh) Kill(n *Node) { n.down = true }

// Cut has messages between some nodes be lost; nil ends that. Who does not hear of whom is
// out of the other's mesh when Meet is called.
func (m *Mesh) Cut(cut func(a, b *Node) bool) { m.cut = cut }

// Take has a node decide about a request.
func (m *Mesh) Take(n *Node, id limit.ID, client uint64) limit.Verdict {
	c := n.Rules.Counter(id)
	return n.table.Take(KeyOf(c, client), &c.Terms, n.now(m))
}

// Replaced returns how many keys gave way to others too early.
func (m *Mesh) Replaced() (n uint64) {
	for _, node := range m.Nodes {
		n += node.table.Replaced
	}
	return n
}

func rule(requests int, period, timeout time.Duration, scope limit.Scope) limit.Rule {
	return limit.Rule{
		ID: limit.ID{1}, Name: "r", Expression: "true", Characteristics: []string{limit.Source},
		Period: period, RequestsPerPeriod: requests, MitigationTimeout: timeout, Scope: scope,
	}.WithDefaults()
}

// One client over all nodes: in no period do more pass than the limit and the bound.
func TestBoundHolds(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds /= 4
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 2))
		period := time.Duration(1+rng.IntN(60)) * time.Second
		requests := 1 + rng.IntN(1000)
		cfg := Config{
			Sites: make([]int, 1+rng.IntN(4)), Memory: 1 << 20, Seed: seed,
			Near: [2]limit.Millis{0, limit.Millis(rng.IntN(5))}, Far: [2]limit.Millis{5, limit.Millis(5 + rng.IntN(120))}, Doubled: 0.1,
		}
		nodes := 0
		for i := range cfg.Sites {
			cfg.Sites[i] = 1 + rng.IntN(4)
			nodes += cfg.Sites[i]
		}
		var timeout time.Duration
		if rng.IntN(2) == 0 {
			timeout = time.Duration(1+rng.IntN(20)) * time.Second
		}
		r := rule(requests, period, timeout, limit.Mesh)
		cfg.Rules = []limit.Rule{r}
		m := New(cfg)
		perSecond := float64(requests) / period.Seconds() * math.Pow(10, 2*rng.Float64()) // up to 100 times the limit
		perSecond = min(perSecond, 3000)
		near, far := 2*cfg.Near[1].Duration(), 2*cfg.Far[1].Duration()
		if len(cfg.Sites) == 1 {
			far = 0
		}
		bound := limit.NewBound(&r, nodes, len(cfg.Sites), near, far)
		p := limit.Millis(period.Milliseconds())
		passed := map[limit.Millis]int{} // by period
		total := 0
		begin := m.Now
		delay := limit.Millis(bound.Delay.Milliseconds())
		var came []limit.Millis // within the delay
		within := 0             // of it, requests at most
		for at := float64(begin); at < float64(begin+6*p); at += rng.ExpFloat64() * 1000 / perSecond {
			m.Run(limit.Millis(at))
			came = append(came, m.Now)
			for m.Now-came[0] > delay {
				came = came[1:]
			}
			within = max(within, len(came))
			if !m.Take(m.Nodes[rng.IntN(len(m.Nodes))], r.ID, 1).Limited {
				passed[m.Now/p]++
				total++
			}
		}
		most := requests + min(within, bound.Most)
		for i, n := range passed {
			if n > most {
				t.Errorf("seed %d: in period %d %d requests passed; the limit is %d, the bound %d more (%+v, %.0f a second)",
					seed, i, n, requests, most-requests, bound, perSecond)
			}
		}
		if testing.Verbose() {
			t.Logf("seed %d: %d nodes in %d sites, %d in %v, %.0f a second, timeout %v: %v, bound %d", seed, nodes, len(cfg.Sites), requests, period, perSecond, timeout, passed, most)
		}
	}
}

// A flood of clients, more than can be told of at once, keeps nobody from hearing of one who
// comes too often: what has no room waits, and what is told is not taken to be as old as that.
func TestFloodHidesNobody(t *testing.T) {
	const greedy, period, second = 1, 4 * time.Second, limit.Millis(1000)
	for name, c := range map[string]struct {
		sites []int
		scope limit.Scope
		flood int // clients a tick, of which each node has half
	}{
		"two sites": {[]int{1, 1}, limit.Mesh, 4000},
		"one site":  {[]int{2}, limit.Site, 14_000}, // half of them are of the node that they come to
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && c.scope == limit.Site {
				t.Skip("the same at one site takes twice as long")
			}
			few, many := rule(5, period, 0, c.scope), rule(1000, period, 0, c.scope)
			many.ID, many.Name = limit.ID{2}, "many"
			m := New(Config{Sites: c.sites, Memory: 128 << 20, Rules: []limit.Rule{few, many}, Near: [2]limit.Millis{0, 2}, Far: [2]limit.Millis{20, 60}})
			client := uint64(greedy)
			passed, begin := 0, m.Now
			for m.Now < begin+18*second {
				m.Run(m.Now + tick)
				for range c.flood {
					client++
					m.Take(m.Nodes[client%2], many.ID, client)
				}
				if (m.Now-begin)%(second/2) != 0 {
					continue
				}
				for _, n := range m.Nodes { // two a second at each: some three times the limit
					if !m.Take(n, few.ID, greedy).Limited && m.Now > begin+10*second {
						passed++
					}
				}
			}
			// Within two periods the limit lets pass 10 of 32, and each node as many if it is alone.
			if passed > 14 {
				t.Errorf("%d requests of one client passed within %v, with a limit of 5 in %v", passed, 2*period, period)
			}
			if passed < 9 {
				t.Errorf("%d requests passed, want about 10", passed)
			}
			for _, n := range m.Nodes {
				t.Logf("%s lost %d counts of %d clients", n.Name, n.exchange.Lost, client-greedy)
			}
		})
	}
}
