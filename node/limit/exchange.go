package limit

import (
	"maps"
	"slices"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// Peer is another node that is alive.
type Peer struct {
	ID    crdt.NodeID
	Boot  uint64 // of its present start
	Site  string
	Ready bool // it answers requests
}

// Message is one for another node.
type Message struct {
	To      crdt.NodeID
	Kind    Kind
	Payload []byte
}

// Kind says what a message is about.
type Kind uint8

const (
	Counted Kind = iota // what its sender has counted
	Known               // what its sender knows
	Asked               // a question for that
)

// Exchange is what one node tells others of its counts, and hears from them.
//
// Each key has an owner in each site, chosen among the site's nodes by rendezvous hashing.
//
//	node ── what it has counted ──▶ owner in its site ── the same, of the whole site ──▶ owners in other sites
//	     ◀── what the owner knows ──
//
// Counts are told as differences, each of which is counted at its receiver once: it is sent
// again until it is acknowledged, under a number, and there is one on its way at a time. What
// an owner knows is told as a whole, and taken where it is more than what is known. So a fault
// loses counts at worst; none makes more of them than there were requests.
//
// That holds while no count reaches a node as a difference and as part of a whole. So only who
// takes itself for the owner of a key counts differences of it, and tells what it knows; and
// where a key changes its owner, differences on their way are dropped, as the new owner is
// told of them as part of the whole.
//
// A node that starts knows nothing of any key, and its site nothing if it is the only one there. It asks all
// others for what they know of the keys that they own, and takes that as it takes all that is told as a whole:
// where it is more. But what a node of a third site counts is told to both as differences, and may be in the one's
// whole and on its way to the other. So those who tell differences number the rounds in which they note them, and a
// whole says up to which round of whom it may hold differences: what comes later of such a round is not counted
// where the whole was taken.
//
// No clock is asked but that of the node: counts come with their age, and with what shows
// that they were held up on their way; see lag.
type Exchange struct {
	self   crdt.Incarnation
	site   string
	rules  *Rules
	tables Tables

	peers  map[crdt.NodeID]Peer
	nodes  []crdt.NodeID            // of the own site that answer requests, this one among them
	others []string                 // sites beside the own
	away   map[string][]crdt.NodeID // their nodes that answer requests

	links   map[crdt.NodeID]*link
	marks   map[crdt.NodeID]mark // of what was taken as a whole
	asks    map[crdt.NodeID]*ask // of nodes that answer requests
	round   uint64               // in which this node last noted counts for others
	number  uint64               // of the newest that was sent to anybody
	turn    uint64               // of the newest question
	greeted Millis               // when all others were last sent something
	told    Millis               // when tables were last asked what is new
	old     Millis               // since then: the oldest of what others told and other sites are to hear; 0: none

	Lost    uint64 // counts that nobody could be told of
	Refused uint64 // messages that made no sense
}

// How often a node tells of what it has counted. The longer, the more can come beyond a
// limit, and the less is sent.
const (
	siteInterval Millis = 100 // to owners in its site
	meshInterval Millis = 250 // an owner to those in other sites

	tickInterval Millis = 50 // of Exchange.Tick

	// greetInterval is how often others hear of a node at least, so that they know how long
	// its messages take before one is late.
	greetInterval Millis = 10_000

	// knownAge is how old that is taken to be at least what somebody knows who was not
	// asked; it must not be taken for newer than it is: then more would seem to come at a
	// time than does, and somebody might be limited who keeps to the limit.
	knownAge Millis = 250
)

// NewExchange returns the exchange of a node that knows of no other.
func NewExchange(self crdt.Incarnation, site string, rules *Rules, tables Tables) *Exchange {
	e := &Exchange{self: self, site: site, rules: rules, tables: tables, links: map[crdt.NodeID]*link{}}
	e.marks, e.asks = map[crdt.NodeID]mark{}, map[crdt.NodeID]*ask{}
	e.arrange(nil)
	return e
}

// owner returns the node of the own site that a key belongs to.
func (e *Exchange) owner(k Key) crdt.NodeID { return room.Chooser(k).Of(e.nodes) }

// Tick sends what is due. It is called some twenty times a second.
func (e *Exchange) Tick(now Millis) (out []Message) {
	if len(e.peers) == 0 || e.told == 0 {
		e.told = now // before, nothing was noted for others
	}
	if len(e.peers) == 0 {
		return nil
	}
	out = append(e.announce(now), e.greet(now)...)
	out = append(out, e.inquire(now)...)
	if now-e.told >= siteInterval || now < e.told {
		e.note(now)
	}
	return append(out, e.send(now)...)
}

// note has all who have to hear of what was counted since the last time.
func (e *Exchange) note(now Millis) {
	since := min(e.told, now)
	old := since
	if e.old > 0 {
		old = min(since, e.old)
	}
	e.told, e.old = now, 0
	e.round++
	e.tables.Each(func(t *Table) { t.TakeFresh(func(f Fresh) { e.route(f, since, old) }) })
}

func (e *Exchange) send(now Millis) (out []Message) {
	for _, id := range e.order() {
		l := e.links[id]
		if l.gone > 0 && now-l.gone >= forgetAfter {
			e.Lost += l.forget()
			delete(e.links, id)
			delete(e.marks, id)
			delete(e.asks, id)
			continue
		}
		e.Lost += l.give(e.rules, now)
		if m := l.send(e.rules, e.peers[id].Boot, e.number+1, now); m != nil {
			e.number = max(e.number, l.seq)
			out = append(out, Message{To: id, Kind: Counted, Payload: m})
		}
	}
	return out
}

// Last returns what is to be sent before this node ends: what it has counted and nobody has heard of.
func (e *Exchange) Last(now Millis) []Message {
	if len(e.peers) == 0 || e.told == 0 {
		return nil
	}
	e.note(now)
	for _, l := range e.links {
		l.told = 0 // as if it were long ago
	}
	return e.send(now)
}

// greet has all others hear from this node now and then, also if there is nothing to tell.
func (e *Exchange) greet(now Millis) (out []Message) {
	if len(e.rules.byID) == 0 || now-e.greeted < greetInterval && now >= e.greeted {
		return nil
	}
	e.greeted = now
	m := (&known{sent: now}).encode()
	for _, id := range slices.SortedFunc(maps.Keys(e.peers), crdt.NodeID.Compare) {
		out = append(out, Message{To: id, Kind: Known, Payload: m})
	}
	return out
}

// order returns the nodes that there are links to, so that the same input gives the same
// output.
func (e *Exchange) order() []crdt.NodeID {
	ids := make([]crdt.NodeID, 0, len(e.links))
	for id := range e.links {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, crdt.NodeID.Compare)
	return ids
}

// route has those hear of counts who have to. since is how old those of this node may be,
// old is that of those that others have told.
func (e *Exchange) route(f Fresh, since, old Millis) {
	c := e.rules.bySlot[f.Slot]
	if c == nil {
		return // the rule is no more
	}
	if to := e.owner(f.Key); to != e.self.Node {
		e.link(to).add(f, since, siteInterval, e.round)
		return
	}
	if c.Rule.Scope != Mesh {
		return
	}
	for _, site := range e.others {
		e.link(room.Chooser(f.Key).Of(e.away[site])).add(f, old, meshInterval, e.round)
	}
}

func (e *Exchange) link(to crdt.NodeID) *link {
	l := e.links[to]
	if l == nil {
		l = newLink()
		e.links[to] = l
	}
	return l
}

// announce tells others of keys that have come to be limited here: the site of all, and
// other sites of those for which that lasts longer there than counts say.
func (e *Exchange) announce(now Millis) (out []Message) {
	var near, far batch[fact]
	e.tables.Each(func(t *Table) {
		t.TakeBegun(now, func(k Begun) {
			c := e.rules.bySlot[k.Slot]
			if c == nil {
				return
			}
			f := fact{key: k.Key, limited: k.Until - now}
			near.add(c, f)
			if c.outlasts() {
				far.add(c, f)
			}
		})
	})
	out = announcement(near, e.nodes, e.self.Node, now)
	for _, site := range e.others {
		out = append(out, announcement(far, e.away[site], e.self.Node, now)...)
	}
	return out
}

// announcement tells nodes, but not the one that tells, what is known without being asked.
func announcement(b batch[fact], nodes []crdt.NodeID, self crdt.NodeID, now Millis) (out []Message) {
	for _, groups := range b.parts() {
		m := (&known{sent: now, groups: groups}).encode()
		for _, id := range nodes {
			if id != self {
				out = append(out, Message{To: id, Kind: Known, Payload: m})
			}
		}
	}
	return out
}

// Counted takes what another node has counted.
func (e *Exchange) Counted(from Peer, message []byte, now Millis) ([]Message, error) {
	m, err := decodeCounted(message)
	if err != nil {
		e.Refused++
		return nil, err
	}
	if m.boot != e.self.Boot {
		return nil, nil // an earlier start may have counted it
	}
	l := e.link(from.ID)
	at := now - m.age - l.lag.of(from.Boot, m.sent, now)
	near, first := from.Site == e.site, l.hear(from.Boot, m.seq, m.rounds.last)
	held := !near && e.mayHold(from, m.rounds.first)
	answer := batch[fact]{seq: m.seq}
	for _, g := range m.groups {
		c := e.rules.bySum[g.sum]
		if c == nil || !near && c.Rule.Scope != Mesh {
			continue // one of us has not heard yet of what has changed
		}
		for _, i := range g.items {
			if e.owner(i.key) != e.self.Node {
				continue // it may be part of what the owner is told as a whole
			}
			e.tables.Of(i.key, func(t *Table) {
				if first && !(held && t.Whole(i.key)) {
					forward := near && c.Rule.Scope == Mesh && e.forwards(i.n, at, now)
					t.Add(i.key, &c.Terms, i.n, at, now, forward)
				}
				s, ok := t.StateOf(i.key, &c.Terms, now)
				switch {
				case ok && near:
					answer.add(c, factOf(s, now))
				case ok && s.Until > now && c.outlasts(): // it has not heard of that
					answer.add(c, fact{key: i.key, limited: s.Until - now})
				}
			})
		}
	}
	out := e.announce(now)
	for _, groups := range answer.parts() {
		out = append(out, Message{To: from.ID, Kind: Known, Payload: (&known{sent: now, seq: m.seq, groups: groups}).encode()})
	}
	return out, nil
}

// forwards reports whether other sites are to hear of counts that another node told. Those
// that were held up for long are not passed on: all that is would be taken to be as old.
func (e *Exchange) forwards(n uint32, at, now Millis) bool {
	switch {
	case len(e.others) == 0:
		return false
	case now-at >= giveUpAfter:
		e.Lost += uint64(n)
		return false
	}
	if e.old == 0 || at < e.old {
		e.old = at
	}
	return true
}

func factOf(s State, now Millis) fact {
	f := fact{key: s.Key, previous: s.Window.Previous, current: s.Window.Current, elapsed: max(now-s.Window.Start, 0)}
	if s.Until > now {
		f.limited = s.Until - now
	}
	return f
}

// Known takes what another node knows, and returns what is to be asked next.
func (e *Exchange) Known(from Peer, message []byte, now Millis) ([]Message, error) {
	m, err := decodeKnown(message)
	if err != nil {
		e.Refused++
		return nil, err
	}
	l := e.link(from.ID)
	late := l.lag.of(from.Boot, m.sent, now)
	at := now - knownAge - late
	if m.seq > 0 {
		var ok bool
		if at, ok = l.acknowledge(m.seq, now); !ok {
			return nil, nil // of an earlier one
		}
	}
	if m.turn > 0 && !e.answers(from, m.turn) {
		return nil, nil
	}
	e.mark(m.heard)
	near, whole := from.Site == e.site, len(m.heard) > 0
	for _, g := range m.groups {
		c := e.rules.bySum[g.sum]
		if c == nil || !near && !c.outlasts() && (!whole || c.Rule.Scope != Mesh) {
			continue
		}
		for _, f := range g.items {
			s := State{Key: f.key}
			if near || whole { // else what other sites have, they tell as counts: it must not be counted twice
				s.Window = Window{Start: at - f.elapsed, Previous: f.previous, Current: f.current}
			}
			if f.limited > 0 && g.terms == uint64(c.terms) {
				s.Until = now + f.limited - late
			}
			owned := e.owner(f.key) == e.self.Node
			e.tables.Of(f.key, func(t *Table) {
				if t.Learn(s, &c.Terms, now, owned) && whole {
					t.TookWhole(f.key)
				}
			})
		}
	}
	return e.askOn(from.ID, m.turn, m.next, now), nil
}
