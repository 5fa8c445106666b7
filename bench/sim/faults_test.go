package sim

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// point is the state at one moment of a run.
type point struct {
	at       time.Duration
	come     int   // arrivals so far
	active   int   // truly
	seen     int   // active as one node has it, another one at each point
	offline  int   // nodes that do not answer
	busySite int32 // which has let in most of those inside
}

// watch runs cfg, and returns its points until nobody is inside any more.
func watch(t *testing.T, cfg Config) (r *Result, series []point) {
	t.Helper()
	r, err := run(t.Context(), cfg, newShipped, func(s *sim) {
		if s.through >= 0 && s.oracle.active == 0 {
			return
		}
		p := point{at: time.Duration(s.now), come: s.people.come, active: s.oracle.active, seen: -1}
		for i := range s.machines {
			m := s.machines[(len(series)+i)%len(s.machines)]
			if !m.answers() {
				p.offline++
			} else if p.seen < 0 {
				p.seen, _ = m.brain.seen()
			}
		}
		inside := make([]int, cfg.Sites)
		for _, v := range s.people.all {
			if v.active {
				inside[v.site]++
			}
		}
		p.busySite = int32(slices.Index(inside, slices.Max(inside)))
		series = append(series, p)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Errorf("seed %d: %v", cfg.Seed, v)
	}
	return r, series
}

// within returns the points of a series from … to, both included.
func within(series []point, from, to time.Duration) (out []point) {
	for _, p := range series {
		if p.at >= from && p.at <= to {
			out = append(out, p)
		}
	}
	return out
}

func offline(points []point) (least, most int) {
	least = 1 << 30
	for _, p := range points {
		least, most = min(least, p.offline), max(most, p.offline)
	}
	return least, most
}

// steady is a crowd that comes evenly for six minutes, so that a fault in the
// middle has something before and behind it.
func steady() Config {
	cfg := small(360, 6*time.Minute)
	cfg.Sites, cfg.Nodes = 2, 2
	return cfg
}

func TestCrashStopsANodeForAsLongAsSaid(t *testing.T) {
	t.Parallel()
	kinds := []FaultKind{Crash, Wipe, Leave, Pause}
	if testing.Short() {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		cfg := steady()
		cfg.Faults = []Fault{{Kind: kind, Site: 1, Node: 2, From: 2 * time.Minute, For: time.Minute}}
		r, points := watch(t, cfg)
		if _, most := offline(within(points, 0, 2*time.Minute-time.Second)); most != 0 {
			t.Errorf("%s: %d nodes are offline before", kind, most)
		}
		if least, most := offline(within(points, 2*time.Minute, 3*time.Minute-time.Second)); least != 1 || most != 1 {
			t.Errorf("%s: %d to %d nodes are offline, want 1", kind, least, most)
		}
		if _, most := offline(within(points, 3*time.Minute+5*time.Second, 6*time.Minute)); most != 0 {
			t.Errorf("%s: %d nodes are offline afterwards", kind, most)
		}
		if r.Unanswered == 0 {
			t.Errorf("%s: nobody has met the silent node", kind)
		}
	}
}

func TestCrashOfASiteTakesAllItsNodes(t *testing.T) {
	t.Parallel()
	cfg := steady()
	cfg.Faults = []Fault{{Kind: Crash, Site: 2, From: 2 * time.Minute, For: time.Minute}}
	_, points := watch(t, cfg)
	if least, most := offline(within(points, 2*time.Minute, 3*time.Minute-time.Second)); least != 2 || most != 2 {
		t.Errorf("%d to %d nodes are offline, want 2", least, most)
	}
}

// TestCrashKeepsWhatWipeLoses looks at how many are counted active by a single
// node that starts again: from its disk it knows, without it cannot.
func TestCrashKeepsWhatWipeLoses(t *testing.T) {
	t.Parallel()
	after := func(kind FaultKind) int {
		cfg := steady()
		cfg.Sites, cfg.Nodes = 1, 1
		cfg.Room.Policy = room.Even // rights would be lost with the disk, and this is about counts
		cfg.Faults = []Fault{{Kind: kind, Site: 1, From: 2*time.Minute + time.Second, For: 4 * time.Second}}
		_, points := watch(t, cfg)
		return within(points, 2*time.Minute+10*time.Second, 2*time.Minute+10*time.Second)[0].seen
	}
	if crashed, wiped := after(Crash), after(Wipe); crashed < 30 || wiped >= crashed {
		t.Errorf("a node counts %d active after a crash and %d after a lost disk", crashed, wiped)
	}
}

func TestPartitionKeepsNewsBack(t *testing.T) {
	t.Parallel()
	cfg := steady()
	cfg.Room.TotalActiveUsers = 1000 // nobody has to wait, so what a node sees is what it hears
	cfg.Weights = []float64{1, 0}
	apart := func(f ...Fault) (most int) {
		cfg.Faults = f
		_, points := watch(t, cfg)
		for _, p := range within(points, 3*time.Minute, 4*time.Minute) {
			most = max(most, p.active-p.seen)
		}
		return most
	}
	cut := Fault{Kind: Partition, Site: 1, From: 100 * time.Second, For: 150 * time.Second}
	none, whole := apart(), apart(cut)
	if none > 15 || whole < 30 {
		t.Errorf("a node sees %d too few without a cut, %d with one", none, whole)
	}
	pair := cut
	pair.Peer = 2
	if got := apart(pair); got != whole {
		t.Errorf("two sites cut from each other: %d too few, want %d as when one is cut from all", got, whole)
	}
}

func TestPartitionOneWayLosesOneWayOnly(t *testing.T) {
	cfg := steady()
	cfg.Sites = 3
	s := newSim(mustDefault(t, cfg), newShipped)
	a, b, c := s.machines[0], s.machines[2], s.machines[4]
	for _, f := range []Fault{{Site: 1, OneWay: true}, {Site: 1, Node: 1, OneWay: true}, {Site: 1, Peer: 2, OneWay: true}} {
		s.partition(f, 1)
		if s.mesh.open(a, b) || !s.mesh.open(b, a) || s.mesh.open(a, c) != (f.Peer != 0) || !s.mesh.open(b, c) {
			t.Errorf("%+v: open from 1 to 2 %v, back %v, from 1 to 3 %v, from 2 to 3 %v", f, s.mesh.open(a, b), s.mesh.open(b, a), s.mesh.open(a, c), s.mesh.open(b, c))
		}
		if mates := s.mesh.open(a, s.machines[1]); mates != (f.Node == 0) {
			t.Errorf("%+v: open inside the site: %v", f, mates)
		}
		s.partition(f, -1)
		if !s.mesh.open(a, b) || !s.mesh.open(a, c) || !s.mesh.open(a, s.machines[1]) {
			t.Errorf("%+v: not open again", f)
		}
	}
}

func TestPartitionOfANodeCutsItFromItsSite(t *testing.T) {
	cfg := steady()
	cfg.Sites, cfg.Uneven = 1, 1
	cfg.Room.TotalActiveUsers = 1000
	cfg.Faults = []Fault{{Kind: Partition, Site: 1, Node: 2, From: 100 * time.Second, For: 150 * time.Second}}
	most := 0
	_, points := watch(t, cfg)
	for _, p := range within(points, 3*time.Minute, 4*time.Minute) {
		most = max(most, p.active-p.seen)
	}
	if most < 30 {
		t.Errorf("the node that is cut off sees %d too few", most)
	}
}

func TestLinkIsSlowAndLossy(t *testing.T) {
	t.Parallel()
	plain := simulate(t, small(60, time.Minute))
	cfg := steady()
	cfg.Faults = []Fault{{Kind: Link, Site: 1, From: 0, For: 5 * time.Minute, Loss: 0.5}}
	lossy := simulate(t, cfg)
	if plain.MessagesLost > 0 || lossy.MessagesLost < 100 {
		t.Errorf("%d messages are lost without, %d with a lossy link", plain.MessagesLost, lossy.MessagesLost)
	}
	s := newSim(mustDefault(t, cfg), newShipped)
	s.slow(Fault{Site: 1, Peer: 2, By: time.Second, OneWay: true}, 1)
	there, _ := s.network.travel(s.machines[0], s.machines[2])
	back, _ := s.network.travel(s.machines[2], s.machines[0])
	if there != back+int64(time.Second) {
		t.Errorf("the slow way takes %d, the other %d", there, back)
	}
	s.slow(Fault{Site: 1, Peer: 2, By: time.Second, OneWay: true}, -1)
	if again, _ := s.network.travel(s.machines[0], s.machines[2]); again != back {
		t.Errorf("after the fault the way takes %d, want %d", again, back)
	}
}

func mustDefault(t testing.TB, cfg Config) Config {
	t.Helper()
	cfg, err := cfg.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestSkewShowsAtTheNextStart has the clock of a machine jump and jump back: a
// node's own never does, as that of production.
func TestSkewShowsAtTheNextStart(t *testing.T) {
	t.Parallel()
	cfg := steady()
	cfg.Faults = []Fault{
		{Kind: Skew, Site: 2, Node: 1, From: time.Minute, For: 2 * time.Minute, By: 3 * time.Second},
		{Kind: Crash, Site: 2, Node: 1, From: 2 * time.Minute, For: time.Second},
	}
	s := newSim(mustDefault(t, cfg), newShipped)
	off := func() time.Duration { return s.machines[2].clock.at(s.now).Sub(s.machines[1].clock.at(s.now)) }
	again := func() { s.begin(1); s.heal(1) }
	for i, step := range []struct {
		do   func()
		want time.Duration
	}{
		{func() { s.start(s.machines[1]); s.start(s.machines[2]) }, 0},
		{func() { s.begin(0) }, 0},
		{again, 3 * time.Second},
		{func() { s.heal(0) }, 3 * time.Second},
		{again, 0},
	} {
		if step.do(); off() != step.want {
			t.Errorf("after step %d the clock is ahead by %v, want %v", i, off(), step.want)
		}
	}
	cfg.Faults = append(cfg.Faults, Fault{Kind: Crash, Site: 2, Node: 1, From: 4 * time.Minute, For: time.Second}) // it does not serve before
	simulate(t, cfg)
}

func TestClocksDriftAndDiffer(t *testing.T) {
	c := clock{offset: int64(50 * time.Millisecond), drift: 1e-4}
	if got := c.at(int64(1000 * time.Second)).Sub(Epoch()); got != 1000*time.Second+150*time.Millisecond {
		t.Errorf("the clock shows %v after 1000 s", got)
	}
	cfg := steady()
	cfg.Clocks = Clocks{Offset: 100 * time.Millisecond, Drift: 1e-3}
	s := newSim(mustDefault(t, cfg), newShipped)
	seen := map[clock]bool{}
	for _, m := range s.machines {
		seen[m.clock] = true
		if m.clock.wall > int64(100*time.Millisecond) || m.clock.wall < -int64(100*time.Millisecond) || m.clock.drift > 1e-3 || m.clock.drift < -1e-3 {
			t.Errorf("clock %+v is beyond its bounds", m.clock)
		}
	}
	if len(seen) != len(s.machines) {
		t.Error("two nodes have the same clock")
	}
}

func TestMembersOverlappingFaults(t *testing.T) {
	cfg := steady()
	s := newSim(mustDefault(t, cfg), newShipped)
	for _, m := range s.machines {
		m.boot, m.seen.up, m.seen.since, m.seen.booted, m.seen.readyAt = 1, true, longAgo, longAgo, longAgo
	}
	a, b := s.machines[0], s.machines[2]
	sees := func(from, to *machine) bool {
		for _, p := range s.mesh.peers(nil, from, s.now) {
			if p.ID == to.id {
				return true
			}
		}
		return false
	}
	s.partition(Fault{Site: 1}, 1)
	s.changed()
	for _, step := range []struct {
		at   time.Duration
		want bool
	}{{4 * time.Second, true}, {7 * time.Second, false}} {
		if s.now = -int64(warmUp) + int64(step.at); sees(a, b) != step.want || sees(b, a) != step.want {
			t.Errorf("%v after the cut: seen %v and %v, want %v", step.at, sees(a, b), sees(b, a), step.want)
		}
	}
	s.partition(Fault{Site: 1}, -1)
	s.changed()
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{100 * time.Millisecond, false}, {time.Second, true}} {
		if s.now = -int64(warmUp) + int64(7*time.Second+step.after); sees(a, b) != step.want {
			t.Errorf("%v after it healed: seen %v, want %v", step.after, sees(a, b), step.want)
		}
	}
	if len(s.mesh.gone(a, s.now)) != 0 {
		t.Error("a site has left")
	}
	// Who stands still, is cut off meanwhile, and then goes on, is not seen to.
	s.standUp(b, false)
	s.now += int64(5 * time.Second)
	s.partition(Fault{Site: 1}, 1)
	s.changed()
	s.now += int64(3 * time.Second)
	s.standUp(b, true)
	s.changed()
	if s.now += int64(time.Second); sees(a, b) || sees(b, a) != true {
		t.Errorf("behind a cut: seen %v and %v, want false, and true for a while", sees(a, b), sees(b, a))
	}
	s.partition(Fault{Site: 1}, -1)
	s.changed()
	if s.now += int64(time.Second); !sees(a, b) {
		t.Error("not seen again after the cut")
	}
	for _, m := range s.machines[2:] {
		m.seen.left, m.seen.up, m.seen.since = true, false, s.now
	}
	if s.now += int64(time.Second); len(s.mesh.gone(a, s.now)) != 1 || sees(a, b) {
		t.Errorf("gone sites %v, seen %v", s.mesh.gone(a, s.now), sees(a, b))
	}
}

func TestPairOfSitesStaysMemberByAThird(t *testing.T) {
	cfg := steady()
	cfg.Sites = 3
	s := newSim(mustDefault(t, cfg), newShipped)
	for _, m := range s.machines {
		m.seen.up = true
	}
	s.partition(Fault{Site: 1, Peer: 2}, 1)
	s.mesh.settle(0)
	if w := s.mesh.ways[0][1]; !w.meets {
		t.Error("two of three sites that are cut from each other have lost each other")
	}
	s.partition(Fault{Site: 1, Peer: 3}, 1)
	s.mesh.settle(0)
	if w := s.mesh.ways[0][1]; w.meets {
		t.Error("a site that is cut from all is still there")
	}
}

func TestFaultsLeaveVisitorsAsTheyWere(t *testing.T) {
	t.Parallel()
	first := func(cfg Config) (arrivals []int) {
		_, points := watch(t, cfg)
		for _, p := range points {
			arrivals = append(arrivals, p.come)
		}
		return arrivals
	}
	cfg := steady()
	plain := first(cfg)
	cfg.Faults = []Fault{{Kind: Crash, Site: 1, Node: 1, From: time.Minute, For: time.Minute}}
	cfg.Network.Loss = 0.1
	for i, n := range first(cfg)[:36] {
		if n != plain[i] {
			t.Fatalf("step %d has %d arrivals with a fault and %d without", i, n, plain[i])
		}
	}
}

func TestBadFaultsAreRefused(t *testing.T) {
	for name, f := range map[string]Fault{
		"no such kind":            {Kind: "meteor", Site: 1},
		"site is missing":         {Kind: Crash},
		"there is no site 3":      {Kind: Crash, Site: 3},
		"there is no node 9":      {Kind: Crash, Site: 1, Node: 9},
		"outside of the run":      {Kind: Crash, Site: 1, From: time.Hour},
		"for is missing":          {Kind: Partition, Site: 1},
		"no other site 1":         {Kind: Partition, Site: 1, Peer: 1, For: 1},
		"not both":                {Kind: Partition, Site: 1, Peer: 2, Node: 1, For: 1},
		"peer means nothing":      {Kind: Crash, Site: 1, Peer: 2},
		"by is missing":           {Kind: Skew, Site: 1},
		"by means nothing":        {Kind: Crash, Site: 1, By: 1},
		"by and loss are missing": {Kind: Link, Site: 1, For: 1},
		"loss means nothing":      {Kind: Crash, Site: 1, Loss: 0.1},
		"link is between sites":   {Kind: Link, Site: 1, Node: 1, For: 1, Loss: 0.1},
		"want a delay":            {Kind: Link, Site: 1, For: 1, By: -1},
		"oneway means nothing":    {Kind: Pause, Site: 1, For: 1, OneWay: true},
		"for means nothing":       {Kind: Limits, Site: 1, Active: 1, For: 1},
		"session is missing":      {Kind: Limits, Site: 1},
		"session means nothing":   {Kind: Join, Site: 1, Rate: 3},
		"to means nothing":        {Kind: Join, Site: 1, To: "open"},
		"want one of [even":       {Kind: Policy, Site: 1, For: 1, To: "escrow"},
		"(disk-slow): by is miss": {Kind: DiskSlow, Site: 1, For: 1},
	} {
		cfg := steady()
		cfg.Faults = []Fault{f}
		err := cfg.Check()
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: got %v, want something about %q", f, err, name)
		}
	}
	one := steady()
	one.Sites = 1
	one.Faults = []Fault{{Kind: Partition, Site: 1, For: 1}}
	if err := one.Check(); err == nil || !strings.Contains(err.Error(), "one site only") {
		t.Errorf("a partition of one site: %v", err)
	}
	even := steady()
	even.Room.Policy = room.Even
	even.Faults = []Fault{{Kind: Remake, Site: 1, Node: 1}}
	if err := even.Check(); err == nil || !strings.Contains(err.Error(), "whose policy is escrow") {
		t.Errorf("a room that is made again without rights: %v", err)
	}
}

func TestBadConfigIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"sites":            func(c *Config) { c.Sites = -1 },
		"nodes at each":    func(c *Config) { c.Sites, c.Nodes = 1000, 1000 },
		"site weights for": func(c *Config) { c.Weights = []float64{1} },
		"all site weights": func(c *Config) { c.Weights = []float64{0, 0} },
		"no arrivals":      func(c *Config) { c.Arrivals = nil },
		"64 changes of limits": func(c *Config) {
			c.Faults = make([]Fault, 64)
			for i := range c.Faults {
				c.Faults[i] = Fault{Kind: Limits, Site: 1, Active: 1 + i}
			}
		},
		"total-active-users":   func(c *Config) { c.Room.TotalActiveUsers = 0 },
		"is suspended":         func(c *Config) { c.Room.Suspended = true },
		"new-users-per-minute": func(c *Config) { c.Room.NewUsersPerMinute = -3 },
	} {
		cfg := steady()
		spoil(&cfg)
		_, err := Run(t.Context(), cfg)
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want something about %q", err, want)
		}
	}
	var field *room.FieldError
	cfg := steady()
	cfg.Room.TotalActiveUsers = 0
	if err := cfg.Check(); !errors.As(err, &field) {
		t.Errorf("%v does not hold what is wrong with the room", err)
	}
}

