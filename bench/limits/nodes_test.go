package limits

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/limit"
)

// Config says what a mesh is like.
type Config struct {
	Sites  []int // how many nodes each has
	Rules  []limit.Rule
	Memory int // bytes of each node

	Near, Far [2]limit.Millis // from and to: how long a message takes within a site, and between sites
	Doubled   float64         // the part of the messages that come twice
	Lost      float64         // the part that is lost
	Seed      uint64
}

// Mesh is nodes in virtual time.
type Mesh struct {
	cfg   Config
	rng   *rand.Rand
	Now   limit.Millis // true time
	Nodes []*Node
	queue []parcel // in the order in which they arrive
	sent  uint64

	cut func(a, b *Node) bool // messages between them are lost
}

// Node is one node of a mesh.
type Node struct {
	ID    crdt.NodeID
	Name  string
	Site  string
	Skew  limit.Millis // what its clock is ahead
	boot  uint64
	down  bool
	Rules *limit.Rules

	exchange *limit.Exchange
	table    *limit.Table
	phase    limit.Millis // of its ticks
	stopped  limit.Millis // until then it does nothing; what comes waits
}

const tick limit.Millis = 50

var secret = []byte("a mesh in virtual time")

// Each calls f with the one table of a node.
func (n *Node) Each(f func(*limit.Table)) { f(n.table) }

// Nth calls f with the same.
func (n *Node) Nth(i int, f func(*limit.Table)) bool {
	if i == 0 {
		f(n.table)
	}
	return i == 0
}

// Of calls f with the same.
func (n *Node) Of(_ limit.Key, f func(*limit.Table)) { f(n.table) }

// New returns a mesh whose nodes know each other.
func New(cfg Config) *Mesh {
	m := &Mesh{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 1)), Now: 1_700_000_000_000}
	for s, nodes := range cfg.Sites {
		for i := range nodes {
			n := &Node{Name: fmt.Sprintf("s%dn%d", s+1, i+1), Site: fmt.Sprintf("s%d", s+1), phase: limit.Millis(m.rng.Int64N(int64(tick)))}
			binary.BigEndian.PutUint64(n.ID[:], m.rng.Uint64())
			m.Nodes = append(m.Nodes, n)
		}
	}
	for _, n := range m.Nodes {
		m.Start(n)
	}
	return m
}

// Start starts a node that was killed, or is new: it knows nothing. All hear of it at once.
func (m *Mesh) Start(n *Node) {
	m.Begin(n)
	m.Meet()
}

// Begin is Start, of which nobody has heard yet.
func (m *Mesh) Begin(n *Node) {
	n.boot++
	n.down = false
	n.table = limit.NewTable(m.cfg.Memory)
	n.Rules = limit.NewRules(secret)
	n.exchange = limit.NewExchange(crdt.Incarnation{Node: n.ID, Boot: n.boot}, n.Site, n.Rules, n)
	n.Rules.Follow(m.cfg.Rules, n, n.now(m))
}

// Meet has every node know which others live.
func (m *Mesh) Meet() {
	for _, n := range m.Nodes {
		m.MeetAt(n)
	}
}

// MeetAt has one node know that.
func (m *Mesh) MeetAt(n *Node) {
	if n.down || n.exchange == nil {
		return
	}
	var peers []limit.Peer
	for _, o := range m.Nodes {
		if o != n && !o.down && (m.cut == nil || !m.cut(n, o)) && o.exchange != nil {
			peers = append(peers, limit.Peer{ID: o.ID, Boot: o.boot, Site: o.Site, Ready: true})
		}
	}
	m.send(n, n.exchange.SetPeers(peers, n.now(m)))
}

func (n *Node) now(m *Mesh) limit.Millis { return m.Now + n.Skew }

// KeyOf returns the key of a client.
func KeyOf(c *limit.Counter, client uint64) limit.Key {
	var values [8]byte
	binary.BigEndian.PutUint64(values[:], client)
	return c.Key(values[:])
}

// Run lets time pass until then.
func (m *Mesh) Run(until limit.Millis) {
	for m.Now < until {
		next := until
		for _, n := range m.Nodes {
			next = min(next, m.Now+tick-(m.Now-n.phase)%tick)
		}
		if len(m.queue) > 0 {
			next = min(next, max(m.queue[0].at, m.Now))
		}
		m.Now = next
		for len(m.queue) > 0 && m.queue[0].at <= m.Now {
			p := m.queue[0]
			m.queue = m.queue[1:]
			if p.to.stopped > m.Now {
				p.at = p.to.stopped
				m.push(p)
				continue
			}
			m.deliver(p)
		}
		for _, n := range m.Nodes {
			if !n.down && m.Now >= n.stopped && (m.Now-n.phase)%tick == 0 {
				m.send(n, n.exchange.Tick(n.now(m)))
			}
		}
	}
}

func (m *Mesh) send(from *Node, messages []limit.Message) {
	for _, msg := range messages {
		for _, to := range m.Nodes {
			if to.ID == msg.To {
				m.post(from, to, msg)
			}
		}
	}
}

func (m *Mesh) post(from, to *Node, msg limit.Message) {
	if m.rng.Float64() < m.cfg.Lost {
		return
	}
	span := m.cfg.Near
	if from.Site != to.Site {
		span = m.cfg.Far
	}
	for copies := 1; copies > 0; copies-- {
		m.sent++
		at := m.Now + span[0] + limit.Millis(m.rng.Int64N(int64(span[1]-span[0])+1))
		m.push(parcel{at, m.sent, from, from.boot, to, to.boot, msg})
		if copies == 1 && m.rng.Float64() < m.cfg.Doubled {
			copies++
		}
	}
}

func (m *Mesh) deliver(p parcel) {
	if p.to.down || p.to.boot != p.toBoot || m.cut != nil && m.cut(p.from, p.to) {
		return
	}
	from := limit.Peer{ID: p.from.ID, Boot: p.boot, Site: p.from.Site, Ready: true}
	x := p.to.exchange
	take := [...]func(limit.Peer, []byte, limit.Millis) ([]limit.Message, error){limit.Counted: x.Counted, limit.Known: x.Known, limit.Asked: x.Asked}[p.msg.Kind]
	out, err := take(from, p.msg.Payload, p.to.now(m))
	if err != nil {
		panic(err)
	}
	m.send(p.to, out)
}

// parcel is a message on its way.
type parcel struct {
	at     limit.Millis
	number uint64
	from   *Node
	boot   uint64
	to     *Node
	toBoot uint64
	msg    limit.Message
}

func (p parcel) compare(o parcel) int {
	return cmp.Or(cmp.Compare(p.at, o.at), cmp.Compare(p.number, o.number))
}

// push has a message arrive at its time.
func (m *Mesh) push(p parcel) {
	i, _ := slices.BinarySearchFunc(m.queue, p, parcel.compare)
	m.queue = slices.Insert(m.queue, i, p)
}
