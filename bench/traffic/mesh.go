package traffic

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

// shape says what a mesh is like, and what goes on in it.
type shape struct {
	Sites  int
	Nodes  int         // in each site
	Rooms  int         // kept by all
	Policy room.Policy // of all rooms

	// Visitors is how many come to each room in each site, per second, and are let in; they
	// leave a session later. They come at random times to random nodes.
	Visitors float64
	Full     bool // rooms are so small and full that all news goes out at once

	Thin bool // nodes are replicas alone: see thin

	// Before and Span are how long the mesh runs before and while bytes are counted. Counts of
	// ticks are kept for ten minutes: before that a mesh says less than later.
	Before, Span time.Duration
}

// session is how long visitors stay.
const session = time.Minute

// fullAt and fullLimit make a room of which all is told at once: nine tenths full, and so
// small that each visitor is a part of it worth telling.
const (
	fullAt    = 0.9
	fullLimit = 99
)

// family is what messages are about.
type family int

const (
	state   family = iota // what nodes count, by node/replica
	claims                // who the counters of rooms are
	tickets               // all else: calls for tickets, rights that move, visits
	families
)

// Kinds of node's messages, by the numbers that go over the wire.
const (
	stateKind  = 1
	claimsKind = 11
)

// familyOf says what a message is about.
func familyOf(kind uint8) family {
	switch kind {
	case stateKind:
		return state
	case claimsKind:
		return claims
	}
	return tickets
}

// volume is what was sent.
type volume struct{ Messages, Bytes float64 }

func (v *volume) add(size int) { v.Messages++; v.Bytes += float64(size) }

func (v volume) over(by float64) volume { return volume{v.Messages / by, v.Bytes / by} }

func (v volume) plus(o volume) volume { return volume{v.Messages + o.Messages, v.Bytes + o.Bytes} }

// traffic is what one node sends, per second: payloads of messages.
type traffic struct {
	Near, Far [families]volume // to nodes of its site, and of others
}

// sum returns all of it.
func (t traffic) sum() (near, far volume) {
	for f := range families {
		near, far = near.plus(t.Near[f]), far.plus(t.Far[f])
	}
	return near, far
}

func (t traffic) bytes() float64 {
	near, far := t.sum()
	return near.Bytes + far.Bytes
}

// relays returns how much speaks for it that a node is the relay of its site: it says more to
// other sites.
func (t traffic) relays() float64 { return t.Far[state].Bytes + 1e-9*t.Near[state].Bytes }

func (t *traffic) plus(o traffic) {
	for f := range families {
		t.Near[f], t.Far[f] = t.Near[f].plus(o.Near[f]), t.Far[f].plus(o.Far[f])
	}
}

func (t traffic) over(by float64) traffic {
	for f := range families {
		t.Near[f], t.Far[f] = t.Near[f].over(by), t.Far[f].over(by)
	}
	return t
}

// member is one node of a mesh in virtual time.
type member struct {
	no, site int
	begins   time.Time // its first tick
	id       crdt.NodeID
	name     string // of the site
	brain    brain
	core     *node.Core // the same; nil for a thin one
	sent     traffic
}

// letter is a message on its way.
type letter struct {
	at       time.Time
	from, to *member
	m        node.Message
}

// poll is when a visitor who waits asks again.
type poll struct {
	at   time.Time
	node *member
	room int
	pass node.Pass
}

// mesh is nodes in virtual time, with links that lose nothing. What takes equally long
// arrives in the order in which it was sent, so that lines do for what others need a heap for.
type mesh struct {
	shape
	rng     *rand.Rand
	now     time.Time
	members []*member
	byID    map[crdt.NodeID]*member
	near    []letter
	far     []letter
	polls   []poll
	leaves  []poll    // when sessions at thin nodes are over
	comes   time.Time // the next visitor; zero: nobody comes
	ticked  int       // ticks so far, of all nodes
	ready   int
	begun   time.Time
	waits   int // answers that told somebody to wait
	lets    int // and that let somebody in
}

const (
	tick      = 50 * time.Millisecond
	nearDelay = time.Millisecond
	farDelay  = 40 * time.Millisecond
	again     = 20 * time.Second // a visitor who waits asks
)