// TestRestartWhileSomethingElseChanges has a node start again in the step in which
// a cut heals: it has to hear of the others all the same.
func TestRestartWhileSomethingElseChanges(t *testing.T) {
	t.Parallel()
	cfg := steady()
	cfg.Faults = []Fault{
		{Kind: Partition, Site: 2, From: time.Minute, For: time.Minute},
		{Kind: Crash, Site: 1, Node: 1, From: time.Minute, For: time.Minute},
	}
	_, points := watch(t, cfg)
	if _, most := offline(within(points, 2*time.Minute+5*time.Second, 6*time.Minute)); most != 0 {
		t.Errorf("%d nodes are offline after all faults", most)
	}
}

// TestNodesThatStayDeadEndTheRun leaves visitors to whom nobody ever answers.
func TestNodesThatStayDeadEndTheRun(t *testing.T) {
	for _, from := range []time.Duration{0, 30 * time.Second} {
		cfg := small(60, time.Minute)
		cfg.Sites, cfg.Nodes = 1, 1
		cfg.Faults = []Fault{{Kind: Crash, Site: 1, From: from}}
		r := simulate(t, cfg)
		if r.WaitingAtEnd == 0 || r.LetIn+r.WaitingAtEnd != r.Visitors || from == 0 && r.LetIn != 0 {
			t.Errorf("dead from %v on: of %d visitors %d were let in and %d wait at the end", from, r.Visitors, r.LetIn, r.WaitingAtEnd)
		}
	}
}

