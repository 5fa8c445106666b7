package schedules

import (
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/node/room"
)

const (
	// troubles is how long visitors come and things go wrong. Several windows of
	// 60 s fit in, over which the limit on new users is judged.
	troubles = 125 * time.Second
	// guarded is how far apart clocks may be while the limit holds.
	guarded = 400 * time.Millisecond
)

// crowd are arrivals at given times.
type crowd []time.Duration

func (c crowd) Len() int { return len(c) }

func (c crowd) Span() time.Duration { return troubles }

func (c crowd) Times(*rand.Rand) iter.Seq[time.Duration] { return slices.Values(c) }

// come returns so many visitors who come within a time.
func (d dice) come(n int, from, to time.Duration) crowd {
	c := make(crowd, n)
	for i := range c {
		c[i] = d.span(from, to)
	}
	slices.Sort(c)
	return c
}

// dice draw what a schedule is made of.
type dice struct{ *rand.Rand }

func (d dice) pick(from, to int) int { return from + d.IntN(to-from+1) }

func (d dice) span(from, to time.Duration) time.Duration {
	return from + time.Duration(d.Int64N(int64(to-from)+1))
}

func (d dice) chance(p float64) bool { return d.Float64() < p }

// one returns one of several, each as likely as the others.
func one[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// draw returns the schedule of a seed: a mesh, a crowd that is mostly more than the
// room has places for, and all kinds of trouble until the visitors have come. Then
// everything is healed, and all go home.
func draw(seed uint64) sim.Config {
	cfg := drawPlain(seed)
	drawSuccession(dice{rand.New(rand.NewPCG(seed, 21))}, &cfg)
	drawPolicies(dice{rand.New(rand.NewPCG(seed, 22))}, &cfg)
	drawStory(dice{rand.New(rand.NewPCG(seed, 33))}, &cfg)
	return cfg
}

// drawPlain returns the same without what drawSuccession, drawPolicies and drawStory add.
func drawPlain(seed uint64) sim.Config {
	d := dice{rand.New(rand.NewPCG(seed, 4))}
	cfg := sim.Config{
		Seed: seed, Sites: d.pick(1, 3), Nodes: d.pick(1, 3),
		Length: troubles, Tick: one(d, 50*time.Millisecond, 150*time.Millisecond, 200*time.Millisecond, 250*time.Millisecond),
		Stay: d.span(time.Second, 25*time.Second), Think: d.span(2*time.Second, 6*time.Second),
		Abandon: 1, Patience: d.span(15*time.Second, 40*time.Second),
		Uneven: one(d, 0, 0, d.Float64(), 1),
		Roam:   one(d, 0, 0.05, 0.3), Lost: one(d, 0, 0.02, 0.08), Old: one(d, 0, 0, 0.04),
		Disk: one(d, 500*time.Microsecond, 5*time.Millisecond, 50*time.Millisecond),
	}
	if cfg.Sites*cfg.Nodes == 1 && d.chance(0.8) {
		cfg.Nodes = 3 // a mesh of one node is drawn often enough without
	}
	cfg.Room = drawRoom(d)
	cfg.Arrivals = drawCrowd(d, cfg)
	cfg.Network = drawNetwork(d)
	drawFaults(d, &cfg)
	drawRough(dice{rand.New(rand.NewPCG(seed, 5))}, &cfg)
	drawRemake(dice{rand.New(rand.NewPCG(seed, 6))}, &cfg)
	drawSessions(dice{rand.New(rand.NewPCG(seed, 7))}, &cfg)
	drawTight(dice{rand.New(rand.NewPCG(seed, 14))}, &cfg)
	return cfg
}

func drawRoom(d dice) room.Settings {
	return room.Settings{
		Policy: room.Escrow, OnPartition: one(d, room.PartitionHold, room.PartitionHold, room.PartitionOpen),
		TotalActiveUsers: d.pick(3, 40), NewUsersPerMinute: one(d, d.pick(5, 20), d.pick(5, 20), d.pick(20, 60), 1000),
		SessionDuration: one(d, 10*time.Second, 15*time.Second, 30*time.Second),
		QueueingMethod:  one(d, room.FIFO, room.FIFO, room.FIFO, room.Random),
		RefreshInterval: time.Duration(d.pick(1, 5)) * time.Second,
		BucketSpan:      time.Duration(d.pick(2, 30)) * time.Second,

		DisableSessionRenewal: d.chance(0.05),
	}
}

// drawCrowd returns about as many visitors as the room has room for, up to three
// times as many.
func drawCrowd(d dice, cfg sim.Config) crowd {
	turn := cfg.Room.SessionDuration + cfg.Stay
	byPlaces := float64(cfg.Room.TotalActiveUsers) * troubles.Seconds() / turn.Seconds()
	byRate := float64(cfg.Room.NewUsersPerMinute) * troubles.Minutes()
	n := min(200, 5+int(min(byPlaces, byRate)*(0.8+2*d.Float64())))
	if d.chance(0.3) { // all at once
		from := d.span(0, troubles/2)
		return d.come(n, from, from+5*time.Second)
	}
	return d.come(n, 0, troubles)
}

func drawNetwork(d dice) sim.Network {
	return sim.Network{
		Delay: d.span(2*time.Millisecond, 150*time.Millisecond), Near: d.span(100*time.Microsecond, 20*time.Millisecond),
		Jitter: one(d, 0, 0.3, 1.2), Loss: one(d, 0, 0.02, 0.1, 0.3), Duplicate: one(d, 0, 0, 0.1), Reorder: one(d, 0, 0.05, 0.3),
	}
}

// drawTight has few places in some schedules, sessions that are not renewed, and a crowd
// that is always there: a place is taken the moment that it comes free, and sessions end
// when passes say so. That is for rules that matter within the 400 ms by which clocks may
// differ, or as long as the sessions of a lost node run. It draws from dice of its own, so
// that all others stay as they are without.
func drawTight(d dice, cfg *sim.Config) {
	if !d.chance(tight) {
		return
	}
	cfg.Room.TotalActiveUsers, cfg.Room.NewUsersPerMinute = d.pick(3, 10), 1000
	cfg.Room.RefreshInterval, cfg.Room.DisableSessionRenewal = time.Second, true
	cfg.Room.SessionDuration = one(d, 5*time.Second, 10*time.Second, 15*time.Second)
	cfg.Arrivals = d.come(250, 0, troubles)
	p := newPlan(d, cfg)
	if p.chance(0.5) {
		p.lostDisk(2 * time.Second)
	}
}

// tight is the part of all schedules that are tight.
const tight = 0.08
