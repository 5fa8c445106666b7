package room

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// mesh drives whole meshes of nodes through these rules in virtual time. Counts
// reach other nodes of the site after near, other sites after far; an oracle
// knows how many visitors are really in.
type mesh struct {
	s         Settings
	near, far time.Duration
	rng       *rand.Rand
	now       time.Time
	start     time.Time
	nodes     []*meshNode
	sites     []string
	at        map[int64][]func() // by step
	route     func(m *mesh, v *meshVisitor) *meshNode

	active   int
	leases   []time.Time // starts, for the oracle of the rate
	waiting  map[*meshVisitor]bool
	admitted []*meshVisitor // in order

	peak     int     // of active
	peakRate int     // of leases in any 60 s
	used     float64 // active visitors × time while enough wait
	busy     float64 // limit × the same time
}

type meshNode struct {
	id     crdt.NodeID
	site   string
	alive  bool
	copies [3]crdt.Counts // as known here, near and far
	line   *Line
	view   *View
	taken  [2]int // since the view: reserved, contested
	steps  int
}

type meshVisitor struct {
	id      [16]byte
	home    int // node
	arrived time.Time
	entered time.Time
	vis     Visitor
}

const (
	meshStep = 50 * time.Millisecond
	here     = 0
	inSite   = 1
	outside  = 2
)

func newMesh(s Settings, near, far time.Duration, seed uint64, perSite ...int) *mesh {
	m := &mesh{s: s.WithDefaults(), near: near, far: far,
		rng: rand.New(rand.NewPCG(seed, 7)), at: map[int64][]func(){}, waiting: map[*meshVisitor]bool{},
		start: time.Unix(1_767_268_800, 0)}
	m.now = m.start
	m.route = func(m *mesh, v *meshVisitor) *meshNode { return m.nodes[v.home] }
	for i, n := range perSite {
		site := string(rune('a' + i))
		m.sites = append(m.sites, site)
		for range n {
			node := &meshNode{id: nodeID(len(m.nodes)), site: site, alive: true, line: NewLine(m.s, []byte("a key")), steps: m.rng.IntN(5)}
			for c := range node.copies {
				node.copies[c] = crdt.Counts{Waiting: map[int64]int64{}, Seen: map[int64]int64{}, Admitted: map[int64]int64{}}
			}
			m.nodes = append(m.nodes, node)
		}
	}
	return m
}

func (m *mesh) step() int64 { return int64(m.now.Sub(m.start) / meshStep) }

func (m *mesh) after(d time.Duration, f func()) {
	when := m.step() + max(1, int64((d+meshStep-1)/meshStep))
	m.at[when] = append(m.at[when], f)
}

// write changes a node's row, here now and elsewhere later.
func (m *mesh) write(n *meshNode, f func(c *crdt.Counts)) {
	f(&n.copies[here])
	if m.near == 0 {
		f(&n.copies[inSite])
	} else {
		m.after(m.near, func() { f(&n.copies[inSite]) })
	}
	if m.far == 0 {
		f(&n.copies[outside])
	} else {
		m.after(m.far, func() { f(&n.copies[outside]) })
	}
}

func (m *mesh) apply(n *meshNode, changes []Change) {
	for _, ch := range changes {
		m.write(n, func(c *crdt.Counts) {
			cells := c.Waiting
			if ch.Kind == crdt.Seen {
				cells = c.Seen
			}
			cells[ch.Tick] += int64(ch.P) - int64(ch.N)
			if cells[ch.Tick] == 0 {
				delete(cells, ch.Tick)
			}
		})
	}
}

func add(dst *crdt.Counts, src crdt.Counts, span time.Duration) {
	dst.Active += src.Active
	for at, n := range src.Waiting {
		if span > 0 {
			at = bucketStart(at, seconds(span))
		}
		dst.Waiting[at] += n
	}
	for at, n := range src.Seen {
		dst.Seen[at] += n
	}
	for at, n := range src.Admitted {
		dst.Admitted[at] += n
	}
}

// input is what node n knows. A dead node's row still counts, as it does until
// it fades.
func (m *mesh) input(n *meshNode) Input {
	in := Input{Self: n.id, Mine: n.copies[here]}
	bySite := map[string]*Site{}
	for _, site := range m.sites {
		bySite[site] = &Site{Name: site, Own: site == n.site, Counts: crdt.Counts{
			Waiting: map[int64]int64{}, Seen: map[int64]int64{}, Admitted: map[int64]int64{}}}
	}
	for _, other := range m.nodes {
		site := bySite[other.site]
		switch {
		case other == n:
			add(&site.Counts, other.copies[here], 0)
		case other.site == n.site:
			add(&site.Counts, other.copies[inSite], 0)
		default:
			add(&site.Counts, other.copies[outside], m.s.BucketSpan)
		}
		if other.alive {
			site.Nodes++
			if site.Own {
				in.Nodes = append(in.Nodes, other.id)
			}
		}
	}
	for _, site := range m.sites {
		in.Sites = append(in.Sites, *bySite[site])
	}
	return in
}

