package small

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/bench/explore/breadth"
	"github.com/ropeline/ropeline/node/ticket"
)

// most is how many nodes there are at most.
const most = 3

// Budget says how often each kind of event may happen in one history.
type Budget [parts]uint8

// The parts of a budget.
const (
	Limits = iota
	Leaves
	Stops
	Losses
	Gifts
	Ends
	Crowds
	parts
)

// String returns it as the table of docs/limit.md has it.
func (b Budget) String() string {
	var all []string
	for i, what := range [parts]string{"limit", "leave", "stop and start", "lost disk", "gift", "session", "crowd"} {
		if b[i] > 1 { // no budget has two stops and starts
			what += "s"
		}
		if b[i] > 0 {
			all = append(all, fmt.Sprintf("%d %s", b[i], what))
		}
	}
	return strings.Join(all, ", ")
}

// Config is one search.
type Config struct {
	Nodes    int
	Minter   int // the place of the minter's id in the order of ids, from 0
	Budget   Budget
	Halfway  bool // there is another room, of which who leaves never hands anything over: it is lost before, or stays
	Coarse   bool // nodes do what is due after every event, and not at any time after it
	LeaveOut ticket.Rules
}

// world is all of it in one moment.
type world struct {
	nodes    [most]int32 // states, by their ids
	messages int32       // a set of them
	inside   crowds
	greatest int32 // limit that was ever set
	used     Budget
}

// crowds are who came in together and are inside, the smaller first. No budget has more of them.
type crowds [2]int32

// model is what is known of single parts of worlds. Each is kept once, under a number.
type model struct {
	cfg      Config
	settling bool // a world is brought to rest, and who leaves hands the other room over, too
	leaveOut ticket.Rules
	numbers  []byte // ids of the nodes; the first mints

	states   breadth.Table[*state]
	known    breadth.Table[map[string]fact] // what nodes know, for others to hear
	messages breadth.Table[message]
	sets     breadth.Sets // of messages, by their numbers
	done     map[step]outcome
}

// step is an event at a node in one state, and outcome what comes of it.
type step struct {
	at int32
	event
}

type outcome struct {
	to   int32
	in   int64
	sent []int32
}

// move is an event, and where it happens.
type move struct {
	at int8 // the node; -1: all
	event
}

// Search goes through all that can happen within the budget, up to a number of states; 0: all.
func (cfg Config) Search(ctx context.Context, states int) breadth.Result {
	m := newModel(cfg)
	return breadth.Search[world, move]{
		First: m.root(), Each: m.each, Rest: m.unsettled, RestEvery: settledEvery, Text: m.text, Most: states,
	}.Run(ctx)
}

func newModel(cfg Config) *model {
	m := &model{cfg: cfg, leaveOut: cfg.LeaveOut | ticket.RateCools | ticket.RestartCools, done: map[step]outcome{}}
	m.numbers = []byte{byte(cfg.Minter + 1)}
	for n := range cfg.Nodes {
		if n != cfg.Minter {
			m.numbers = append(m.numbers, byte(n+1))
		}
	}
	return m
}

// firstLimit is how many places there are at first: one for each node.
func (m *model) firstLimit() int64 { return int64(m.cfg.Nodes) }

// root returns the world in which each node has one place, and all know it.
func (m *model) root() (w world) {
	now := make([]*state, len(m.numbers))
	for i, n := range m.numbers {
		now[i] = &state{number: n, boot: 1, now: begin, rights: open(n, 1, nil, begin, m.leaveOut)}
	}
	b := m.bareOf(now[0], nil)
	b.Found(begin)
	b.SetLimits(amount(m.firstLimit()), begin)
	for _, n := range m.numbers {
		if m.cfg.Halfway {
			b.Keeps(otherRoomID, nodeID(n), begin)
		}
	}
	set, _ := b.Changed()
	now[0].facts = map[string]fact{}
	for k, v := range set {
		now[0].facts[k] = fact{string(v), 1, m.numbers[0]}
	}
	m.settle(now, nil)
	for _, n := range m.numbers[1:] {
		now[0].rights.Give(nodeID(n), amount(1), begin)
	}
	m.settle(now, nil)
	for i, s := range now {
		s.rights = s.rights.Clone()
		s.rights.Expect(1, s.now) // so that the first who come find the disk ready for them
		for s.write(); s.writes; {
			s.save()
		}
		w.nodes[i] = m.intern(s)
	}
	w.messages, w.greatest = m.sets.Set(nil), int32(m.firstLimit())
	return w
}

// intern returns the number of a state.
func (m *model) intern(s *state) int32 {
	n := m.states.Number(s.key(), s)
	if m.states.All[n] == s { // it is new
		s.says, s.held = m.facts(s.facts), 0
		if s.rights != nil {
			s.held = max(0, s.rights.Held().Places)
		}
	}
	return n
}

func (m *model) message(x message) int32 {
	return m.messages.Number(append([]byte{x.from, x.to, x.kind}, x.payload...), x)
}

func (m *model) facts(f map[string]fact) int32 { return m.known.Number(appendFacts(nil, f), f) }

// with returns a set of messages with some more.
func (m *model) with(set int32, more []int32) int32 {
	if len(more) == 0 {
		return set
	}
	all := m.sets.All[set]
	for _, x := range more {
		if i, there := slices.BinarySearch(all, x); !there {
			all = slices.Insert(slices.Clone(all), i, x)
		}
	}
	return m.sets.Set(all)
}

// do returns what comes of an event at a node, which is worked out once.
func (m *model) do(at int32, e event) outcome {
	key := step{at, e}
	if o, known := m.done[key]; known {
		return o
	}
	f := m.apply(m.states.All[at], e)
	for range 20 { // it comes to rest long before
		if !m.cfg.Coarse || f.to.rights == nil {
			break
		}
		next := m.apply(f.to, event{do: steps})
		if len(next.sent) == 0 && bytes.Equal(next.to.key(), f.to.key()) {
			break
		}
		f = effect{to: next.to, in: f.in, sent: append(f.sent, next.sent...)}
	}
	o := outcome{to: m.intern(f.to), in: f.in}
	for _, x := range f.sent {
		o.sent = append(o.sent, m.message(x))
	}
	slices.Sort(o.sent)
	o.sent = slices.Compact(o.sent)
	m.done[key] = o
	return o
}

// text says what happened.
func (m *model) text(x move) string {
	text := names[x.do]
	if x.at >= 0 {
		text = fmt.Sprintf("node %d: %s", m.numbers[x.at], text)
	}
	switch x.do {
	case receives:
		got := m.messages.All[x.value]
		text += fmt.Sprintf(" %s of node %d", kinds[got.kind], got.from)
	case hears:
		text += fmt.Sprintf(" of node %d", x.with)
	case gives, leaves:
		text += fmt.Sprintf(" to node %d", x.with)
	case declares:
		text += fmt.Sprintf(" node %d dead", x.with)
	case limits:
		text += fmt.Sprintf(" %d", x.value)
	}
	return text
}
