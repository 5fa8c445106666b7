package room

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// mesh drives whole meshes of nodes through these rules in virtual time, event
// by event. An oracle knows who is really in.
//
// What a node counts reaches the other nodes of its site within near and other
// sites within far: it gathers changes for that long and sends them at once.
// A message says how things stand, so one that is lost is made up for by the
// next. A site that is cut off hears nothing and is not heard.
type mesh struct {
	settings Settings // as the operator wrote them last
	version  int      // of the settings
	near     time.Duration
	far      time.Duration
	loss     float64
	viewAge  time.Duration // a view is kept for so long

	rng    *rand.Rand
	start  time.Time
	now    time.Time
	events timeline
	nodes  []*meshNode
	sites  []*meshSite
	rights []siteRights // by site; Escrow only
	route  func(m *mesh, v *meshVisitor) *meshNode
	log    func(format string, args ...any) // nil: nobody listens

	oracle
}

type meshSite struct {
	name    string
	nodes   []*meshNode
	rows    []*row
	outside []picture // by site: what is known here of the others
	cut     bool
	cutAt   time.Time
	deadAt  time.Time // when its last node died
}

// meshNode is one node. A start of it that ended leaves its row behind.
type meshNode struct {
	index    int
	id       crdt.NodeID
	site     *meshSite
	alive    bool
	skew     time.Duration // of its clock
	settings Settings      // as known here
	row      *row
	own      picture // of its site
	line     *Line
	looking  bool // the line will be looked through for the absent
	history  History
	leads    time.Time // when it may hand out places, where it is the counter

	view   *View
	viewed time.Time // when the view was built
	seen   time.Time // everything up to then is in the view
	taken  [3]int    // since the view: reserved, contested, anywhere
}

// row is what one start of a node counts: the changes in order, of which
// everybody else has read a part.
type row struct {
	node      *meshNode
	index     int // in its site
	mine      crdt.Counts
	changes   []cell
	gathering [2]bool // a message to the own site, to others
}

type cell struct {
	kind crdt.Kind
	at   int64
	n    int64
	when time.Time
}

// picture is the sum of what somebody has read of the rows of one site.
type picture struct {
	crdt.Counts
	read []int         // by row
	span time.Duration // of waiting; 0: by granule
}

// The allowances of a view.
const (
	reserved = iota
	contested
	anywhereClass
)

var meshKey = []byte("a key of thirty-two bytes, or so")

func emptyCounts() crdt.Counts {
	return crdt.Counts{Waiting: map[int64]int64{}, Seen: map[int64]int64{}, Admitted: map[int64]int64{}}
}

func newMesh(s Settings, near, far time.Duration, seed uint64, perSite ...int) *mesh {
	m := &mesh{
		settings: s.WithDefaults(), near: near, far: far, viewAge: 250 * time.Millisecond,
		rng: rand.New(rand.NewPCG(seed, 7)), start: time.Unix(1_767_268_800, 0),
	}
	m.now = m.start
	m.route = func(m *mesh, v *meshVisitor) *meshNode { return m.nodes[v.home] }
	for i, n := range perSite {
		site := &meshSite{name: string(rune('a' + i))}
		for range perSite {
			site.outside = append(site.outside, picture{Counts: emptyCounts(), span: m.settings.BucketSpan})
		}
		m.sites = append(m.sites, site)
		for range n {
			node := &meshNode{index: len(m.nodes), id: nodeID(len(m.nodes)), site: site}
			m.nodes = append(m.nodes, node)
			site.nodes = append(site.nodes, node)
			m.boot(node)
		}
	}
	return m
}

// boot starts a node, the first time or again. It has its site's state before
// it takes requests.
func (m *mesh) boot(n *meshNode) {
	n.row = &row{node: n, index: len(n.site.rows), mine: emptyCounts()}
	n.site.rows = append(n.site.rows, n.row)
	own := picture{Counts: emptyCounts()}
	for _, r := range n.site.rows {
		most := 0
		for _, other := range n.site.nodes {
			if r.index < len(other.own.read) {
				most = max(most, other.own.read[r.index])
			}
		}
		m.read(&own, r, most)
	}
	n.alive, n.settings, n.own = true, m.settings, own
	n.line, n.view, n.looking = NewLine(complete(m.settings), meshKey), nil, false
	n.history = History{}
}