// run lets d pass.
func (m *mesh) run(d time.Duration) {
	for end := m.now.Add(d); m.now.Before(end); m.now = m.now.Add(meshStep) {
		due := m.at[m.step()]
		delete(m.at, m.step())
		for _, f := range due {
			f()
		}
		for _, n := range m.nodes {
			if n.alive && (m.step()+int64(n.steps))%5 == 0 { // every 250 ms
				m.apply(n, n.line.Expire(nil, m.now))
				n.view = Build(m.s, m.input(n), m.now)
				n.taken = [2]int{}
			}
		}
		m.observe()
	}
}

func (m *mesh) observe() {
	m.peak = max(m.peak, m.active)
	for len(m.leases) > 0 && m.now.Sub(m.leases[0]) >= time.Minute {
		m.leases = m.leases[1:]
	}
	m.peakRate = max(m.peakRate, len(m.leases))
	if len(m.waiting) >= 2*len(m.nodes) {
		m.used += float64(m.active)
		m.busy += float64(m.s.TotalActiveUsers)
	}
}

// arrive brings a visitor to a node after d.
func (m *mesh) arrive(home int, d time.Duration) *meshVisitor {
	v := &meshVisitor{home: home}
	for i := range v.id {
		v.id[i] = byte(m.rng.Uint32())
	}
	m.after(d, func() {
		v.arrived = m.now
		m.waiting[v] = true
		m.ask(v)
	})
	return v
}

// ask is one request of a visitor who is not in yet.
func (m *mesh) ask(v *meshVisitor) {
	n := m.route(m, v)
	if !n.alive || n.view == nil {
		m.after(time.Second, func() { m.ask(v) })
		return
	}
	d := n.view.Decide(v.vis, m.now)
	if d.New {
		v.vis = Visitor{Arrival: m.now}
	}
	class := -1
	switch d.Action {
	case Apply:
		if n.taken[0] < n.view.AllowWaiting {
			class = 0
		}
	case Compete:
		if n.taken[1] < n.view.AllowNew {
			class = 1
		}
	}
	if class >= 0 {
		n.taken[class]++
		m.enter(n, v)
		return
	}
	if d.Action != TooEarly {
		v.vis.LastPoll, v.vis.Refresh = m.now, m.s.RefreshInterval
		arrival, at := v.vis.Arrival, m.now
		m.tellOwner(n, v, func(o *meshNode) []Change {
			return o.line.Poll(nil, v.id, arrival, at, m.s.RefreshInterval)
		})
	}
	// Browsers are a little late now and then.
	m.after(m.s.RefreshInterval+time.Duration(m.rng.IntN(500))*time.Millisecond, func() { m.ask(v) })
}

// tellOwner brings news of a visitor to the owner in the site of n.
func (m *mesh) tellOwner(n *meshNode, v *meshVisitor, f func(o *meshNode) []Change) {
	var ids []crdt.NodeID
	for _, other := range m.nodes {
		if other.site == n.site && other.alive {
			ids = append(ids, other.id)
		}
	}
	id := Owner([]byte("a key"), m.s.ID, v.id, ids)
	owner := m.nodes[slices.IndexFunc(m.nodes, func(o *meshNode) bool { return o.id == id })]
	if owner == n || m.near == 0 {
		m.apply(owner, f(owner))
		return
	}
	m.after(m.near, func() { m.apply(owner, f(owner)) })
}

func (m *mesh) enter(n *meshNode, v *meshVisitor) {
	delete(m.waiting, v)
	v.entered = m.now
	m.admitted = append(m.admitted, v)
	m.active++
	m.leases = append(m.leases, m.now)
	tick := crdt.TickOf(m.now)
	m.write(n, func(c *crdt.Counts) { c.Active++; c.Admitted[tick]++ })
	at := m.now
	m.tellOwner(n, v, func(o *meshNode) []Change { return o.line.Admit(nil, v.id, at) })
	m.after(m.s.SessionDuration, func() {
		m.active--
		m.write(n, func(c *crdt.Counts) { c.Active-- })
	})
}

// kill takes a node away. Its row is what others know of it, until it fades:
// the waiting after two and a half intervals, the active after a session.
func (m *mesh) kill(i int) {
	n := m.nodes[i]
	n.alive = false
	m.after(m.s.RefreshInterval*5/2, func() {
		gone := maps.Clone(n.copies[here].Waiting)
		m.write(n, func(c *crdt.Counts) {
			for at, w := range gone {
				c.Waiting[at] -= w
			}
		})
	})
}

// orderError is the share of pairs that entered in the wrong order (Kendall's
// normalized tau distance).
func (m *mesh) orderError() float64 {
	wrong, pairs := 0, 0
	for i, v := range m.admitted {
		for _, w := range m.admitted[i+1:] {
			if v.arrived.Equal(w.arrived) {
				continue
			}
			pairs++
			if v.arrived.After(w.arrived) {
				wrong++
			}
		}
	}
	return float64(wrong) / float64(max(1, pairs))
}
