package sweep

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/bench/sim/input"
	"github.com/ropeline/ropeline/node/room"
)

// length is how long visitors come. A cut may begin, be noticed, freeze shares and
// heal within it, in any order with the crowd.
const length = 110 * time.Second

// schedule is a mesh, a crowd and cuts. Everything but the policy follows from the seed,
// so all policies meet the same crowds and cuts.
type schedule struct {
	seed         uint64
	policy       room.Policy
	sites, nodes int
	weights      []float64     // of sites; none: all the same
	rotate       time.Duration // 0: never
	uneven       float64
	limit, rate  int
	session      time.Duration
	refresh      time.Duration

	visitors  int
	crowd, in time.Duration // when the crowd comes, and within what time
	part      float64       // of all visitors; the others come evenly
	cuts      []cut
}

// cut is one site that no other reaches, or two that do not reach each other.
type cut struct {
	site, peer int // peer 0: all others
	from, span time.Duration
}

type dice struct{ *rand.Rand }

func (d dice) pick(from, to int) int { return from + d.IntN(to-from+1) }

// span is in tenths of a second, so that command lines stay readable.
func (d dice) span(from, to time.Duration) time.Duration {
	const grain = 100 * time.Millisecond
	return from + time.Duration(d.Int64N(int64((to-from)/grain)+1))*grain
}

func (d dice) chance(p float64) bool { return d.Float64() < p }

// draw returns the schedule of a seed.
func draw(seed uint64, policy room.Policy) schedule {
	d := dice{rand.New(rand.NewPCG(seed, 31))}
	s := schedule{
		seed: seed, policy: policy, sites: d.pick(2, 3), nodes: d.pick(1, 2),
		limit: d.pick(10, 40), session: d.span(30*time.Second, 2*time.Minute), refresh: time.Duration(d.pick(3, 20)) * time.Second,
		crowd: d.span(0, length-20*time.Second), in: d.span(time.Second, 20*time.Second), part: float64(d.pick(4, 10)) / 10,
	}
	// Either of the two limits may be the tighter one.
	s.rate = s.limit * 10
	if d.chance(0.3) {
		s.rate = d.pick(s.limit/3, s.limit)
	}
	s.visitors = s.limit * d.pick(2, 3)
	if d.chance(0.5) {
		for range s.sites {
			s.weights = append(s.weights, float64(d.pick(1, 9)))
		}
	}
	if s.weights != nil && d.chance(0.5) {
		s.rotate = d.span(20*time.Second, 2*time.Minute)
	}
	if d.chance(0.25) {
		s.uneven = float64(d.pick(1, 10)) / 10
	}
	for range d.pick(1, 2) {
		c := cut{site: d.pick(1, s.sites)}
		if s.sites > 2 && d.chance(0.2) {
			c.peer = c.site%s.sites + 1
		}
		c.from = d.span(0, length-time.Second)
		if d.chance(0.5) { // around the crowd, where it matters most
			c.from = max(0, s.crowd-d.span(0, 30*time.Second))
		}
		c.span = d.span(time.Second, 90*time.Second)
		s.cuts = append(s.cuts, c)
	}
	return s
}

// shape is the crowd as the simulator's command line has it.
func (s *schedule) shape() string {
	return fmt.Sprintf("flash:%d/%v,at=%v,in=%v,part=%g", s.visitors, length, s.crowd, s.in, s.part)
}

// config is the run.
func (s *schedule) config() sim.Config {
	arrivals, err := input.ParseShape(s.shape())
	if err != nil {
		panic(err) // of our own drawing
	}
	c := sim.Config{
		Seed: s.seed, Sites: s.sites, Nodes: s.nodes, Tick: tick, Weights: s.weights, Rotate: s.rotate, Uneven: s.uneven,
		Arrivals: arrivals, Stay: s.session, Drain: drain,
		Room: room.Settings{
			Policy: s.policy, TotalActiveUsers: s.limit, NewUsersPerMinute: s.rate,
			SessionDuration: s.session, RefreshInterval: s.refresh,
		},
	}
	for _, x := range s.cuts {
		c.Faults = append(c.Faults, sim.Fault{Kind: sim.Partition, Site: x.site, Peer: x.peer, From: x.from, For: x.span})
	}
	return c
}

// drain is for how long a run goes on after the last visitor has come: until the cuts
// are healed and nodes know of each other again.
const drain = 20 * time.Second

// tick is a little more seldom than real nodes have it, which makes runs cheaper and news later.
const tick = 200 * time.Millisecond

// line is the command that makes the same run.
func (s *schedule) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ropeline-bench simulate --arrivals %s --drain %v --tick %v --sites %d --nodes %d", s.shape(), drain, tick, s.sites, s.nodes)
	if s.weights != nil {
		fmt.Fprintf(&b, " --site-weights %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(s.weights), " ", ","), "[]"))
	}
	if s.rotate > 0 {
		fmt.Fprintf(&b, " --rotate %v", s.rotate)
	}
	if s.uneven > 0 {
		fmt.Fprintf(&b, " --uneven %g", s.uneven)
	}
	fmt.Fprintf(&b, " --total-active-users %d --new-users-per-minute %d --session-duration %v --stay %[3]v --refresh-interval %v --policy %s",
		s.limit, s.rate, s.session, s.refresh, s.policy)
	for _, c := range s.cuts {
		peer := ""
		if c.peer > 0 {
			peer = fmt.Sprintf(",peer=%d", c.peer)
		}
		fmt.Fprintf(&b, " --fault partition:site=%d%s,from=%v,for=%v", c.site, peer, c.from, c.span)
	}
	fmt.Fprintf(&b, " --seed %d", s.seed)
	return b.String()
}
