// Package boot searches everything that can happen while a mesh comes to be: to the nodes that
// are named to make it, and to one that is not named and joins.
//
// The decisions are the shipped ones ([bootstrap.Machine]). Around them there are disks,
// processes that stop and start, and messages. Every order of events is tried, and a state that
// was met before is not gone on from again.
//
// Messages are never used up: one that was sent may arrive now, later, twice or never, also
// after the disk of whoever sent it is gone. What a question was asked with (a nonce) counts as
// long as its round lasts; which number it is makes no difference, so that all have the same
// one, and messages of earlier rounds have none. A message that can do nothing any more is
// dropped.
//
// To start late is the same as to neither ask nor hear anything for a while, and so is to be down.
// So all are up from the beginning, and a process that stops starts again at once. Time passes
// for each host by itself, as often as one likes: none hears of another's clock.
package boot

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
)

// begin is when time begins, for each host by itself.
var begin = time.Unix(1_700_000_000, 0)

// host is a place with a name and a disk, at which processes run one after the other. It is
// never changed: what follows from it is another one.
type host struct {
	place int // in the list of hosts
	lost  int // how many of its disks are gone
	disk  bootstrap.Disk
	m     *bootstrap.Machine
	now   time.Time
}

// key says how the host goes on from here.
func (h *host) key() []byte {
	b := []byte{byte(h.place), byte(h.lost), 0}
	if h.disk.Minted {
		b[2] = 1
	}
	b = bootstrap.AppendRecord(b, h.disk.Record)
	return h.m.AppendState(b, h.now)
}

func (h *host) empty() bool { return h.disk.Record.Mesh.IsZero() }

// message is one on its way for ever.
type message struct {
	from, to crdt.NodeID
	answer   bool
	bootstrap.Message
}

func (x message) key() []byte { return x.Append(slices.Concat(x.from[:], x.to[:])) }

// fresh is the nonce of every round that lasts. Zero is that of all earlier ones.
const fresh = 1

// old returns a message as it is when its nonce, of the node id, counts for nothing any more.
func (x message) old(id crdt.NodeID) message {
	if x.from == id {
		x.Nonce = 0
	}
	if x.to == id {
		x.Echo = 0
	}
	return x
}

// event is what happens to one host.
type event struct {
	do   action
	with int32 // a message, or whom a tick reaches, by its number
}

// action is what happens.
type action byte

const (
	ticks    action = iota // and reaches all
	misses                 // a tick, which does not reach the one that is not named
	receives               // a message
	saves                  // what it writes is on its disk
	restarts               // its process stops; what was under way to its disk is not there
	empties                // its disk is gone; it starts again with another one, and so another id
	passes                 // a round, for the first node
	moment                 // half a second, for the first node: it may ask again
	learns                 // that capacity was minted in its mesh
)

var names = map[action]string{
	ticks: "tick", misses: "tick without x", receives: "receive", saves: "save",
	restarts: "restart", empties: "lose the disk, and start", passes: "a round passes", moment: "half a second passes",
}

// effect is what becomes of a host in an event.
type effect struct {
	to      *host
	renewed bool // answers to what it asked before count for nothing any more
	sent    []message
}

// id returns that of a host's disk. Its first byte says where it is in the order of ids.
func (m *model) id(place, lost int) crdt.NodeID {
	n := len(m.hosts)
	at := int(m.cfg.Order[place]) + n*lost
	if m.cfg.Falling {
		at -= 2 * n * lost
	}
	return crdt.NodeID{byte(at), byte(place), byte(lost)}
}

func (m *model) self(h *host) crdt.NodeID { return m.id(h.place, h.lost) }

// apply returns what becomes of a host in an event.
func (m *model) apply(h *host, e event) effect {
	n := *h
	switch e.do {
	case ticks, misses:
		if h.place > 0 { // which goes by its clock in nothing else: it may ask again
			n.now = n.now.Add(bootstrap.Round)
		}
		return m.tick(&n, m.peers.All[e.with])
	case receives:
		return m.receive(h, m.messages.All[e.with])
	case saves:
		n.m = h.m.Clone()
		n.disk, _ = n.m.Write()
		n.m.Written()
	case restarts:
		m.start(&n)
	case empties:
		n.disk, n.lost = bootstrap.Disk{}, h.lost+1
		m.start(&n)
	case learns:
		n.m = h.m.Clone()
		n.m.Complete()
	case passes:
		n.now = n.now.Add(bootstrap.Round)
	case moment:
		n.now = n.now.Add(bootstrap.Round / 4)
	}
	asks := e.do == saves || e.do == restarts || e.do == empties // from the beginning
	return effect{to: &n, renewed: asks}
}

func (m *model) start(h *host) {
	m.acts = m.self(h)
	h.m = bootstrap.New(bootstrap.Config{
		Self: m.acts, Name: m.hosts[h.place], Site: "a", Names: m.hosts[:m.cfg.Named],
		Disk: h.disk, Random: m.random,
	}, h.now)
}

func (m *model) tick(h *host, peers []bootstrap.Peer) effect {
	return m.act(h, func(n *host) []bootstrap.Out { return n.m.Tick(n.now, peers) })
}

func (m *model) receive(h *host, x message) effect {
	f := m.act(h, func(n *host) []bootstrap.Out { return n.m.Receive(x.from, m.gets(n, x.Message), n.now) })
	for i := range f.sent {
		f.sent[i].answer, f.sent[i].Nonce = true, 0 // nobody answers an answer
	}
	return f
}

// act has the process of a host do something.
func (m *model) act(h *host, do func(*host) []bootstrap.Out) effect {
	n := *h
	n.m = h.m.Clone()
	m.acts, m.renewed = m.self(h), false
	f := effect{to: &n}
	for _, o := range do(&n) {
		f.sent = append(f.sent, message{from: m.acts, to: o.To, Message: o.Message})
	}
	f.renewed = m.renewed
	return f
}