// clock is the time as a node has it.
func (m *mesh) clock(n *meshNode) time.Time { return m.now.Add(n.skew) }

func (m *mesh) trace(format string, args ...any) {
	if m.log != nil {
		m.log("%9.3f  %s", m.now.Sub(m.start).Seconds(), fmt.Sprintf(format, args...))
	}
}

// after has f called in d.
func (m *mesh) after(d time.Duration, f func()) { m.events.add(m.now.Add(max(0, d)), f) }

// run lets d pass.
func (m *mesh) run(d time.Duration) { m.runUntil(m.now.Add(d)) }

// runUntil lets time pass until end. It reports whether nothing is going to
// happen any more; then time stays where it is.
func (m *mesh) runUntil(end time.Time) (quiet bool) {
	for m.events.len() > 0 {
		at, f := m.events.next(end)
		if f == nil {
			m.pass(end)
			return false
		}
		m.pass(at)
		f()
	}
	return true
}

// pass moves the time on and measures what lay in between.
func (m *mesh) pass(to time.Time) {
	m.measure(m.settings, to.Sub(m.now), len(m.nodes))
	m.now = to
}

// write changes a node's row, here now and elsewhere later.
func (m *mesh) write(r *row, kind crdt.Kind, at, n int64) {
	c := cell{kind, at, n, m.now}
	r.changes = append(r.changes, c)
	addCell(&r.mine, c, 0)
	m.read(&r.node.own, r, len(r.changes))
	m.publish(r, 0, m.near)
	m.publish(r, 1, m.far)
}

// publish sends a row to the own site (0) or to the others (1) in d.
func (m *mesh) publish(r *row, where int, d time.Duration) {
	if d == 0 {
		m.deliver(r, where)
		return
	}
	if r.gathering[where] {
		return
	}
	r.gathering[where] = true
	m.after(d, func() {
		r.gathering[where] = false
		if r.current() {
			m.deliver(r, where)
		}
	})
}

// current reports whether the start of the node that writes the row is running.
func (r *row) current() bool { return r.node.alive && r.node.row == r }

const resendAfter = time.Second

func (m *mesh) deliver(r *row, where int) {
	lost := false
	arrives := func() bool {
		ok := m.loss == 0 || m.rng.Float64() >= m.loss
		lost = lost || !ok
		return ok
	}
	if where == 0 {
		for _, n := range r.node.site.nodes {
			if n.alive && n != r.node && arrives() {
				m.read(&n.own, r, len(r.changes))
			}
		}
	} else {
		from := r.node.site.index()
		for _, s := range m.sites {
			// A cut is made up for at its end, not by sending again.
			if s != r.node.site && !s.cut && !r.node.site.cut && arrives() {
				m.read(&s.outside[from], r, len(r.changes))
			}
		}
	}
	if lost {
		m.publish(r, where, resendAfter)
	}
}

// index returns a site's place among the sites of the mesh.
func (s *meshSite) index() int { return int(s.name[0] - 'a') }

// read brings a picture up to the first upTo changes of a row.
func (m *mesh) read(p *picture, r *row, upTo int) {
	for len(p.read) <= r.index {
		p.read = append(p.read, 0)
	}
	for upTo = min(upTo, len(r.changes)); p.read[r.index] < upTo; p.read[r.index]++ {
		addCell(&p.Counts, r.changes[p.read[r.index]], p.span)
	}
}

func addCell(c *crdt.Counts, ch cell, span time.Duration) {
	var cells map[int64]int64
	at := ch.at
	switch ch.kind {
	case crdt.Active:
		c.Active += ch.n
		return
	case crdt.Waiting:
		cells = c.Waiting
		if span > 0 {
			at = bucketStart(at, seconds(span))
		}
	case crdt.Seen:
		cells = c.Seen
	case crdt.Admitted:
		cells = c.Admitted
	}
	if cells[at] += ch.n; cells[at] == 0 {
		delete(cells, at)
	}
}

