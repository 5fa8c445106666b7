// Package small searches everything that can happen to the ledgers of two or three nodes.
//
// The ledgers, the facts and what nodes make of them are the shipped ones ([node.Bare] and
// [ticket.Rights]). Around them there are no requests, rows, views or counters: a crowd
// takes all places that a node has free, whenever it may. Every order of events is tried,
// and a state that was met before is not gone on from again. States are the same if nodes
// go on alike from there: ticket numbers, for instance, do not matter.
//
// Messages are never used up. One that was sent may arrive now, later, twice or never; so
// loss, copies, delay and overtaking need no events of their own. What a node knows
// reaches another one at any time, as a whole, as replicas bring it.
package small

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/ticket"
)

const (
	session = 5 * time.Second
	wait    = 4 * time.Second         // what is not acknowledged is sent again
	over    = ticket.NewFor + session // sessions, blocks and locks of now are over
	rates   = 50                      // rate rights for each place: never the limit
)

// begin is when time begins. It is part of each node's state, as last ledgers name times.
var begin = time.Unix(1_700_000_000, 0)

var roomID, otherRoomID = crdt.RoomID{1}, crdt.RoomID{2}

// fact is a value of the last-writer map. Of two the higher version holds, and of the same
// version that of the greater writer.
type fact struct {
	value   string
	version int32
	by      byte
}

func (f fact) older(o fact) bool {
	return f.version < o.version || f.version == o.version && f.by < o.by
}

// state is one node. It is never changed: what follows from it is another one.
type state struct {
	number byte // of the node: its id
	boot   uint64
	now    time.Time
	rights *ticket.Rights  // nil: it is down
	stored []ticket.Put    // of one that is down
	facts  map[string]fact // on its disk
	unsaid map[string]fact // set since the batch that is under way
	batch  map[string]fact // in that batch
	writes bool            // a batch is under way
	heir   crdt.NodeID
	told   bool
	gone   bool // its disk is lost

	held int64 // places that it owns, and
	says int32 // what others hear of it, as its number says; both are known of states that have a number
}

func nodeID(number byte) crdt.NodeID { return crdt.NodeID{number} }

// key says how the node goes on from here.
func (s *state) key() []byte {
	b := []byte{s.number, byte(min(s.boot, 2)), s.heir[0], 0}
	for i, on := range []bool{s.gone, s.told, s.writes, s.rights != nil} {
		if on {
			b[3] |= 1 << i
		}
	}
	b = binary.AppendVarint(b, int64(s.now.Sub(begin)))
	for _, f := range []map[string]fact{s.facts, s.unsaid, s.batch} {
		b = appendFacts(b, f)
	}
	if s.rights != nil {
		return s.rights.AppendState(b, s.now)
	}
	for _, p := range s.stored {
		b = append(binary.AppendUvarint(b, uint64(len(p.Key))), p.Key...)
		b = append(binary.AppendUvarint(b, uint64(len(p.Value))), p.Value...)
	}
	return b
}

func appendFacts(b []byte, facts map[string]fact) []byte {
	b = binary.AppendUvarint(b, uint64(len(facts)))
	for _, k := range slices.Sorted(maps.Keys(facts)) {
		f := facts[k]
		b = append(binary.AppendUvarint(b, uint64(len(k))), k...)
		b = append(binary.AppendUvarint(b, uint64(len(f.value))), f.value...)
		b = append(binary.AppendUvarint(b, uint64(f.version)), f.by)
	}
	return b
}

// effect is what a node does in one event.
type effect struct {
	to   *state
	sent []message
	in   int64 // visitors that it lets in
}

// message is one on its way for ever.
type message struct {
	from, to byte
	kind     uint8
	payload  string
}

// kinds are the messages that matter here.
var kinds = map[uint8]string{node.BareTransfer: "gift", node.BareReceived: "receipt", node.BareHandover: "hand-over"}

// event is what happens to one node.
type event struct {
	do    action
	with  byte  // the other node that it is about
	value int32 // a message, what another node knows, or an amount, by its number
}

// action is what happens.
type action byte

const (
	steps    action = iota // the node does what is due
	saves                  // what it writes is on its disk
	receives               // a message
	hears                  // what another node knows
	admits                 // a crowd takes all that is free, at all nodes
	gives                  // half of what is free, to another node
	waits                  // time passes: see wait, over
	ends
	limits // an operator changes the limit here
	leaves // and has the node leave to another one
	declares
	stops   // what was under way to its disk is not there
	stopsAt // it is
	starts
	loses
)

var names = map[action]string{
	steps: "step", saves: "save", receives: "receive", hears: "hear", admits: "admit", gives: "give",
	waits: "wait", ends: "session", limits: "limit", leaves: "leave", declares: "declare", stops: "stop", stopsAt: "stop-written",
	starts: "start", loses: "lose",
}

// apply returns what becomes of a node in an event.
func (m *model) apply(s *state, e event) effect {
	n := *s
	f := effect{to: &n}
	if kept := e.do == hears || e.do == waits || e.do == ends; s.rights != nil && !kept {
		n.rights = s.rights.Clone()
	}
	switch e.do {
	case stops, stopsAt, loses:
		n.stop(e.do)
	case starts:
		n.start(m.leaveOut)
	case hears:
		n.facts = merged(n.facts, m.known.All[e.value])
	case waits:
		n.now = n.now.Add(wait)
	case ends:
		n.now = n.now.Add(over)
	case saves:
		n.save()
	case admits:
		f.in = m.admit(&n)
	case gives:
		n.rights.Expire(n.now)
		free := n.rights.Free()
		n.rights.Give(nodeID(e.with), ticket.Amount{Places: (free.Places + 1) / 2, Rate: (free.Rate + 1) / 2}, n.now)
		m.disk(&n)
	default:
		f.sent = m.bare(&n, e)
	}
	return f
}

