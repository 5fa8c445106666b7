package small

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/explore/breadth"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/ticket"
)

// most is how many nodes there are at most.
const most = 3

// Budget says how often each kind of event may happen in one history.
type Budget struct {
	Limits, Leaves, Stops, Losses, Gifts int
	Waits, Guards, Ends, Crowds          int
}

// String returns it as the table of docs/limit.md has it.
func (b Budget) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{b.Limits, "limit"},
		{b.Leaves, "leave"},
		{b.Stops, "stop and start"},
		{b.Losses, "lost disk"},
		{b.Gifts, "gift"},
		{b.Waits, "wait"},
		{b.Guards, "guard"},
		{b.Ends, "session"},
		{b.Crowds, "crowd"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// Config is one search.
type Config struct {
	Nodes    int
	Minter   int // the place of the minter's id in the order of ids, from 0
	Older    int // the number of a node of the version before: its last ledger does not say what was minted; 0: none
	Budget   Budget
	Halfway  bool // there is another room, of which who leaves never hands anything over: it is lost before, or stays
	Coarse   bool // nodes do what is due after every event, and not at any time after it
	States   int  // at most; 0: no bound
	LeaveOut ticket.Rules
}

// Result is what a search found.
type Result struct {
	States int
	Whole  bool   // nothing is broken, and there are no more within the budget
	Broken string // which promise; "": none
	Trace  []string
	Nodes  int // states that single nodes were in
	Took   time.Duration
}

// world is all of it in one moment.
type world struct {
	nodes    [most]int32  // states, by their ids
	messages int32        // a set of them
	inside   int32        // who is: see crowds
	greatest int32        // limit that was ever set
	used     [parts]uint8 // of the budget, in the order of its fields
}

// crowd is some who are inside until a time from now, in ms.
type crowd struct{ n, left int64 }

// model is what is known of single parts of worlds. Each is kept once, under a number.
type model struct {
	cfg      Config
	settling bool // a world is brought to rest, and who leaves hands the other room over, too
	leaveOut ticket.Rules
	numbers  []byte // ids of the nodes; the first mints

	states   breadth.Table[*state]
	says     []int32                        // of each state: its entry of known
	held     []int64                        // of each state
	known    breadth.Table[map[string]fact] // what nodes know, for others to hear
	messages breadth.Table[message]
	sets     breadth.Table[[]int32] // of messages, by their numbers
	crowds   breadth.Table[[]crowd]
	done     map[step]outcome
	err      error
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

// Search goes through all that can happen within the budget.
func Search(ctx context.Context, cfg Config) (Result, error) {
	m := newModel(cfg)
	first, err := m.root()
	if err != nil {
		return Result{}, err
	}
	found, err := breadth.Search[world, move]{
		First: first, Each: m.each, Rest: m.unsettled, RestEvery: settledEvery, Most: cfg.States,
	}.Run(ctx)
	if err != nil {
		return Result{}, err
	}
	return Result{
		States: found.States, Whole: found.Whole, Broken: found.Broken, Trace: m.trace(found.Trace),
		Nodes: len(m.states.All), Took: found.Took,
	}, nil
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

// rules returns those that a node goes without. One of the version before neither says nor goes
// by what ledgers say of minting.
func (m *model) rules(number byte) ticket.Rules {
	if m.older(number) {
		return m.leaveOut | ticket.FreshMint
	}
	return m.leaveOut
}

func (m *model) older(number byte) bool { return int(number) == m.cfg.Older }

// firstLimit is how many places there are at first: one for each node.
func (m *model) firstLimit() int64 { return int64(m.cfg.Nodes) }

// root returns the world in which each node has one place, and all know it.
func (m *model) root() (w world, err error) {
	now := make([]*state, len(m.numbers))
	for i, n := range m.numbers {
		r, err := open(n, 1, nil, begin, m.rules(n))
		if err != nil {
			return w, err
		}
		now[i] = &state{number: n, boot: 1, now: begin, rights: r}
	}
	now[0].facts = map[string]fact{}
	b, err := node.NewBare(node.BareState{Self: crdt.Incarnation{Node: nodeID(m.numbers[0]), Boot: 1}, Room: roomID, Session: session, Rights: now[0].rights}, begin)
	if err != nil {
		return w, err
	}
	b.Found(begin)
	b.SetLimits(amount(m.firstLimit()), begin)
	for _, n := range m.numbers {
		if m.cfg.Halfway {
			b.Keeps(otherRoomID, nodeID(n), begin)
		}
	}
	set, _ := b.Changed()
	for k, v := range set {
		now[0].facts[k] = fact{string(v), 1, m.numbers[0]}
	}
	if err := m.settle(now, nil); err != nil {
		return w, err
	}
	for _, n := range m.numbers[1:] {
		now[0].rights.Give(nodeID(n), amount(1), begin)
	}
	if err := m.settle(now, nil); err != nil {
		return w, err
	}
	for i, s := range now {
		s.rights = s.rights.Clone()
		s.rights.Expect(1, s.now) // so that the first who come find the disk ready for them
		for s.write(); s.writes; {
			s.save()
		}
		w.nodes[i] = m.intern(s)
	}
	w.messages, w.inside, w.greatest = m.set(nil), m.crowd(nil), int32(m.firstLimit())
	return w, nil
}

func (m *model) intern(s *state) int32 {
	n := m.states.Number(s.key(), s)
	if int(n) < len(m.says) {
		return n
	}
	held := int64(0)
	if s.rights != nil {
		held = max(0, s.rights.Held().Places)
	}
	m.says, m.held = append(m.says, m.facts(s.facts)), append(m.held, held)
	return n
}

func (m *model) message(x message) int32 {
	return m.messages.Number(append([]byte{x.from, x.to, x.kind}, x.payload...), x)
}

func (m *model) facts(f map[string]fact) int32 { return m.known.Number(appendFacts(nil, f), f) }

func (m *model) set(all []int32) int32 {
	var key []byte
	for _, x := range all {
		key = binary.AppendVarint(key, int64(x))
	}
	return m.sets.Number(key, all)
}

// with returns a set of messages with some more.
func (m *model) with(set int32, more []int32) int32 {
	all := m.sets.All[set]
	for _, x := range more {
		if i, there := slices.BinarySearch(all, x); !there {
			all = slices.Insert(slices.Clone(all), i, x)
		}
	}
	return m.set(all)
}

func (m *model) crowd(all []crowd) int32 {
	var key []byte
	for _, c := range all {
		key = binary.AppendVarint(binary.AppendVarint(key, c.n), c.left)
	}
	return m.crowds.Number(key, all)
}

// enter returns who is inside when n more are.
func (m *model) enter(inside int32, n int64) (int32, int64) {
	all := append(slices.Clone(m.crowds.All[inside]), crowd{n, session.Milliseconds()})
	slices.SortFunc(all, func(a, b crowd) int { return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.n, b.n)) })
	sum := int64(0)
	for _, c := range all {
		sum += c.n
	}
	return m.crowd(all), sum
}

// later returns who is still inside after a time.
func (m *model) later(inside int32, d time.Duration) int32 {
	var all []crowd
	for _, c := range m.crowds.All[inside] {
		if c.left -= d.Milliseconds(); c.left >= 0 {
			all = append(all, c)
		}
	}
	return m.crowd(all)
}

// do returns what comes of an event at a node, which is worked out once.
func (m *model) do(at int32, e event) outcome {
	key := step{at, e}
	if o, known := m.done[key]; known {
		return o
	}
	f := m.apply(m.states.All[at], e)
	for range 20 { // it comes to rest long before
		if m.err = f.err; m.err != nil {
			return outcome{to: at}
		}
		if !m.cfg.Coarse || f.to.rights == nil {
			break
		}
		before := string(f.to.key())
		next := m.apply(f.to, event{do: steps})
		if next.err == nil && len(next.sent) == 0 && string(next.to.key()) == before {
			break
		}
		next.in, next.sent = f.in, append(f.sent, next.sent...)
		f = next
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

// trace says what happened.
func (m *model) trace(all []move) (told []string) {
	for _, l := range all {
		text := names[l.do]
		if l.at >= 0 {
			text = fmt.Sprintf("node %d: %s", m.numbers[l.at], text)
		}
		switch l.do {
		case receives:
			x := m.messages.All[l.value]
			text += fmt.Sprintf(" %s of node %d", map[uint8]string{node.BareTransfer: "gift", node.BareReceived: "receipt", node.BareHandover: "hand-over"}[x.kind], x.from)
		case hears:
			text += fmt.Sprintf(" of node %d", l.with)
		case gives, leaves:
			text += fmt.Sprintf(" to node %d", l.with)
		case declares:
			text += fmt.Sprintf(" node %d dead", l.with)
		case limits:
			text += fmt.Sprintf(" %d", l.value)
		}
		told = append(told, text)
	}
	return told
}
