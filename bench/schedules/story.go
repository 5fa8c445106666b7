package schedules

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/node/room"
)

// A story is one change of who mints, at a random moment after the limit was changed, in a
// mesh that is calm but for that, and full. Chance tells such short sequences seldom: what
// matters in them is over within a second. Each is about a line of the table of transitions
// in docs/limit.md.
type story struct {
	*plan
	at time.Duration // when the limit is changed for the first time
}

// stories are all of them by name.
func stories() map[string]func(*story) {
	return map[string]func(*story){
		"leaves":           func(s *story) { s.leave(1, 1, s.soon(), 0) },
		"leaves, killed":   func(s *story) { s.leave(1, 1, s.soon(), s.handedOver()) },
		"is lost":          func(s *story) { s.lose(1, 1, s.soon()) },
		"restarts":         func(s *story) { s.crash(1, s.soon()); s.leave(1, 1, s.soon()+s.handedOver(), 0) },
		"heir restarts":    func(s *story) { s.leave(1, 1, s.soon(), 0); s.crash(2, s.soon()+s.handedOver()) },
		"heir leaves":      func(s *story) { s.leave(1, 1, s.soon(), 0); s.next(); s.leave(2, 1, s.soon(), s.handedOver()) },
		"heir is lost":     func(s *story) { s.leave(1, 1, s.soon(), s.handedOver()); s.next(); s.lose(2, 1, s.soon()) },
		"recoverer leaves": func(s *story) { s.loseUnheard(); s.leave(2, 1, s.at, 0) },
		"two limits":       func(s *story) { s.limit(s.soon(), s.pick(3, 40)); s.leave(1, 1, s.soon(), s.handedOver()) },
		"lowered, raised": func(s *story) {
			s.limit(s.soon(), s.cfg.Room.TotalActiveUsers/2)
			s.limit(s.soon()+s.soon(), 2*s.cfg.Room.TotalActiveUsers)
			s.leave(1, 1, s.soon()+s.soon(), s.handedOver())
		},
		"room made again": func(s *story) {
			s.add(sim.Fault{Kind: sim.Remake, Site: s.site(), Node: 1, From: s.soon(), For: s.span(time.Millisecond, 5*time.Second)})
			s.leave(1, 1, s.soon(), 0)
		},
		"policy switched": func(s *story) {
			for site := range s.cfg.Sites {
				s.add(sim.Fault{Kind: sim.Policy, Site: site + 1, From: s.at - s.span(0, time.Second), For: s.span(time.Second, 5*time.Second), To: one(s.dice, room.Open, room.Even)})
			}
			s.leave(1, 1, s.soon(), 0)
		},
		"cut": func(s *story) {
			s.add(sim.Fault{Kind: sim.Partition, Site: s.site(), From: s.at - s.span(0, time.Second), For: s.span(500*time.Millisecond, 8*time.Second)})
			s.leave(1, 1, s.soon(), s.handedOver())
		},
	}
}

// Stories returns the names of all stories.
func Stories() []string { return slices.Sorted(maps.Keys(stories())) }

// drawStory replaces some schedules by a story, mostly the one in which successors once
// made rights a second time. It draws from dice of its own, so that all others stay as they
// are without.
func drawStory(d dice, cfg *sim.Config) {
	if d.chance(told) {
		tell(d, cfg, one(d, "leaves, killed", one(d, Stories()...)))
		bind(cfg)
		lose(cfg)
	}
}

// told is the part of all schedules that are stories.
const told = 0.08

// drawOf returns the schedule of a seed that is this story.
func drawOf(seed uint64, name string) sim.Config {
	cfg := drawPlain(seed)
	tell(dice{rand.New(rand.NewPCG(seed, 34))}, &cfg, name)
	bind(&cfg)
	lose(&cfg)
	return cfg
}

func tell(d dice, cfg *sim.Config, name string) {
	cfg.Sites, cfg.Nodes = d.pick(2, 3), one(d, 1, 1, 2)
	cfg.Tick, cfg.Disk = 50*time.Millisecond, d.span(500*time.Microsecond, 5*time.Millisecond)
	cfg.Network, cfg.Clocks = sim.Network{Delay: d.span(20*time.Millisecond, 80*time.Millisecond)}, sim.Clocks{}
	cfg.Room.SessionDuration, cfg.Room.Events = one(d, 10*time.Second, 30*time.Second), nil
	cfg.Room.TotalActiveUsers, cfg.Room.NewUsersPerMinute = d.pick(10, 20), plenty
	cfg.Room.RefreshInterval = time.Second
	cfg.Stay, cfg.Uneven, cfg.Faults = d.span(10*time.Second, 30*time.Second), 0, nil
	if cfg.Nodes == 1 {
		cfg.Sites = 3 // two may go
	}
	s := &story{plan: newPlan(d, cfg), at: d.span(10*time.Second, 40*time.Second)}
	cfg.Arrivals = d.come(150, 0, s.at+40*time.Second)
	s.limit(s.at, 2*cfg.Room.TotalActiveUsers)
	stories()[name](s)
}

