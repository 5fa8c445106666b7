package replica

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// mesh is a whole mesh in virtual time: replicas, the messages between them, and
// a membership that sees failures late. Everything follows from the seed.
type mesh struct {
	t     testing.TB
	rng   *rand.Rand
	now   time.Time
	nodes []*member
	air   []flight

	minDelay, maxDelay time.Duration
	loss, dup          float64
	pullEvery          time.Duration                // 0: the default
	cut                map[[2]crdt.NodeID]time.Time // since when; both ways are listed
	errors             []error
	sent, bytes        int
}

type member struct {
	*Replica
	peer  Peer
	alive bool
	died  time.Time
	phase int // of its ticks, in steps
}

type flight struct {
	at       time.Time
	from, to crdt.NodeID
	boot     uint64
	payload  []byte
}

const (
	stepSpan  = 10 * time.Millisecond
	tickSteps = 5               // a Tick every 50 ms
	detection = 6 * time.Second // until membership believes that somebody is gone
)

func newMesh(t testing.TB, seed uint64) *mesh {
	return &mesh{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_800_000_000, 0),
		minDelay: time.Millisecond, maxDelay: 5 * time.Millisecond, cut: make(map[[2]crdt.NodeID]time.Time),
	}
}

func nodeID(n int) crdt.NodeID { return crdt.NodeID{byte(n + 1), 0xaa} }
func roomID(n int) crdt.RoomID { return crdt.RoomID{byte(n), byte(n >> 8), 0xbb} }

var testRetention = crdt.Retention{Room: func(crdt.RoomID) crdt.Fading {
	return crdt.Fading{Session: time.Minute, Refresh: 10 * time.Second}
}}

// start adds a node, or starts one again under the next boot number, and lets
// all know of it.
func (m *mesh) start(n int, site string) *member {
	m.t.Helper()
	x := m.add(n, site)
	m.refresh()
	return x
}

func (m *mesh) add(n int, site string) *member {
	m.t.Helper()
	p := Peer{ID: nodeID(n), Boot: 1, Site: site}
	at := slices.IndexFunc(m.nodes, func(x *member) bool { return x.peer.ID == p.ID })
	if at >= 0 {
		p.Boot = m.nodes[at].peer.Boot + 1
	}
	r, err := New(Config{
		Self: p.incarnation(), Site: site, Retention: testRetention, PullInterval: m.pullEvery,
		Rand: rand.New(rand.NewPCG(m.rng.Uint64(), uint64(n))),
	})
	if err != nil {
		m.t.Fatal(err)
	}
	x := &member{Replica: r, peer: p, alive: true, phase: m.rng.IntN(tickSteps)}
	if at >= 0 {
		m.nodes[at] = x
	} else {
		m.nodes = append(m.nodes, x)
	}
	return x
}

// sites starts the given number of nodes in each of some sites and lets them
// settle.
func (m *mesh) sites(nodes int, names ...string) []*member {
	m.t.Helper()
	for s, name := range names {
		for n := range nodes {
			m.add(s*nodes+n, name)
		}
	}
	m.refresh()
	m.until(10*time.Second, "all are ready", func() bool {
		return !slices.ContainsFunc(m.nodes, func(x *member) bool { return !x.Ready() })
	})
	m.run(3 * time.Second)
	return m.nodes
}

func (m *mesh) kill(x *member) { x.alive, x.died = false, m.now }

// split cuts the named nodes off from all others, both ways.
func (m *mesh) split(group ...*member) {
	for _, a := range group {
		for _, b := range m.nodes {
			if !slices.Contains(group, b) {
				m.cut[[2]crdt.NodeID{a.peer.ID, b.peer.ID}] = m.now
				m.cut[[2]crdt.NodeID{b.peer.ID, a.peer.ID}] = m.now
			}
		}
	}
}

func (m *mesh) heal() { clear(m.cut) }

// refresh tells every node the members that it believes alive.
func (m *mesh) refresh() {
	for _, a := range m.nodes {
		if !a.alive {
			continue
		}
		var seen []Peer
		for _, b := range m.nodes {
			since, cut := m.cut[[2]crdt.NodeID{a.peer.ID, b.peer.ID}]
			gone := cut && m.now.Sub(since) > detection || !b.alive && m.now.Sub(b.died) > detection
			if a == b || gone {
				continue
			}
			p := b.peer
			p.Ready = b.Ready()
			seen = append(seen, p)
		}
		a.SetPeers(seen, m.now)
	}
}

