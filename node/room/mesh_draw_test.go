package room

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// drawing draws a mesh and all that will happen to it from a seed.
type drawing struct {
	rng   *rand.Rand
	m     *mesh
	quiet bool          // nothing is late, nothing fails, clocks agree
	span  time.Duration // visitors come during
	calm  time.Duration // from then on nothing happens to the mesh any more
	count int           // visitors
	stay  time.Duration // the longest
	visit int           // the most visits
}

func (d *drawing) chance(p float64) bool { return d.rng.Float64() < p }

// between returns a number from lo to hi, small ones as likely as large ones by
// order of magnitude.
func (d *drawing) between(lo, hi float64) float64 {
	return lo * math.Pow(hi/lo, d.rng.Float64())
}

func (d *drawing) whole(lo, hi int) int {
	return min(hi, int(d.between(float64(lo), float64(hi)+1)))
}

func (d *drawing) seconds(lo, hi int) time.Duration {
	return time.Duration(d.whole(lo, hi)) * time.Second
}

func pick[T any](d *drawing, of ...T) T { return of[d.rng.IntN(len(of))] }

// drawMesh returns a mesh that is ready to run.
func drawMesh(seed uint64, log func(string, ...any)) *drawing {
	d := &drawing{rng: rand.New(rand.NewPCG(seed, 1))}
	sizes := make([]int, d.whole(1, 4))
	for i := range sizes {
		sizes[i] = d.whole(1, 3)
	}
	d.quiet = d.chance(0.4)
	var near, far time.Duration
	if !d.quiet {
		near = time.Duration(d.between(1, 400)) * time.Millisecond
		far = near + time.Duration(d.between(1, 2000))*time.Millisecond
	}
	s := d.settings()
	d.m = newMesh(s, near, far, seed, sizes...)
	d.m.start = time.Unix(1_767_268_800+d.rng.Int64N(3600), d.rng.Int64N(1e9))
	d.m.now, d.m.log, d.m.exact = d.m.start, log, d.quiet
	d.m.trace("%d sites, %v nodes, near %v, far %v: %s", len(sizes), sizes, near, far, describe(&d.m.settings))
	if d.chance(0.3) {
		d.m.viewAge = 0
	}
	d.span = d.seconds(5, 240)
	d.calm = d.span
	d.shrink(sizes)
	d.events()
	d.switches()
	d.m.gentle = !d.quiet && d.chance(0.5)
	if !d.quiet && !d.m.gentle {
		d.faults()
	}
	d.crowd()
	return d
}

func (d *drawing) settings() Settings {
	s := Settings{
		ID: crdt.RoomID{byte(d.rng.Uint32())}, Name: "shop", Path: "/",
		TotalActiveUsers:      d.whole(1, 40),
		NewUsersPerMinute:     d.whole(1, 300),
		SessionDuration:       d.seconds(3, 120),
		QueueingMethod:        pick(d, FIFO, FIFO, FIFO, FIFO, Random, Random, Passthrough),
		Policy:                pick(d, Even, Even, Curve, Counter, Counter, Escrow, Escrow, Escrow, Open),
		BucketSpan:            d.seconds(1, 60),
		RefreshInterval:       d.seconds(2, 25),
		PlaceKept:             d.seconds(1, 300),
		DisableSessionRenewal: d.chance(0.3),
	}
	if d.chance(0.2) {
		s.CurveFactor = d.between(0.1, 8)
	}
	if d.chance(0.2) {
		s.ShareFreeze = pick(d, -time.Second, time.Minute, 15*time.Minute)
	}
	if s.ShareFreeze == 0 {
		s.ShareFreeze = DefaultShareFreeze
	}
	return s.WithDefaults()
}

// shrink takes as many visitors as fit into a small run: what a run costs is
// how often they ask.
func (d *drawing) shrink(sizes []int) {
	s := &d.m.settings
	d.stay = time.Duration(d.between(0.3, 3) * float64(s.SessionDuration))
	hold := (d.stay + s.SessionDuration).Seconds()
	perSecond := min(float64(s.TotalActiveUsers)/hold, float64(s.NewUsersPerMinute)/75)
	polls := func(n int) float64 {
		wait := float64(n) / perSecond / 2
		return float64(n) * (1 + max(0, wait-d.span.Seconds()/2)/s.RefreshInterval.Seconds())
	}
	d.count = d.whole(2, 80)
	for budget := d.between(20, 600); d.count > 2 && polls(d.count) > budget; {
		d.count--
	}
}

