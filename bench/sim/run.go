package sim

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

var roomID = crdt.RoomID{'s', 'i', 'm'}

const (
	// warmUp is how long the mesh runs before the first visitor may come.
	warmUp = 15 * time.Second
	// lookEvery is how many events pass between two looks at the context.
	lookEvery = 1 << 12
)

// sim is one run. Times are ns of true time since the first visitor may come.
type sim struct {
	cfg      Config
	newBrain newBrain
	watch    func(*sim) // nil: nobody does
	heap     heap
	now      int64
	events   int

	machines []*machine
	registry registry
	mesh     *mesh
	network  *network
	driven   *machine // that is given something to do

	people  people
	answers []late
	next    func() (time.Duration, bool) // of arrivals
	weights []float64                    // of sites, added up

	oracle *oracle
	force  *force
	rights ledgers
	room   room.Settings // as operators have it by now; a start of a node has it as it was first
	waits  []wait

	f          Figures
	over       excesses
	violations []Violation
	estimates  []float64 // how far off the waits were that visitors were told, in minutes

	peers []replica.Peer // scratch
	lists lists

	remakes      map[int32]*remaking // by fault
	arrivalsLeft bool
	quietFrom    int64 // when the last fault is over
	through      int64 // when the last visitor was; -1: not yet
	quiet        int64 // when nobody was active any more; 0: not yet
	ended        bool
	wildClocks   bool  // beyond what a pass is accepted with
	farClocks    bool  // beyond what nodes have to bear
	changes      bool  // limits do, by events or by operators
	switched     int   // nodes at which operators have another policy, or have not told that it is over
	freeUntil    int64 // the limit does not bind everywhere until then, and a little longer
	follows      bool  // force follows who knows of limits
	parted       bool  // some node may have been in service for long without hearing what others know
	err          error
}

// Run simulates what cfg describes. It returns early, with the cause, when ctx
// ends.
func Run(ctx context.Context, cfg Config) (*Result, error) { return run(ctx, cfg, newShipped, nil) }

// run is Run with other brains, and with watch called now and then.
func run(ctx context.Context, cfg Config, brains newBrain, watch func(*sim)) (*Result, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := newSim(cfg, brains)
	next, stop := iter.Pull(cfg.Arrivals.Times(stream(cfg.Seed, forArrivals)))
	defer stop()
	s.next, s.watch = next, watch
	s.prepare()
	if err := s.loop(ctx); err != nil {
		return nil, err
	}
	return s.result(), nil
}

func newSim(cfg Config, brains newBrain) *sim {
	s := &sim{
		cfg: cfg, newBrain: brains, now: -int64(warmUp),
		registry: registry{byID: map[crdt.NodeID]int32{}}, network: newNetwork(cfg),
		oracle:       newOracle(&cfg.Room, -int64(warmUp)),
		arrivalsLeft: true, through: -1, freeUntil: longAgo, remakes: map[int32]*remaking{},
	}
	sum := 0.0
	for site := range cfg.Sites {
		w := 1.0
		if cfg.Weights != nil {
			w = cfg.Weights[site]
		}
		sum += w
		s.weights = append(s.weights, sum)
	}
	clocks, delays := stream(cfg.Seed, forClocks), stream(cfg.Seed, forMembers)
	for n := range cfg.Sites * cfg.Nodes {
		m := &machine{no: int32(n), siteNo: int32(n / cfg.Nodes), place: n % cfg.Nodes, policy: cfg.Room.Policy}
		m.clock = clock{
			wall:  int64(float64(cfg.Clocks.Offset) * (2*clocks.Float64() - 1)),
			drift: cfg.Clocks.Drift * (2*clocks.Float64() - 1),
		}
		m.seen = standing{since: longAgo, fails: between(delays, failSeenMin, failSeenMax), joins: between(delays, joinSeenMin, joinSeenMax)}
		m.identity = s.registry.add(cfg.Seed, m, 0)
		m.disk = newDisk(cfg.Seed, m.number)
		s.machines = append(s.machines, m)
	}
	s.mesh = newMesh(cfg.Sites, s.machines)
	s.wildClocks, s.farClocks = apart(cfg, passClocks), apart(cfg, clockBound)
	s.rights, s.room = newLedgers(cfg), cfg.Room
	s.newLimits()
	s.changes = len(cfg.Room.Events) > 0 || slices.ContainsFunc(cfg.Faults, func(f Fault) bool { return f.Kind == Limits || f.Kind == Policy })
	return s
}

func between(rng *rand.Rand, least, most time.Duration) int64 {
	return int64(least) + rng.Int64N(int64(most-least))
}

// passClocks is how far apart clocks may be for a node to accept a pass of another.
const passClocks = 2 * time.Second

