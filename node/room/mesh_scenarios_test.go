package room

import (
	"fmt"
	"testing"
	"time"
)

// TestLoneVisitor: whoever waits alone, at whatever node, gets a free slot
// within bounded time, also when there are fewer slots than nodes.
func TestLoneVisitor(t *testing.T) {
	for _, policy := range []Policy{Even, Curve} {
		for _, limit := range []int{1, 3} {
			for _, delay := range []time.Duration{0, time.Second} {
				t.Run(fmt.Sprintf("%s/limit=%d/delay=%v", policy, limit, delay), func(t *testing.T) {
					t.Parallel()
					var worst time.Duration
					for home := range 5 {
						s := Settings{TotalActiveUsers: limit, NewUsersPerMinute: 1000, Policy: policy, SessionDuration: time.Hour}
						m := newMesh(s, delay, delay, uint64(home), 5)
						m.run(time.Second)
						v := m.arrive(home, time.Duration(home)*700*time.Millisecond)
						m.run(5 * time.Minute)
						if v.entered.IsZero() {
							t.Fatalf("visitor at node %d is still out", home)
						}
						worst = max(worst, v.entered.Sub(v.arrived))
					}
					// Refused once at most: then the place is reserved.
					if most := DefaultRefreshInterval + 2*time.Second; worst > most {
						t.Errorf("waited %v, at most %v", worst, most)
					}
				})
			}
		}
	}
}

// TestTwoForOnePlace: two visitors who arrived at the same moment share one
// granule, so neither has the place for sure, and both are at the same node of
// five. One must get it all the same.
func TestTwoForOnePlace(t *testing.T) {
	const nodes = 5
	for _, home := range []int{0, 3} {
		s := Settings{TotalActiveUsers: 1, NewUsersPerMinute: 1000, Policy: Even, SessionDuration: time.Minute}.WithDefaults()
		m := newMesh(s, time.Second, time.Second, uint64(home), nodes)
		m.run(time.Second)
		for range 3 {
			m.arrive(home, time.Second)
		}
		m.run(20 * time.Minute)
		if len(m.admitted) != 3 {
			t.Fatalf("node %d: %d of 3 entered", home, len(m.admitted))
		}
		// Two frames per node, each a refresh interval and a turn or two long.
		most := 2*nodes*(s.RefreshInterval+2*turnSpan) + s.RefreshInterval + s.SessionDuration
		for i, v := range m.admitted[1:] {
			if wait := v.entered.Sub(m.admitted[i].entered); wait > most {
				t.Errorf("node %d: visitor %d waited %v for the place, at most %v", home, i+1, wait, most)
			}
		}
		if m.peak > 1 {
			t.Errorf("node %d: %d visitors in a room for 1", home, m.peak)
		}
	}
}

// crowd is a run in which more visitors come than the room holds.
type crowd struct {
	policy    Policy
	perSite   []int
	limit     int
	visitors  int
	over      time.Duration // they arrive during
	session   time.Duration
	refresh   time.Duration
	near, far time.Duration
	where     func(i, nodes int) int
}

func anywhere(i, nodes int) int { return int(mix(uint64(i)) % uint64(nodes)) }
func firstNode(int, int) int    { return 0 }

func (c crowd) run(seed uint64, during func(m *mesh)) *mesh {
	s := Settings{
		TotalActiveUsers: c.limit, NewUsersPerMinute: 100_000, Policy: c.policy,
		SessionDuration: c.session, RefreshInterval: c.refresh,
	}
	m := newMesh(s, c.near, c.far, seed, c.perSite...)
	m.run(time.Second)
	for i := range c.visitors {
		m.arrive(c.where(i, len(m.nodes)), time.Duration(m.rng.Int64N(int64(c.over))))
	}
	if during != nil {
		during(m)
	}
	for i := 0; len(m.admitted) < c.visitors && i < 600; i++ {
		m.run(10 * time.Second)
	}
	return m
}

func TestCrowd(t *testing.T) {
	base := crowd{
		perSite: []int{3, 2}, limit: 100, visitors: 600, over: 2 * time.Minute,
		session: time.Minute, refresh: 10 * time.Second, where: anywhere,
	}
	cases := []struct {
		name     string
		change   func(c *crowd)
		over     int     // most visitors above the limit
		usage    float64 // least, while a crowd waits
		disorder float64
	}{
		{"even/no delay", func(c *crowd) {}, 0, 0.8, 0.03},
		{"even/delay", func(c *crowd) { c.near, c.far = 250*time.Millisecond, time.Second }, 5, 0.8, 0.03},
		{"even/long delay", func(c *crowd) { c.near, c.far = time.Second, time.Second }, 10, 0.8, 0.03},
		{"even/one node", func(c *crowd) { c.where = firstNode }, 0, 0.75, 0.03},
		{"even/small room", func(c *crowd) { c.limit, c.visitors = 7, 60 }, 0, 0.6, 0.07},
		{"even/small room/delay", func(c *crowd) { c.limit, c.visitors, c.near, c.far = 7, 60, 250*time.Millisecond, time.Second }, 2, 0.6, 0.07},
		{"escrow/no delay", func(c *crowd) { c.policy = Escrow }, 0, 0.95, 0.03},
		{"escrow/delay", func(c *crowd) { c.policy, c.near, c.far = Escrow, 250*time.Millisecond, time.Second }, 0, 0.95, 0.03},
		{"escrow/one node", func(c *crowd) { c.policy, c.where = Escrow, firstNode }, 0, 0.95, 0.03},
		{"escrow/small room", func(c *crowd) { c.policy, c.limit, c.visitors = Escrow, 7, 60 }, 0, 0.9, 0.07},
		{"curve/no delay", func(c *crowd) { c.policy = Curve }, 20, 0.8, 0.03},
		{"curve/delay", func(c *crowd) { c.policy, c.near, c.far = Curve, 250*time.Millisecond, time.Second }, 30, 0.8, 0.03},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := base
			c.policy = Even
			tc.change(&c)
			over, usage, disorder := 0, 1.0, 0.0
			for seed := range uint64(2) {
				m := c.run(seed, nil)
				if len(m.admitted) != c.visitors {
					t.Fatalf("seed %d: %d of %d got in", seed, len(m.admitted), c.visitors)
				}
				over = max(over, m.peak-c.limit)
				usage = min(usage, m.used/m.busy)
				disorder = max(disorder, m.orderError())
			}
			t.Logf("overshoot %d of %d, usage %.3f, order error %.4f", over, c.limit, usage, disorder)
			if over > tc.over {
				t.Errorf("%d above the limit, at most %d", over, tc.over)
			}
			if usage < tc.usage {
				t.Errorf("usage %.3f, at least %.2f", usage, tc.usage)
			}
			if disorder > tc.disorder {
				t.Errorf("order error %.4f, at most %.2f", disorder, tc.disorder)
			}
		})
	}
}