// admit has as many come in as a node lets in. What the bound does not cover yet comes in
// as soon as that is written.
func (m *model) admit(n *state) (in int64) {
	n.rights.Expire(n.now)
	for range 2 {
		free := n.rights.Free()
		ranges, _ := n.rights.Issue(min(free.Places, free.Rate), n.now)
		for _, g := range ranges {
			in += int64(g.N)
		}
		m.disk(n)
	}
	return in
}

// disk writes what a node wants kept. Where no node stops, what is under way to a disk is
// lost by nobody, and is there at once.
func (m *model) disk(n *state) {
	n.write()
	for n.writes && m.cfg.Budget[Stops] == 0 {
		n.save()
	}
}

// bareOf returns the node's own code as a node has it that knows of these members.
func (m *model) bareOf(s *state, peers []crdt.NodeID) *node.Bare {
	values := map[string][]byte{}
	for k, f := range s.knows() {
		values[k] = []byte(f.value)
	}
	b, err := node.NewBare(node.BareState{
		Self: crdt.Incarnation{Node: nodeID(s.number), Boot: s.boot}, Room: roomID, Peers: peers,
		Rights: s.rights, Facts: values, Session: session, Heir: s.heir, Told: s.told, Halfway: m.cfg.Halfway && !m.settling, LeaveOut: m.leaveOut,
	}, s.now)
	if err != nil {
		panic(fmt.Sprintf("small: node %d does not take its own facts: %v", s.number, err))
	}
	return b
}

// bare has the node's own code do something.
func (m *model) bare(n *state, e event) (sent []message) {
	var peers []crdt.NodeID
	for _, o := range m.numbers {
		if o != n.number && !(e.do == declares && o == e.with) {
			peers = append(peers, nodeID(o))
		}
	}
	b, known := m.bareOf(n, peers), n.knows()
	var out []node.Message
	switch e.do {
	case steps:
		out = b.Step(n.now)
	case receives:
		x := m.messages.All[e.value]
		out = b.Receive(nodeID(x.from), x.kind, []byte(x.payload), n.now)
	case limits:
		b.SetLimits(amount(int64(e.value)), n.now)
	case leaves:
		n.heir = nodeID(e.with)
		b.Leave(n.heir, n.now)
	case declares:
		if err := b.DeclareDead(nodeID(e.with), n.now); err != nil {
			return nil
		}
	}
	set, told := b.Changed()
	n.told = told
	n.unsaid = maps.Clone(n.unsaid) // which another state has, too
	for k, v := range set {
		if n.unsaid == nil {
			n.unsaid = map[string]fact{}
		}
		n.unsaid[k] = fact{string(v), known[k].version + 1, n.number}
	}
	m.disk(n)
	for _, o := range out {
		if kinds[o.Kind] != "" {
			sent = append(sent, message{n.number, o.To[0], o.Kind, string(o.Payload)})
		}
	}
	return sent
}

func amount(places int64) ticket.Amount { return ticket.Amount{Places: places, Rate: places * rates} }

// knows returns all facts that the node goes by.
func (s *state) knows() map[string]fact { return merged(merged(s.facts, s.batch), s.unsaid) }

// write begins a batch of all that is to be written, unless one is under way.
func (s *state) write() {
	if s.writes {
		return
	}
	if s.rights.Writes() != nil || len(s.unsaid) > 0 {
		s.writes, s.batch, s.unsaid = true, s.unsaid, nil
	}
}

// save has the batch that is under way be on the disk.
func (s *state) save() {
	s.rights.Confirmed(s.now)
	s.facts, s.batch, s.writes = merged(s.facts, s.batch), nil, false
	s.write()
}

// stop ends the process.
func (s *state) stop(how action) {
	if s.rights != nil {
		if how == stopsAt {
			s.rights.Confirmed(s.now)
			s.facts = merged(s.facts, s.batch)
		}
		s.stored = s.rights.Stored()
	}
	s.rights, s.unsaid, s.batch, s.writes, s.heir, s.told = nil, nil, nil, false, crdt.NodeID{}, false
	if how == loses {
		s.gone, s.stored, s.facts = true, nil, nil
	}
}

func (s *state) start(leaveOut ticket.Rules) {
	s.boot++
	s.rights, s.stored = open(s.number, s.boot, s.stored, s.now, leaveOut), nil
	s.heir, _ = s.rights.Leaving()
}

func open(number byte, boot uint64, stored []ticket.Put, now time.Time, leaveOut ticket.Rules) *ticket.Rights {
	r, _, err := ticket.OpenRights(ticket.RightsConfig{
		Self: crdt.Incarnation{Node: nodeID(number), Boot: boot}, Room: roomID,
		Session: session, LeaveOut: leaveOut,
	}, stored, now)
	if err != nil {
		panic(fmt.Sprintf("small: node %d does not take its own ledger: %v", number, err))
	}
	return r
}

// merged returns the newer of each fact of two maps.
func merged(a, b map[string]fact) map[string]fact {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(a)
	if out == nil {
		out = map[string]fact{}
	}
	for k, f := range b {
		if was, known := out[k]; !known || was.older(f) {
			out[k] = f
		}
	}
	return out
}