// book writes what a line has counted.
func (m *mesh) book(n *meshNode, changes []Change) {
	for _, ch := range changes {
		m.write(n.row, ch.Kind, ch.Tick, int64(ch.P)-int64(ch.N))
	}
}

// input is what node n knows.
func (m *mesh) input(n *meshNode) Input {
	in := Input{Self: n.id, Mine: n.row.mine, Sites: make([]Site, len(m.sites))}
	for i, s := range m.sites {
		site := Site{Name: s.name, Own: s == n.site, Counts: n.site.outside[i].Counts}
		if site.Own {
			site.Counts = n.own.Counts
		} else {
			site.Closed = m.closed(n, s)
		}
		for _, other := range s.nodes {
			if !other.alive || !m.inTouch(n.site, s) {
				continue
			}
			site.Nodes++
			if site.Own {
				in.Nodes = append(in.Nodes, other.id)
			}
		}
		in.Sites[i] = site
	}
	m.showRights(&in)
	in.Frozen = n.history.Observe(&n.settings, in.Sites, m.clock(n))
	return in
}

// missedAfter is how long it takes until members that are gone are missed.
const missedAfter = 6 * time.Second

// inTouch reports whether nodes of two sites take each other for alive.
func (m *mesh) inTouch(a, b *meshSite) bool {
	cut := func(s *meshSite) bool { return s.cut && m.now.Sub(s.cutAt) > missedAfter }
	return a == b || !cut(a) && !cut(b)
}

// closed returns the newest tick of which n has all that another site counts: it
// is over by the clocks there, it was told, and no part of it is still under way.
func (m *mesh) closed(n *meshNode, s *meshSite) int64 {
	until := m.now.Add(-m.far - closeGrace - time.Second)
	for _, site := range [2]*meshSite{n.site, s} {
		if site.cut {
			until = earlier(until, site.cutAt)
		}
	}
	alive := false
	for _, other := range s.nodes {
		alive = alive || other.alive
	}
	if !alive {
		until = earlier(until, s.deadAt)
	}
	if t, missing := oldestUnread(&n.site.outside[s.index()], s); missing {
		until = earlier(until, t)
	}
	return crdt.TickOf(until.Add(-m.skew)) - 1
}

// closeGrace is how long after its end a tick is closed.
const closeGrace = 2 * time.Second

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// oldestUnread returns when the oldest change in the rows of a site was made that
// is not in a picture of it.
func oldestUnread(p *picture, s *meshSite) (when time.Time, any bool) {
	for _, r := range s.rows {
		read := 0
		if r.index < len(p.read) {
			read = p.read[r.index]
		}
		if read < len(r.changes) && (!any || r.changes[read].when.Before(when)) {
			when, any = r.changes[read].when, true
		}
	}
	return when, any
}

// viewOf is the view from which n decides now.
func (m *mesh) viewOf(n *meshNode) *View {
	if n.view == nil || m.now.Sub(n.viewed) >= m.viewAge {
		m.expire(n)
		n.view = Build(n.settings, m.input(n), m.clock(n))
		n.viewed, n.seen, n.taken = m.now, m.unseen(n), [3]int{}
		m.checkPicture(n)
	}
	return n.view
}

// expire takes the absent out of a node's line.
func (m *mesh) expire(n *meshNode) {
	if n.line.Waiting() > 0 {
		m.book(n, n.line.Expire(nil, m.clock(n)))
	}
}

// look has a line looked through for as long as somebody is in it.
func (m *mesh) look(n *meshNode, in time.Duration) {
	if n.looking {
		return
	}
	n.looking = true
	r := n.row
	m.after(in, func() {
		if !r.current() {
			return
		}
		n.looking = false
		m.expire(n)
		if n.line.Waiting() > 0 {
			m.look(n, 2*time.Second)
		}
	})
}

// add adds counts to others; with a span, waiting visitors by bucket.
func add(dst *crdt.Counts, src crdt.Counts, span time.Duration) {
	dst.Active += src.Active
	dst.Held += src.Held
	dst.HeldRate += src.HeldRate
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