// lose has messages be lost in half of all stories: what a node minted just before it goes may be
// heard of only once another has taken its place. It draws from dice of its own, too.
func lose(cfg *sim.Config) {
	if d := (dice{rand.New(rand.NewPCG(cfg.Seed, 37))}); d.chance(0.5) {
		cfg.Network.Loss = 0.1 + 0.4*d.Float64()
	}
}

// bind has the rate be the limit in half of all stories, and not the places: what changes is
// the rate then. Sessions are as short as they may be, too: rights to let somebody in count
// for a minute, and so for longer than what a lost node had in use. It draws from dice of its
// own, so that all else in a story stays as it is without.
func bind(cfg *sim.Config) {
	d := dice{rand.New(rand.NewPCG(cfg.Seed, 36))}
	if !d.chance(0.5) {
		return
	}
	places, rate := cfg.Room.TotalActiveUsers, d.pick(5, 30)
	cfg.Room.TotalActiveUsers, cfg.Room.NewUsersPerMinute = plenty, rate
	cfg.Room.SessionDuration = d.span(5*time.Second, 30*time.Second).Round(time.Second)
	for i := range cfg.Faults {
		if f := &cfg.Faults[i]; f.Kind == sim.Limits {
			f.Active, f.Rate = 0, max(2, f.Active*rate/places)
		}
	}
	cfg.Arrivals = d.come(250, 0, troubles) // for more than a minute after what happens
}

// plenty is a limit that nothing here comes near.
const plenty = 1000

func (s *story) site() int { return s.pick(1, s.cfg.Sites) }

// soon is about when whoever mints has followed the new limit, and others may not know.
func (s *story) soon() time.Duration { return s.at + s.span(0, 700*time.Millisecond) }

// handedOver is about how long it takes until an heir has what a leaver had.
func (s *story) handedOver() time.Duration {
	return s.span(100*time.Millisecond, 400*time.Millisecond)
}

// next has the story go on some time later, with another limit.
func (s *story) next() {
	s.at += one(s.dice, s.span(100*time.Millisecond, 3*time.Second), s.span(0, s.cfg.Room.SessionDuration))
	s.limit(s.at, s.pick(10, 60))
}

func (s *story) limit(at time.Duration, places int) {
	s.add(sim.Fault{Kind: sim.Limits, Site: s.site(), Node: s.pick(1, s.cfg.Nodes), From: at, Active: places})
}

func (s *story) leave(site, node int, at, killed time.Duration) {
	s.add(sim.Fault{Kind: sim.HandOver, Site: site, Node: node, From: at, For: killed})
}

// lose takes the disk of a node away, and has it declared dead.
func (s *story) lose(site, node int, at time.Duration) {
	s.add(sim.Fault{Kind: sim.Wipe, Site: site, Node: node, From: at, For: s.span(100*time.Millisecond, 10*time.Second)})
	s.add(sim.Fault{Kind: sim.Declare, Site: site, Node: node, From: at + s.span(0, 3*time.Second)})
}

// loseUnheard has whoever mints make rights, and be lost, while nobody else hears of it. The
// same limit is set again elsewhere, and the lost node declared dead, while the sessions
// still last that it let in by those rights. The story goes on when it has been recovered.
func (s *story) loseUnheard() {
	most, cut := s.cfg.Faults[0].Active, s.span(time.Second, 3*time.Second)
	s.cfg.Room.SessionDuration = 30 * time.Second
	s.cfg.Room.QueueingMethod = room.Random // or new places wait for those who are next, on the other side
	s.cfg.Stay, s.cfg.Patience = 30*time.Second, 2*time.Minute
	s.cfg.Arrivals = s.come(250, 0, s.at+15*time.Second)
	s.cfg.Sites, s.cfg.Nodes = 3, 1 // of two that are left, one recovers it and the other is the heir
	s.cfg.Faults[0].Site, s.cfg.Faults[0].Node = 1, 1
	s.add(sim.Fault{Kind: sim.Partition, Site: 1, Node: 1, From: s.at - 100*time.Millisecond, For: cut + 200*time.Millisecond})
	s.lose(1, 1, s.at+cut)
	f := sim.Fault{Kind: sim.Limits, Site: 2, Node: 1, From: s.at + cut + s.span(500*time.Millisecond, 4*time.Second), Active: most}
	s.add(f)
	s.at += cut + s.span(9*time.Second, 14*time.Second)
}

func (s *story) crash(site int, at time.Duration) {
	s.add(sim.Fault{Kind: sim.Crash, Site: site, Node: 1, From: at, For: s.span(100*time.Millisecond, 3*time.Second)})
}