// switches has the operator change the room while it runs, and in the end leave
// it so that everybody can get in.
func (d *drawing) switches() {
	m := d.m
	if d.chance(0.35) {
		for range d.whole(1, 4) {
			f := d.oneSwitch()
			m.after(time.Duration(d.rng.Float64()*float64(d.span)), func() { m.change(f) })
		}
	}
	last := pick(d, FIFO, FIFO, Random)
	m.after(d.span, func() {
		s := &m.settings
		if s.QueueAll || s.Suspended || s.QueueingMethod == Reject {
			m.change(func(s *Settings) {
				s.QueueAll, s.Suspended = false, false
				if s.QueueingMethod == Reject {
					s.QueueingMethod = last
				}
			})
		}
	})
}

func (d *drawing) oneSwitch() func(s *Settings) {
	method := pick(d, FIFO, FIFO, Random, Reject, Passthrough)
	total, rate := d.whole(1, 40), d.whole(1, 300)
	switch d.rng.IntN(8) {
	case 0:
		return func(s *Settings) { s.QueueAll = !s.QueueAll }
	case 1:
		return func(s *Settings) { s.Suspended = !s.Suspended }
	case 2:
		return func(s *Settings) { s.DisableSessionRenewal = !s.DisableSessionRenewal }
	case 3:
		return func(s *Settings) {
			s.TotalActiveUsers, s.NewUsersPerMinute = max(total, s.TotalActiveUsers/2), max(rate, s.NewUsersPerMinute/2)
		}
	}
	return func(s *Settings) { s.QueueingMethod = method }
}

// events gives the room an event that begins while visitors come.
func (d *drawing) events() {
	if !d.chance(0.25) {
		return
	}
	s := &d.m.settings
	e := Event{Name: "sale", Start: d.m.now.Add(d.seconds(5, 120)).Truncate(time.Second)}
	e.End = e.Start.Add(d.seconds(60, 300))
	if d.chance(0.7) {
		// Most of a pre-queue is over when the run begins.
		e.PrequeueStart = e.Start.Add(-5*time.Minute - d.seconds(1, 60))
		e.Shuffle = d.chance(0.5)
		if d.chance(0.3) {
			e.Start = d.m.now.Add(330 * time.Second).Truncate(time.Second)
			e.PrequeueStart = d.m.now.Add(d.seconds(5, 29)).Truncate(time.Second)
			e.End = e.Start.Add(d.seconds(60, 300))
			d.span = 300 * time.Second
			s.RefreshInterval = 20 * time.Second
			d.count = min(d.count, 12)
		}
	}
	if d.chance(0.5) {
		e.TotalActiveUsers, e.NewUsersPerMinute = new(max(d.whole(1, 40), s.TotalActiveUsers/2)), new(max(d.whole(1, 300), s.NewUsersPerMinute/2))
	}
	if d.chance(0.3) {
		e.QueueingMethod = new(pick(d, FIFO, Random, Passthrough, Reject))
	}
	if d.chance(0.3) {
		e.SessionDuration = new(d.seconds(3, 120))
	}
	if d.chance(0.3) {
		e.DisableSessionRenewal = new(d.chance(0.5))
	}
	s.Events = []Event{e}
	for _, n := range d.m.nodes {
		d.m.learn(n, *s)
	}
	d.calm = max(d.calm, e.Start.Sub(d.m.now))
	if e.QueueingMethod != nil && *e.QueueingMethod == Reject {
		d.calm = max(d.calm, e.End.Sub(d.m.now))
	}
	d.m.trace("event from %v to %v, pre-queue from %v, shuffle %v: %s", e.Start.Sub(d.m.start), e.End.Sub(d.m.start),
		e.PrequeueStart.Sub(d.m.start), e.Shuffle, describeEvent(&e, s))
}

