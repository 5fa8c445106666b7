// Package virtual has nodes that are as they should be, in virtual time: links lose nothing, disks take no time, and nobody
// fails. It serves what measures such nodes; package sim is for what goes wrong.
//
// A [Mesh] belongs to one goroutine, and the same calls have the same happen.
package virtual

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/replica"
)

const (
	// Tick is how often a node is told the time, as real ones are.
	Tick = 50 * time.Millisecond

	nearDelay = time.Millisecond // of a message inside a site
	farDelay  = 40 * time.Millisecond
)

// Node is one node of a mesh.
type Node struct {
	replica.Peer
	No   int // from 0
	Core *node.Core
}

// Mesh is nodes and what is to happen to them.
type Mesh struct {
	Now   time.Time
	Nodes []*Node
	Sent  func(from, to *Node, msg node.Message) // is told of each; nil: nobody is

	byID   map[crdt.NodeID]*Node
	events []event // in the order in which they happen
	number uint64  // of events so far
}

// New returns a mesh of no nodes.
func New() *Mesh {
	return &Mesh{Now: time.Unix(1_800_000_000, 0), byID: map[crdt.NodeID]*Node{}}
}

// Add adds a node, whose first tick comes after a time. Nobody knows of it before [Mesh.Settle].
func (m *Mesh) Add(self crdt.Incarnation, site string, core *node.Core, first time.Duration) {
	n := &Node{Peer: replica.Peer{ID: self.Node, Boot: self.Boot, Site: site}, No: len(m.Nodes), Core: core}
	m.Nodes = append(m.Nodes, n)
	m.byID[n.ID] = n
	m.After(first, func() { m.tick(n) })
}

func (m *Mesh) tick(n *Node) {
	m.send(n, n.Core.Tick(m.Now))
	m.After(Tick, func() { m.tick(n) })
}

// Settle has all nodes know of each other, and returns when they are ready and know that.
func (m *Mesh) Settle() error {
	for end := m.Now.Add(time.Minute); ; {
		if m.meet() {
			m.Run(5 * time.Second)
			return nil
		}
		if m.Now.After(end) {
			return fmt.Errorf("of %d nodes some are not ready after a minute", len(m.Nodes))
		}
		m.Run(time.Second)
	}
}

// meet tells every node of all others, and reports whether all are ready.
func (m *Mesh) meet() bool {
	peers, ready := make([]replica.Peer, len(m.Nodes)), true
	for i, n := range m.Nodes {
		n.Ready = n.Core.Ready()
		peers[i], ready = n.Peer, ready && n.Ready
	}
	list := replica.NewMembers(peers)
	for _, n := range m.Nodes {
		n.Core.SetPeers(list, m.Now)
	}
	return ready
}

// Flush has what was asked of a node leave at once.
func (m *Mesh) Flush(n *Node) { m.send(n, n.Core.Flush(m.Now)) }

// send posts messages of a node, and those that wait for its disk.
func (m *Mesh) send(n *Node, out []node.Message) {
	m.post(n, out)
	for n.Core.Writes() != nil {
		m.post(n, n.Core.Written(nil, m.Now))
	}
	n.Core.TakeHistory()
}

func (m *Mesh) post(from *Node, out []node.Message) {
	for _, msg := range out {
		to, delay := m.byID[msg.To], nearDelay
		if to.Site != from.Site {
			delay = farDelay
		}
		if m.Sent != nil {
			m.Sent(from, to, msg)
		}
		m.After(delay, func() {
			out, err := to.Core.Receive(from.Peer, msg.Kind, msg.Payload, m.Now)
			if err != nil {
				panic(fmt.Sprintf("message of kind %d: %v", msg.Kind, err)) // of nodes that are as they should be
			}
			m.send(to, out)
		})
	}
}

// After has something happen when a time has passed.
func (m *Mesh) After(d time.Duration, do func()) {
	m.number++
	e := event{m.Now.Add(d).UnixNano(), m.number, do}
	i, _ := slices.BinarySearchFunc(m.events, e, event.compare)
	m.events = slices.Insert(m.events, i, e)
}

// Run lets time pass.
func (m *Mesh) Run(d time.Duration) {
	end := m.Now.Add(d)
	for len(m.events) > 0 && m.events[0].at < end.UnixNano() {
		e := m.events[0]
		m.events = m.events[1:]
		m.Now = time.Unix(0, e.at)
		e.do()
	}
	m.Now = end
}

// Stop forgets all that is to happen: time passes no more.
func (m *Mesh) Stop() { m.events = nil }

// event is something that is to happen.
type event struct {
	at     int64
	number uint64 // orders those of one time
	do     func()
}

func (e event) compare(o event) int {
	return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(e.number, o.number))
}
