package schedules

import (
	"time"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/node/room"
)

// drawSuccession has some schedules change limits close to what changes who mints: nodes
// that leave for good, that are killed while they do, that are lost and declared dead, and
// those who take their rights over, which leave or are lost in turn while these are locked
// still. It draws from dice of its own, so that all others stay as they are without.
func drawSuccession(d dice, cfg *sim.Config) {
	if cfg.Sites*cfg.Nodes < 2 || !d.chance(successions) {
		return
	}
	p := newPlan(d, cfg)
	if d.chance(0.5) {
		p.throng()
	}
	site, node := 1, 1 // who mints at first
	for at := d.span(2*time.Second, 20*time.Second); at < troubles-15*time.Second && p.gone+2 <= p.total; {
		p.relimit(at)
		if d.chance(0.3) {
			p.relimit(at + d.span(0, 2*time.Second))
		}
		at += one(d, d.span(0, 1500*time.Millisecond), d.span(200*time.Millisecond, 900*time.Millisecond), d.span(200*time.Millisecond, 900*time.Millisecond))
		p.successor(site, node, at)
		if d.chance(0.3) {
			p.relimit(at + d.span(0, 3*time.Second))
		}
		if d.chance(0.2) {
			f := p.somewhere(sim.Partition)
			f.Node, f.Peer, f.From, f.For = d.pick(1, cfg.Nodes), 0, at, d.span(100*time.Millisecond, 4*time.Second)
			p.add(f)
		}
		// Next the one that may have taken over, and for half of the time before it may use
		// what it has got.
		at += one(d, d.span(0, 5*time.Second), d.span(5*time.Second, cfg.Room.SessionDuration), d.span(20*time.Second, 50*time.Second))
		site, node = d.pick(1, cfg.Sites), d.pick(1, cfg.Nodes)
	}
}

// throng has somebody wait for every place, all the time.
func (p *plan) throng() {
	p.cfg.Room.NewUsersPerMinute = one(p.dice, p.cfg.Room.NewUsersPerMinute, 1000)
	p.cfg.Room.RefreshInterval = time.Second
	p.cfg.Arrivals = p.come(250, 0, troubles)
}

// successions is the part of all schedules that draw successions.
const successions = 0.35

// relimit changes the limits at a node, up or down, at times at two nodes at once.
func (p *plan) relimit(at time.Duration) {
	for range one(p.dice, 1, 1, 1, 2) {
		f := sim.Fault{Kind: sim.Limits, Site: p.pick(1, p.cfg.Sites), Node: p.pick(1, p.cfg.Nodes), From: at}
		f.Active, f.Rate = one(p.dice, p.pick(3, 60), 2*p.cfg.Room.TotalActiveUsers), p.pick(5, 80)
		p.add(f)
	}
}

// successor ends one node, or has it end, so that another has its rights.
func (p *plan) successor(site, node int, at time.Duration) {
	f := sim.Fault{Site: site, Node: node, From: at}
	switch x := p.Float64(); {
	case x < 0.6:
		// As long as it takes; or it is killed about when its heir has what it had.
		soon := p.cfg.Network.Delay + 3*p.cfg.Disk + p.cfg.Tick
		f.Kind, f.For = sim.HandOver, one(p.dice, 0, p.span(soon/2, 3*soon), p.span(soon/2, 3*soon), p.span(10*time.Millisecond, 2*time.Second))
	case x < 0.9:
		f.Kind, f.For = sim.Wipe, one(p.dice, 100*time.Millisecond, p.span(0, 10*time.Second))
		p.add(sim.Fault{Kind: sim.Declare, Site: site, Node: node, From: at + p.span(0, 3*time.Second)})
	default:
		f.Kind, f.For = sim.Crash, p.span(100*time.Millisecond, 5*time.Second)
		p.gone-- // it comes back
	}
	p.gone++
	p.add(f)
}

// drawPolicies has some schedules switch the limit off by the policy, and on again, at one site
// a little after the other. It draws from dice of its own, for the same reason.
func drawPolicies(d dice, cfg *sim.Config) {
	if !d.chance(switches) {
		return
	}
	from, long := d.span(5*time.Second, troubles/2), d.span(2*time.Second, 30*time.Second)
	to := one(d, room.Even, room.Curve, room.Counter, room.Open)
	for site := range cfg.Sites {
		f := sim.Fault{Kind: sim.Policy, Site: site + 1, From: from + d.span(0, 3*time.Second), To: to}
		f.For = long + d.span(0, 3*time.Second)
		cfg.Faults = append(cfg.Faults, f)
	}
}

// switches is the part of all schedules in which the policy is another for a while.
const switches = 0.08