// faults plans what goes wrong, all of it over when the last visitor has come.
func (d *drawing) faults() {
	m := d.m
	moment := func() (at, over time.Duration) {
		at = time.Duration(d.rng.Float64() * float64(d.span))
		over = at + time.Duration(d.rng.Float64()*float64(d.span-at))
		d.calm = max(d.calm, over)
		return at, over
	}
	if d.chance(0.4) {
		m.loss = d.between(0.01, 0.5)
	}
	if d.chance(0.4) {
		m.skew = time.Duration(d.between(10, 400)) * time.Millisecond
		for _, n := range m.nodes {
			n.skew = time.Duration((d.rng.Float64() - 0.5) * float64(m.skew))
		}
	}
	if d.chance(0.3) && len(m.sites) > 1 {
		s := m.sites[d.rng.IntN(len(m.sites))]
		at, over := moment()
		m.after(at, func() { m.cutOff(s) })
		m.after(over, func() { m.heal(s) })
	}
	if d.chance(0.3) {
		n := d.rng.IntN(len(m.nodes))
		at, over := moment()
		m.after(at, func() { m.kill(n) })
		m.after(over, func() { m.revive(n) })
	}
}

// crowd draws the visitors.
func (d *drawing) crowd() {
	oneNode, odd := d.chance(0.2), d.chance(0.6)
	copies := 0.0
	if d.chance(0.15) {
		copies = 0.3
	}
	// Crowds come in waves that are shorter than what a view is kept for.
	var waves []time.Duration
	for d.chance(0.5) {
		waves = append(waves, time.Duration(d.rng.Float64()*float64(d.span-time.Second)))
	}
	for _, e := range d.m.settings.Events {
		for _, edge := range []time.Time{e.PrequeueStart, e.Start} {
			if at := edge.Add(-300 * time.Millisecond); at.After(d.m.now) && d.chance(0.5) {
				waves = append(waves, at.Sub(d.m.now)) // people know when it begins
			}
		}
	}
	for range d.count {
		home := d.rng.IntN(len(d.m.nodes))
		if oneNode {
			home = 0
		}
		at := time.Duration(d.rng.Float64() * float64(d.span))
		if len(waves) > 0 && !d.chance(0.1) {
			at = pick(d, waves...) + time.Duration(d.between(1, 1000))*time.Millisecond
		}
		h := habits{copies: copies, stay: time.Duration(d.rng.Float64() * float64(d.stay))}
		if odd {
			d.oddities(&h)
		}
		d.visit += 1 + h.queuesNew
		d.m.visit(home, at, h)
	}
}

func (d *drawing) oddities(h *habits) {
	s := &d.m.settings
	if d.chance(0.15) {
		h.patience, h.says = d.seconds(1, 200), d.chance(0.5)
	}
	if d.chance(0.2) {
		h.awayAt = d.whole(1, 5)
		h.awayFor = time.Duration(d.between(1, 3*float64((s.RefreshInterval+s.PlaceKept)/time.Second))) * time.Second
	}
	if d.chance(0.15) {
		h.roams = 0.3
	}
	if d.chance(0.2) {
		h.early = 0.5
	}
	if d.chance(0.3) {
		h.queuesNew = 1
	}
}

// deadline is when everybody who stayed has to be in.
func (d *drawing) deadline() time.Time {
	calm := d.m.start.Add(d.calm)
	if calm.Before(d.m.backBy) {
		calm = d.m.backBy
	}
	return calm.Add(d.patience())
}

// patience is for how long after the last fault somebody may have to wait at
// most: for their turn among all who may come before, each of whom keeps a place
// for a visit and a lease, and each of which goes to the node where it is needed
// within two frames per node; or, if the other limit is the tighter one, for the
// minutes that their number takes.
func (d *drawing) patience() time.Duration {
	s := &d.m.settings
	session, total, rate := longestSession(s), s.TotalActiveUsers, s.NewUsersPerMinute
	for _, e := range s.Events {
		if e.TotalActiveUsers != nil {
			total, rate = min(total, *e.TotalActiveUsers), min(rate, *e.NewUsersPerMinute)
		}
	}
	refresh := s.RefreshInterval * 6 / 5
	turn := time.Duration(2*len(d.m.nodes))*(refresh+2*turnSpan) + 2*refresh
	rounds := d.visit/total + 1
	minutes := d.visit/rate + 1
	wait := time.Duration(rounds)*(d.stay+session+turn) + time.Duration(minutes)*(75*time.Second+turn)
	return wait + absentAfter(refresh) + rowKept + session + time.Minute
}

// describeEvent says what holds while an event does.
func describeEvent(e *Event, s *Settings) string {
	at, _ := s.At(e.Start)
	return describe(&at)
}