// TestNodeDies: the visitors of a node that is gone move to another one and get
// in; nobody is left behind.
func TestNodeDies(t *testing.T) {
	c := crowd{
		policy: Even, perSite: []int{3, 2}, limit: 50, visitors: 400, over: time.Minute,
		session: time.Minute, refresh: 10 * time.Second, near: 250 * time.Millisecond, far: time.Second, where: anywhere,
	}
	m := c.run(1, func(m *mesh) {
		m.after(90*time.Second, func() { m.kill(1) })
		m.route = func(m *mesh, v *meshVisitor) *meshNode {
			for !m.nodes[v.home].alive {
				v.home = (v.home + 1) % len(m.nodes)
			}
			return m.nodes[v.home]
		}
	})
	if len(m.admitted) != c.visitors {
		t.Fatalf("%d of %d got in", len(m.admitted), c.visitors)
	}
	t.Logf("peak %d of %d, usage %.3f, order error %.4f", m.peak, c.limit, m.used/m.busy, m.orderError())
	if m.peak > c.limit+5 {
		t.Errorf("peak %d, limit %d", m.peak, c.limit)
	}
	if e := m.orderError(); e > 0.05 {
		t.Errorf("order error %.4f", e)
	}
}

// TestRateLimit: the limit of new visitors holds in any 60 s, not in calendar
// minutes only, but for what is admitted while news is on the way.
func TestRateLimit(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Second} {
		s := Settings{
			TotalActiveUsers: 100_000, NewUsersPerMinute: 60, Policy: Even,
			SessionDuration: time.Hour, RefreshInterval: 10 * time.Second,
		}
		m := newMesh(s, delay, delay, 3, 3, 2)
		m.run(time.Second)
		for i := range 400 {
			m.arrive(i%5, time.Duration(m.rng.Int64N(int64(time.Minute))))
		}
		m.run(6 * time.Minute)
		perMinute := float64(len(m.admitted)) / 6
		t.Logf("delay %v: at most %d in 60 s, %.1f per minute, limit 60", delay, m.peakRate, perMinute)
		if most := 60 + int(3*delay/time.Second); m.peakRate > most {
			t.Errorf("delay %v: %d in 60 s, at most %d", delay, m.peakRate, most)
		}
		if perMinute < 50 {
			t.Errorf("delay %v: %.1f per minute, limit 60", delay, perMinute)
		}
	}
}

// TestSpike: many new visitors reach an empty room at once, spread evenly. Even
// holds the limit but for a place or two per node while news is on its way. Curve gives
// each node the whole room while it is empty, so the limit may be passed by what
// the nodes admit before they hear of each other.
func TestSpike(t *testing.T) {
	cases := []struct {
		policy Policy
		delay  time.Duration
		over   time.Duration // all arrive within
		peak   int           // at most, of 100
	}{
		{Even, 0, 10 * time.Second, 100},
		{Even, time.Second, 10 * time.Second, 105},
		{Even, time.Second, 200 * time.Millisecond, 110},
		{Curve, 0, 10 * time.Second, 105},
		{Curve, time.Second, 10 * time.Second, 150},
		{Curve, time.Second, 200 * time.Millisecond, 5 * 100},
	}
	for _, tc := range cases {
		t.Run(fmt.Sprintf("%s/delay=%v/within=%v", tc.policy, tc.delay, tc.over), func(t *testing.T) {
			t.Parallel()
			c := crowd{
				policy: tc.policy, perSite: []int{3, 2}, limit: 100, visitors: 500, over: tc.over,
				session: time.Minute, refresh: 10 * time.Second, near: tc.delay, far: tc.delay, where: anywhere,
			}
			m := c.run(1, nil)
			t.Logf("peak %d of 100, usage %.3f", m.peak, m.used/m.busy)
			if m.peak > tc.peak {
				t.Errorf("peak %d, at most %d", m.peak, tc.peak)
			}
			if len(m.admitted) != c.visitors {
				t.Errorf("%d of %d got in", len(m.admitted), c.visitors)
			}
		})
	}
}