func (m *mesh) send(from *member, out []Message) {
	for _, msg := range out {
		if len(msg.Payload) > from.cfg.MaxMessage {
			m.t.Fatalf("message of %d bytes", len(msg.Payload))
		}
		m.sent++
		m.bytes += len(msg.Payload)
		copies := 1
		if m.rng.Float64() < m.dup {
			copies = 2
		}
		for range copies {
			if m.rng.Float64() < m.loss {
				continue
			}
			delay := m.minDelay + time.Duration(m.rng.Int64N(int64(m.maxDelay-m.minDelay)+1))
			m.air = append(m.air, flight{m.now.Add(delay), from.peer.ID, msg.To, from.peer.Boot, msg.Payload})
		}
	}
}

func (m *mesh) node(id crdt.NodeID) *member {
	for _, x := range m.nodes {
		if x.peer.ID == id {
			return x
		}
	}
	return nil
}

func (m *mesh) step() {
	m.now = m.now.Add(stepSpan)
	var due []flight
	due, m.air = split(m.air, m.now)
	slices.SortStableFunc(due, func(a, b flight) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	for _, f := range due {
		to, from := m.node(f.to), m.node(f.from)
		if _, cut := m.cut[[2]crdt.NodeID{f.from, f.to}]; cut || !to.alive {
			continue
		}
		p := from.peer
		p.Boot = f.boot
		out, err := to.Receive(p, f.payload, m.now)
		if err != nil {
			m.errors = append(m.errors, err)
		}
		m.send(to, out)
	}
	steps := int(m.now.UnixMilli() / stepSpan.Milliseconds())
	if steps%100 == 0 {
		m.refresh()
	}
	for _, x := range m.nodes {
		if x.alive && steps%tickSteps == x.phase {
			m.send(x, x.Tick(m.now))
		}
	}
}

func split(all []flight, now time.Time) (due, rest []flight) {
	for _, f := range all {
		if f.at.After(now) {
			rest = append(rest, f)
		} else {
			due = append(due, f)
		}
	}
	return due, rest
}

func (m *mesh) run(d time.Duration) {
	for end := m.now.Add(d); m.now.Before(end); {
		m.step()
	}
}

// until runs the mesh until cond holds and returns how long that took.
func (m *mesh) until(limit time.Duration, what string, cond func() bool) time.Duration {
	m.t.Helper()
	begin := m.now
	for !cond() {
		if m.now.Sub(begin) > limit {
			m.t.Fatalf("not within %v: %s", limit, what)
		}
		m.step()
	}
	return m.now.Sub(begin)
}

// noErrors fails the test if anybody refused an honest message.
func (m *mesh) noErrors() {
	m.t.Helper()
	for _, err := range m.errors {
		m.t.Errorf("an honest message was refused: %v", err)
	}
}

func sumOf(spans map[int64]int64) (n int64) {
	for _, v := range spans {
		n += v
	}
	return n
}

// view is what a node sees of a site's room, in a few numbers.
type view struct{ active, waiting, seen, admitted int64 }

func (x *member) view(site string, room crdt.RoomID, now time.Time) view {
	for _, s := range x.Sites(room, now) {
		if s.Site == site {
			c := s.Counts
			return view{c.Active, sumOf(c.Waiting), sumOf(c.Seen), sumOf(c.Admitted)}
		}
	}
	return view{}
}

func (m *mesh) seen(x *member, room crdt.RoomID, n uint64) {
	x.Add(crdt.Key{Room: room, Kind: crdt.Seen, Tick: crdt.TickOf(m.now)}, n, 0, m.now)
}

func (m *mesh) active(x *member, room crdt.RoomID, p, n uint64) {
	x.Add(crdt.Key{Room: room, Kind: crdt.Active}, p, n, m.now)
}

// all reports whether every living node sees the same of a site's room.
func (m *mesh) all(site string, room crdt.RoomID, want view) bool {
	for _, x := range m.nodes {
		if x.alive && x.view(site, room, m.now) != want {
			return false
		}
	}
	return true
}