// apart reports whether two clocks may be further apart than by bound.
func apart(cfg Config, bound time.Duration) bool {
	apart := 2*cfg.Clocks.Offset + time.Duration(2*cfg.Clocks.Drift*float64(cfg.Length))
	for _, f := range cfg.Faults {
		if f.Kind == Skew {
			apart += f.By.Abs()
		}
	}
	return apart > bound
}

// prepare puts the first events into the heap.
func (s *sim) prepare() {
	for _, f := range s.cfg.Faults {
		if f.Kind == Join {
			for _, m := range s.hit(f) {
				m.away = true
				s.forgets(m)
			}
		}
	}
	for _, m := range s.machines {
		if !m.away {
			s.start(m)
		}
	}
	s.changed()
	s.planFaults()
	s.planArrival()
	s.heap.add(0, looks, 0, 0)
}

// stagger spreads the ticks of all nodes evenly over the interval, as they are
// where nobody starts all nodes in the same moment.
func (s *sim) stagger(m *machine) int64 {
	return int64(s.cfg.Tick) * int64(m.no) / int64(len(s.machines))
}

func (s *sim) planArrival() {
	at, ok := s.next()
	if !ok || at > s.cfg.Length {
		s.arrivalsLeft = false
		return
	}
	s.heap.add(int64(at), arrives, 0, 0)
}

// loop runs events until there is nothing left to wait for.
func (s *sim) loop(ctx context.Context) (err error) {
	defer s.caught()
	for !s.ended {
		if s.events%lookEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e, ok := s.heap.next()
		if !ok {
			break
		}
		s.events++
		s.now = e.at
		s.oracle.advance(e.at)
		s.force.advance(e.at)
		if s.switched > 0 {
			s.freeUntil = e.at + lingers
		}
		s.do(e)
	}
	return s.err
}

// caught turns a panic of a node into a violation. What the mesh does from there
// on would mean nothing, so the run ends.
func (s *sim) caught() {
	p := recover()
	if p == nil {
		return
	}
	if s.driven == nil {
		panic(p) // our own
	}
	s.violate(NodePanicked, s.driven, fmt.Sprint(p))
	s.ended = true
}

func (s *sim) do(e event) {
	switch e.kind() {
	case arrives:
		s.arrive()
	case acts:
		s.act(e.who, e.what)
	case ticks:
		if m := s.machines[e.who]; m.started == e.what && m.runs() {
			s.tick(m)
		}
	case delivered:
		s.deliver(s.network.take(e.who))
		s.hand()
	case wrote:
		if m := s.machines[e.who]; m.started == e.what && m.brain != nil {
			s.wrote(m)
		}
	case says:
		s.say(e.who)
	case checks:
		if m := s.machines[e.who]; m.started == e.what && m.brain != nil {
			s.checkClock(m)
		}
	case members:
		if m := s.machines[e.who]; m.started == e.what && m.runs() {
			s.meet(m)
		}
	case begins:
		s.begin(e.who)
	case heals:
		s.heal(e.who)
		s.hand()
	case saves:
		s.save(s.machines[e.who])
	case looks:
		s.look()
	}
	s.driven = nil
}

// tick has a node do what is due. A node that has others waits until it has heard
// of them, as the shell of a real one does.
func (s *sim) tick(m *machine) {
	s.heap.add(s.now+int64(s.cfg.Tick), ticks, m.no, m.started)
	if !m.joined && len(s.machines) > 1 {
		return
	}
	s.driven = m
	ready := m.brain.Ready()
	s.post(m, m.brain.Tick(m.clock.at(s.now)))
	s.note(m)
	s.confirm(m)
	s.checkKnown(m)
	s.hand()
	s.store(m)
	if s.handOver(m); m.brain == nil {
		return
	}
	if err := m.brain.Conflict(); err != nil && !m.seen.conflict {
		m.seen.conflict = true
		s.violate(FalseConflict, m, err.Error())
	}
	if !ready && m.brain.Ready() {
		m.seen.readyAt = s.now
		s.changed()
	}
}

// fail ends the run because the simulator itself cannot go on.
func (s *sim) fail(err error) {
	s.err = fmt.Errorf("simulate node %s: %w", s.driven.name(), err)
	s.ended = true
}

// maxViolations keeps one thing that goes wrong all the time from filling memory.
const maxViolations = 100

func (s *sim) violate(kind string, m *machine, text string) {
	if len(s.violations) >= maxViolations {
		return
	}
	v := Violation{Kind: kind, At: seconds(s.now), Text: text}
	s.trace(m, "VIOLATION %s: %s", kind, text)
	if m != nil {
		v.Node = m.name()
	}
	s.violations = append(s.violations, v)
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