// TestPausedNodeKeepsItsDisk writes nothing while it does nothing, and loses
// nothing either.
func TestPausedNodeKeepsItsDisk(t *testing.T) {
	cfg := steady()
	s := newSim(mustDefault(t, cfg), newShipped)
	m := s.machines[0]
	s.start(m)
	s.beginAt(m, Fault{Kind: Pause})
	if s.save(m); !m.paused || len(m.disk.state) == 0 {
		t.Errorf("paused %v, %d bytes on disk", m.paused, len(m.disk.state))
	}
}

// TestStaysDoNotDependOnPolls has two runs of the same seed differ in how often a
// visitor's dice were thrown before the visitor is let in.
func TestStaysDoNotDependOnPolls(t *testing.T) {
	cfg := steady()
	s := newSim(mustDefault(t, cfg), newShipped)
	ends := func(no uint32, thrown int) int64 {
		v := visitor{no: no, dice: dice(no)}
		for range thrown {
			v.dice.next()
		}
		s.browse(&v)
		return v.until - s.now
	}
	if ends(1, 0) != ends(1, 3) || ends(1, 0) == ends(2, 0) {
		t.Errorf("the first one stays for %d or %d, the second for %d", ends(1, 0), ends(1, 3), ends(2, 0))
	}
	mean := int64(0)
	for no := range uint32(1000) {
		mean += ends(no, 0) / 1000
	}
	if got := time.Duration(mean); got < cfg.Stay*9/10 || got > cfg.Stay*11/10 {
		t.Errorf("they stay for %v on average, want about %v", got, cfg.Stay)
	}
}
