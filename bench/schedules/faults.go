package schedules

import (
	"time"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/node/room"
)

// plan is a list of faults in the making.
type plan struct {
	dice
	cfg   *sim.Config
	gone  int // nodes that leave for good, or have not come yet
	total int // of nodes
}

// newPlan goes on with the faults that there are.
func newPlan(d dice, cfg *sim.Config) *plan {
	p := &plan{dice: d, cfg: cfg, total: cfg.Sites * cfg.Nodes}
	for _, f := range cfg.Faults {
		if f.Kind == sim.Wipe || f.Kind == sim.HandOver || f.Kind == sim.Join {
			p.gone++
		}
	}
	return p
}

// drawFaults adds what goes wrong. All of it is over when the last visitor has come.
func drawFaults(d dice, cfg *sim.Config) {
	p := newPlan(d, cfg)
	p.clocks()
	p.newcomers()
	if d.chance(0.1) {
		return // a quiet mesh
	}
	for range d.pick(1, 9) {
		p.trouble()
	}
	p.limits()
}

// drawRough makes some schedules much rougher than the others, for rules that matter
// in moments that are short elsewhere: between what a node does and its being on
// disk, and while a message of a node that is lost is still on its way. It draws from
// dice of its own, so that all other schedules stay as they are without.
func drawRough(d dice, cfg *sim.Config) {
	if !d.chance(rough) {
		return
	}
	p := newPlan(d, cfg)
	cfg.Disk = d.span(200*time.Millisecond, time.Second)
	for range d.pick(4, 12) {
		f := p.somewhere(sim.Crash)
		f.Node, f.For = d.pick(1, cfg.Nodes), d.span(100*time.Millisecond, 2*time.Second)
		p.add(f)
	}
	if cfg.Sites > 1 {
		f := p.somewhere(sim.Link)
		f.Node, f.Loss = 0, 0
		f.By, f.For = d.span(5*time.Second, 12*time.Second), d.span(10*time.Second, troubles/2)
		f.For = min(f.For, troubles-f.From)
		p.add(f)
	}
}

// rough is the part of all schedules that are rough.
const rough = 0.2

// drawRemake has the room deleted and made again in some schedules. It draws from dice of
// its own, for the same reason.
func drawRemake(d dice, cfg *sim.Config) {
	if !d.chance(remade) {
		return
	}
	p := newPlan(d, cfg)
	f := p.somewhere(sim.Remake)
	f.Node, f.For = d.pick(1, cfg.Nodes), min(troubles-f.From, one(d, time.Millisecond, d.span(0, 10*time.Second)))
	p.add(f)
}

// remade is the part of all schedules in which the room is made again.
const remade = 0.1

// drawSessions has sessions of other lengths in some schedules: in an event, which begins
// at nodes whose clocks differ, or since an operator says so at one node after the other.
// It draws from dice of its own, for the same reason.
func drawSessions(d dice, cfg *sim.Config) {
	if !d.chance(otherSessions) {
		return
	}
	other := func() time.Duration { return d.span(5*time.Second, time.Minute).Round(time.Second) }
	if d.chance(0.5) {
		from := d.span(5*time.Second, troubles/2)
		e := room.Event{
			Name: "sale", Start: sim.Epoch().Add(from), SessionDuration: new(other()),
			End: sim.Epoch().Add(from + d.span(time.Minute, 2*time.Minute)),
		}
		if d.chance(0.3) {
			e.TotalActiveUsers, e.NewUsersPerMinute = new(d.pick(3, 40)), new(d.pick(5, 60))
		}
		cfg.Room.Events = []room.Event{e}
		return
	}
	p := newPlan(d, cfg)
	session, at := other(), d.span(0, troubles-20*time.Second)
	for range d.pick(1, 4) {
		p.add(sim.Fault{Kind: sim.Limits, Site: d.pick(1, cfg.Sites), Node: d.pick(1, cfg.Nodes), From: at, Session: session})
		at += d.span(0, 5*time.Second)
	}
}

// otherSessions is the part of all schedules with sessions of several lengths.
const otherSessions = 0.15

// clocks are off by 200 ms at most, jumps included. A node starts again soon after the
// clock of its machine has jumped: until then it would not know.
func (p *plan) clocks() {
	jumps := one(p.dice, 0, 0, 2)
	p.cfg.Clocks.Offset = guarded / 2
	if jumps > 0 {
		p.cfg.Clocks.Offset -= 60 * time.Millisecond
	}
	for range jumps {
		by := p.span(1, 60*time.Millisecond)
		if p.chance(0.5) {
			by = -by
		}
		f := p.somewhere(sim.Skew)
		f.By = by
		p.add(f)
		p.add(sim.Fault{Kind: sim.Crash, Site: f.Site, Node: f.Node, From: min(f.From+f.For/2, troubles-blink), For: blink})
	}
}