// newMesh returns a mesh whose nodes have found each other.
func newMesh(s shape, seed uint64) (*mesh, error) {
	m := &mesh{shape: s, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_800_000_000, 0), byID: map[crdt.NodeID]*member{}}
	m.begun = m.now
	for i := range s.Sites * s.Nodes {
		x := &member{no: i, site: i / s.Nodes, name: siteName(i / s.Nodes)}
		x.begins = m.now.Add(time.Duration(m.rng.Float64() * float64(time.Second))) // so that no two keep time
		binary.BigEndian.PutUint64(x.id[:], m.rng.Uint64())
		binary.BigEndian.PutUint64(x.id[8:], m.rng.Uint64())
		if err := m.make(x, seed); err != nil {
			return nil, err
		}
		m.members = append(m.members, x)
		m.byID[x.id] = x
	}
	m.meet()
	return m, m.settle()
}

// make gives a member its brain.
func (m *mesh) make(x *member, seed uint64) (err error) {
	self, rng := crdt.Incarnation{Node: x.id, Boot: 1}, rand.New(rand.NewPCG(seed, uint64(x.no)+2))
	if m.Thin {
		x.brain, err = newThin(self, x.name, rng)
		return err
	}
	x.core, err = node.NewCore(node.CoreConfig{
		Self: self, Site: x.name, Rooms: rooms(m.shape), OwnerKey: []byte("key"), Rand: rng,
		Entropy: rand.NewChaCha8([32]byte{byte(x.no), byte(x.no >> 8), byte(seed)}), Found: x.no == 0,
	})
	x.brain = x.core
	return err
}

func siteName(i int) string { return fmt.Sprintf("site-%03d", i) }

// rooms returns the rooms of a mesh.
func rooms(s shape) []room.Settings {
	all := make([]room.Settings, s.Rooms)
	for i := range all {
		all[i] = room.Settings{
			ID: roomID(i), Name: fmt.Sprint("room-", i), Path: roomPath(i), Policy: s.Policy,
			TotalActiveUsers: 1 << 20, NewUsersPerMinute: 1 << 20, SessionDuration: session, DisableSessionRenewal: true,
		}
		if s.Full {
			all[i].TotalActiveUsers = fullLimit
		}
		all[i] = all[i].WithDefaults()
	}
	return all
}

func roomID(i int) crdt.RoomID { return crdt.RoomID{1, byte(i >> 8), byte(i)} }

func roomPath(i int) string { return fmt.Sprintf("/%d", i) }

// meet tells every node of all others.
func (m *mesh) meet() {
	peers := make([]replica.Peer, len(m.members))
	for i, x := range m.members {
		peers[i] = replica.Peer{ID: x.id, Boot: 1, Site: x.name, Ready: x.brain.Ready()}
	}
	list := replica.NewMembers(peers)
	for _, x := range m.members {
		x.brain.SetPeers(list, m.now)
	}
}

// settle runs the mesh until all nodes are ready and know that of each other.
func (m *mesh) settle() error {
	for end := m.now.Add(time.Minute); m.ready < len(m.members); {
		if m.now.After(end) {
			return fmt.Errorf("%d of %d nodes are ready after a minute", m.ready, len(m.members))
		}
		m.run(time.Second)
		m.ready = 0
		for _, x := range m.members {
			if x.brain.Ready() {
				m.ready++
			}
		}
	}
	m.meet()
	m.run(5 * time.Second)
	return nil
}

// run lets time pass.
func (m *mesh) run(d time.Duration) {
	end := m.now.Add(d)
	for {
		at := m.begun.Add(tick * time.Duration(m.ticked) / time.Duration(len(m.members)))
		what := m.tick
		if len(m.near) > 0 && m.near[0].at.Before(at) {
			at, what = m.near[0].at, func() { m.deliver(&m.near) }
		}
		if len(m.far) > 0 && m.far[0].at.Before(at) {
			at, what = m.far[0].at, func() { m.deliver(&m.far) }
		}
		if len(m.polls) > 0 && m.polls[0].at.Before(at) {
			at, what = m.polls[0].at, m.poll
		}
		if len(m.leaves) > 0 && m.leaves[0].at.Before(at) {
			at, what = m.leaves[0].at, m.leave
		}
		if !m.comes.IsZero() && m.comes.Before(at) {
			at, what = m.comes, m.visit
		}
		if !at.Before(end) {
			m.now = end
			return
		}
		m.now = at
		what()
	}
}

// tick has the next node do what is due.
func (m *mesh) tick() {
	x := m.members[m.ticked%len(m.members)]
	m.ticked++
	if !m.now.Before(x.begins) {
		m.send(x, x.brain.Tick(m.now))
	}
}

