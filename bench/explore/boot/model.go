package boot

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ropeline/ropeline/bench/explore/breadth"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
)

// most is how many hosts there are at most.
const most = 4

// Config is one search.
type Config struct {
	Named    int    // how many nodes are named
	Joins    bool   // there is one more, which is not
	Order    string // of ids: a digit for each host, in the order of names; "": as names are
	Falling  bool   // the id of a disk that takes another's place is less than all before, and not greater
	Restarts int    // how often processes stop and start in one history
	Losses   int    // how many disks are lost in one history
}

// world is all of it in one moment.
type world struct {
	hosts    [most]int32 // states, by their places
	messages int32       // a set of them
	minted   crdt.NodeID // that has, as its disk said; zero: none has
	restarts uint8
	losses   uint8
}

// move is an event, and where it happens.
type move struct {
	at int8 // the host
	event
}

// model is what is known of single parts of worlds. Each is kept once, under a number.
type model struct {
	cfg   Config
	hosts []string // their names

	// What tests have go wrong: a host gets another message than was sent, or answers to questions of
	// earlier rounds count.
	gets func(to *host, x bootstrap.Message) bootstrap.Message
	late bool

	states   breadth.Table[*host]
	messages breadth.Table[message]
	sets     breadth.Sets // of messages, by their numbers
	peers    breadth.Table[[]bootstrap.Peer]
	done     map[step]outcome

	acts    crdt.NodeID // whose machine does something now
	renewed bool        // it has begun a round
	nonces  uint64      // of worlds that are brought to rest: one that no round has had
}

// step is an event at a host in one state, and outcome what comes of it.
type step struct {
	at int32
	event
}

type outcome struct {
	to      int32
	renewed bool
	sent    []int32
}

// Search goes through all that can happen within the budget, up to a number of states; 0: all.
func (cfg Config) Search(ctx context.Context, states int) breadth.Result {
	return newModel(cfg).search(ctx, states, settledEvery)
}

func (m *model) search(ctx context.Context, states, settledEvery int) breadth.Result {
	return breadth.Search[world, move]{
		First: m.root(), Each: m.each, Rest: m.unsettled, RestEvery: settledEvery, Text: m.text, Most: states,
	}.Run(ctx)
}

func newModel(cfg Config) *model {
	cfg.Order = cmp.Or(cfg.Order, "1234")
	m := &model{cfg: cfg, done: map[step]outcome{}, gets: func(_ *host, x bootstrap.Message) bootstrap.Message { return x }}
	for n := range cfg.Named {
		m.hosts = append(m.hosts, fmt.Sprintf("a%d", n+1))
	}
	if cfg.Joins {
		m.hosts = append(m.hosts, "x")
	}
	return m
}

// root returns the world in which all have just started, and all disks are empty.
func (m *model) root() (w world) {
	for i := range m.hosts {
		h := &host{place: i, now: begin}
		m.start(h)
		w.hosts[i] = m.intern(h)
	}
	var asked []int32
	for i := 1; i < len(m.hosts); i++ {
		asked = append(asked, m.ask(&w, i)...)
	}
	slices.Sort(asked)
	w.messages = m.sets.Set(asked)
	return w
}

// random has all rounds have the same nonce, and a mesh have the id of its minter's disk: one
// that was not written before its process stopped was never heard of.
func (m *model) random(b []byte) {
	if len(b) == len(m.acts) {
		copy(b, m.acts[:])
		return
	}
	m.renewed = true
	nonce := uint64(fresh)
	if m.nonces > 0 {
		m.nonces++
		nonce = m.nonces
	}
	binary.BigEndian.PutUint64(b, nonce)
}

func (m *model) intern(h *host) int32 { return m.states.Number(h.key(), h) }

func (m *model) message(x message) int32 { return m.messages.Number(x.key(), x) }

// do returns what comes of an event at a host, which is worked out once.
func (m *model) do(at int32, e event) outcome {
	key := step{at, e}
	if o, known := m.done[key]; known {
		return o
	}
	f := m.apply(m.states.All[at], e)
	o := outcome{to: m.intern(f.to), renewed: f.renewed}
	for _, x := range f.sent {
		o.sent = append(o.sent, m.message(x))
	}
	m.done[key] = o
	return o
}

// mail returns what is on its way once a host has done something, and others have answered what
// is there to be answered.
func (m *model) mail(w world, before *host, renewed bool, sent []int32) int32 {
	id := m.self(before)
	var all []int32
	for _, n := range m.sets.All[w.messages] {
		if renewed && !m.late {
			n = m.message(m.messages.All[n].old(id))
		}
		all = append(all, n)
	}
	all = append(all, sent...)
	for _, n := range all {
		if x := m.messages.All[n]; m.plain(x) && m.self(m.states.All[w.hosts[x.to[1]]]) == x.to {
			all = append(all, m.do(w.hosts[x.to[1]], event{receives, n}).sent...)
		}
	}
	all = slices.DeleteFunc(all, func(n int32) bool { return m.idle(w, m.messages.All[n]) })
	slices.Sort(all)
	return m.sets.Set(slices.Compact(all))
}

// plain reports whether a message is a question that makes no difference to whoever answers it.
// Such are answered as soon as there is another answer: that may arrive at any later time as well.
func (m *model) plain(x message) bool {
	return !x.answer && (x.Name != m.hosts[0] || !x.Holds.Mesh.IsZero())
}

// idle reports whether a message can do nothing any more. What an empty first node says may
// always be taken down: that the minter's disk is gone, or that nothing counts that was said
// before.
func (m *model) idle(w world, x message) bool {
	to := m.states.All[w.hosts[x.to[1]]]
	first := m.hosts[0]
	switch settled := !to.empty() && (to.disk.Minted || to.disk.Record.Minter != m.self(to)); {
	case x.to != m.self(to):
		return true // that disk is gone
	case x.Name == first && x.Holds.Mesh.IsZero():
		return false
	case x.answer && (settled || x.Echo == 0 || to.empty() && to.place > 0 && x.Holds.Mesh.IsZero()):
		return true
	case !x.answer && x.Nonce == 0:
		return m.hosts[to.place] != first || !to.empty() // whose answer would have an effect
	}
	return false
}