// blink is how long a node is down that starts again at once.
const blink = 100 * time.Millisecond

// newcomers are nodes that join in the middle. The first node founds the mesh.
func (p *plan) newcomers() {
	if p.total < 3 || !p.chance(0.25) {
		return
	}
	f := sim.Fault{Kind: sim.Join, Site: p.cfg.Sites, Node: p.cfg.Nodes, From: p.span(5*time.Second, troubles/2)}
	p.gone++
	p.add(f)
}

func (p *plan) add(f sim.Fault) { p.cfg.Faults = append(p.cfg.Faults, f) }

// somewhere returns a fault of one node, or of a whole site, for a while that is
// short most of the time.
func (p *plan) somewhere(kind sim.FaultKind) sim.Fault {
	long := time.Duration(p.ExpFloat64() * float64(6*time.Second))
	if p.chance(0.15) {
		long += p.cfg.Room.SessionDuration + p.span(0, 20*time.Second)
	}
	from := p.span(0, troubles-10*time.Second)
	f := sim.Fault{Kind: kind, Site: p.pick(1, p.cfg.Sites), Node: p.pick(1, p.cfg.Nodes), From: from}
	f.For = max(100*time.Millisecond, min(long, troubles-from))
	if p.cfg.Sites > 1 && p.chance(0.15) {
		f.Node = 0
	}
	return f
}

// trouble adds one thing that goes wrong, or two that belong together.
func (p *plan) trouble() {
	switch x := p.Float64(); {
	case x < 0.22:
		p.add(p.somewhere(sim.Crash))
	case x < 0.30:
		p.lostDisk(40 * time.Second)
	case x < 0.44:
		p.add(p.somewhere(sim.Pause))
	case x < 0.66:
		p.cut()
	case x < 0.74:
		p.slowLink()
	case x < 0.78:
		p.add(p.somewhere(sim.Leave))
	case x < 0.83:
		p.handOver()
	case x < 0.89:
		p.add(p.somewhere(sim.DiskFull))
	case x < 0.95:
		p.add(p.somewhere(sim.DiskFail))
	default:
		f := p.somewhere(sim.DiskSlow)
		f.By = p.span(10*time.Millisecond, 3*time.Second)
		p.add(f)
	}
}

// cut closes ways between sites, or around a node, both ways or one way.
func (p *plan) cut() {
	f := p.somewhere(sim.Partition)
	f.OneWay = p.chance(0.3)
	if p.cfg.Sites == 1 {
		f.Node = p.pick(1, p.cfg.Nodes)
	} else if p.chance(0.6) {
		f.Node = 0
		if p.chance(0.4) {
			f.Peer = f.Site%p.cfg.Sites + 1
		}
	}
	p.add(f)
}

// slowLink has messages between sites take seconds, or get lost.
func (p *plan) slowLink() {
	if p.cfg.Sites == 1 {
		p.add(p.somewhere(sim.Pause))
		return
	}
	f := p.somewhere(sim.Link)
	f.Node, f.OneWay = 0, p.chance(0.3)
	f.By, f.Loss = p.span(time.Millisecond, 4*time.Second), one(p.dice, 0, 0.3, 0.9)
	p.add(f)
}

// lostDisk takes a node's disk away for good; an operator says, within some time, that
// it is gone. The last node that knows the mesh keeps its disk.
func (p *plan) lostDisk(within time.Duration) {
	if p.gone+2 > p.total {
		p.add(p.somewhere(sim.Crash))
		return
	}
	p.gone++
	f := p.somewhere(sim.Wipe)
	f.Node = max(1, f.Node)
	p.add(f)
	p.add(sim.Fault{Kind: sim.Declare, Site: f.Site, Node: f.Node, From: min(troubles, f.From+p.span(0, within))})
}

// handOver has a node leave for good, with an heir.
func (p *plan) handOver() {
	if p.gone+2 > p.total {
		p.add(p.somewhere(sim.Leave))
		return
	}
	p.gone++
	f := p.somewhere(sim.HandOver)
	f.Node, f.For = max(1, f.Node), 0
	p.add(f)
}

// limits changes the limits a few times, at times at two nodes at once.
func (p *plan) limits() {
	if !p.chance(0.4) {
		return
	}
	for range p.pick(1, 3) {
		at := p.span(0, troubles-5*time.Second)
		for range p.pick(1, 2) {
			f := sim.Fault{Kind: sim.Limits, Site: p.pick(1, p.cfg.Sites), Node: p.pick(1, p.cfg.Nodes), From: at}
			f.Active, f.Rate = p.pick(3, 40), p.pick(5, 60)
			p.add(f)
		}
	}
}