// send posts messages of a node, and those that wait for its disk, which takes no time.
func (m *mesh) send(x *member, out []node.Message) {
	m.post(x, out)
	for x.core != nil && x.core.Writes() != nil {
		m.post(x, x.core.Written(nil, m.now))
	}
}

func (m *mesh) post(x *member, out []node.Message) {
	for _, msg := range out {
		to := m.byID[msg.To]
		if f := familyOf(msg.Kind); to.site == x.site {
			x.sent.Near[f].add(len(msg.Payload))
			m.near = append(m.near, letter{m.now.Add(nearDelay), x, to, msg})
		} else {
			x.sent.Far[f].add(len(msg.Payload))
			m.far = append(m.far, letter{m.now.Add(farDelay), x, to, msg})
		}
	}
}

func (m *mesh) deliver(line *[]letter) {
	l := (*line)[0]
	(*line)[0] = letter{}
	*line = (*line)[1:]
	out, err := l.to.brain.Receive(replica.Peer{ID: l.from.id, Boot: 1, Site: l.from.name, Ready: true}, l.m.Kind, l.m.Payload, m.now)
	if err != nil {
		panic(fmt.Sprintf("message of kind %d: %v", l.m.Kind, err)) // of nodes that are as they should be
	}
	m.send(l.to, out)
}

// open has visitors come from now on.
func (m *mesh) open() {
	if m.Visitors == 0 {
		return
	}
	if m.Thin { // as if visitors had come all the time
		for at := m.pause(); at < session; at += m.pause() {
			p := poll{m.now.Add(at), m.members[m.rng.IntN(len(m.members))], m.rng.IntN(m.Rooms), node.Pass{}}
			p.node.brain.(thin).enter(roomID(p.room), m.now)
			m.leaves = append(m.leaves, p)
		}
	}
	m.comes = m.now.Add(m.pause())
}

// pause returns how long it takes until the next visitor comes.
func (m *mesh) pause() time.Duration {
	rate := m.Visitors * float64(m.Rooms*m.Sites)
	return time.Duration(m.rng.ExpFloat64() / rate * float64(time.Second))
}

func (m *mesh) visit() {
	m.comes = m.now.Add(m.pause())
	p := poll{m.now, m.members[m.rng.IntN(len(m.members))], m.rng.IntN(m.Rooms), node.Pass{}}
	t, ok := p.node.brain.(thin)
	if !ok {
		m.ask(p, false)
		return
	}
	t.enter(roomID(p.room), m.now)
	p.at = m.now.Add(session)
	m.leaves = append(m.leaves, p)
}

func (m *mesh) leave() {
	p := m.leaves[0]
	m.leaves = m.leaves[1:]
	p.node.brain.(thin).leave(roomID(p.room), m.now)
}

func (m *mesh) poll() {
	p := m.polls[0]
	m.polls = m.polls[1:]
	m.ask(p, true)
}

// ask has a node decide about a request.
func (m *mesh) ask(p poll, known bool) {
	answered := func(v node.Verdict) {
		if v.Admit {
			m.lets++
			return
		}
		m.waits++
		m.polls = append(m.polls, poll{m.now.Add(again), p.node, p.room, v.Pass})
	}
	core := p.node.core
	v, ok := core.Route("any", roomPath(p.room)).Begin(p.pass, known, m.now, answered)
	if ok {
		answered(v)
		return
	}
	m.send(p.node, core.Flush(m.now))
}

// result is what was measured of a mesh.
type result struct {
	Mean  traffic // of all nodes
	Relay traffic // of those that say most to other sites, one in each
	Waits float64 // part of the answers that told somebody to wait
}

// measure runs a mesh and counts what its nodes send.
func measure(s shape, seed uint64) (result, error) {
	m, err := newMesh(s, seed)
	if err != nil {
		return result{}, err
	}
	m.open()
	m.run(s.Before)
	for _, x := range m.members {
		x.sent = traffic{}
	}
	m.waits, m.lets = 0, 0
	m.run(s.Span)
	return m.result(), nil
}

func (m *mesh) result() (r result) {
	for site := range m.Sites {
		var most traffic
		for _, x := range m.members[site*m.Nodes : (site+1)*m.Nodes] {
			r.Mean.plus(x.sent)
			if x.sent.relays() > most.relays() {
				most = x.sent
			}
		}
		r.Relay.plus(most)
	}
	r.Mean = r.Mean.over(float64(len(m.members)) * m.Span.Seconds())
	r.Relay = r.Relay.over(float64(m.Sites) * m.Span.Seconds())
	r.Waits = float64(m.waits) / float64(max(1, m.waits+m.lets))
	return r
}
