package limit

import (
	"maps"
	"slices"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// A node asks others for what they know as a whole: all of them when it starts, or first meets them,
// and those of other sites again where the nodes of its own have changed, and with them what it owns.

// ask is what one other node is asked.
type ask struct {
	before []crdt.NodeID // nodes of the own site when it had answered all; nil: it has not
	nodes  []crdt.NodeID // those of this question
	turn   uint64        // of the newest; 0: there is nothing to ask
	cursor uint64
	sent   Millis
}

const (
	// forgetAfter is how long what is known of a node is kept that does not live any more: nothing of it is
	// under way for so long.
	forgetAfter Millis = 60_000

	// maxScanned is how many keys are looked at for one answer, which takes some milliseconds at most.
	maxScanned = 1 << 17

	// fewShare is the part of its limit from which on a key is told before others.
	fewShare = 0.1
)

// askPeers begins questions where there are some.
func (e *Exchange) askPeers() {
	for _, id := range slices.SortedFunc(maps.Keys(e.peers), crdt.NodeID.Compare) {
		p, a := e.peers[id], e.asks[id]
		switch {
		case !p.Ready:
			continue
		case a == nil:
			a = &ask{}
			e.asks[id] = a
		case p.Site == e.site || slices.Equal(a.nodes, e.nodes):
			continue
		}
		if a.turn == 0 {
			a.before = a.nodes
		}
		e.turn++
		a.nodes, a.turn, a.cursor, a.sent = e.nodes, e.turn, 0, 0
	}
	maps.DeleteFunc(e.asks, func(id crdt.NodeID, a *ask) bool {
		p, ok := e.peers[id]
		return a.turn > 0 && (!ok || !p.Ready) // it is asked when it is back
	})
}

// inquire sends the questions that are due.
func (e *Exchange) inquire(now Millis) (out []Message) {
	for _, id := range slices.SortedFunc(maps.Keys(e.asks), crdt.NodeID.Compare) {
		if a := e.asks[id]; a.turn > 0 && (a.sent == 0 || now-a.sent >= resendAfter || now < a.sent) {
			out = append(out, a.message(id, now))
		}
	}
	return out
}

func (a *ask) message(to crdt.NodeID, now Millis) Message {
	a.sent = now
	return Message{To: to, Kind: Asked, Payload: (&asked{a.turn, a.cursor, a.before, a.nodes}).encode()}
}

// answers reports whether a node answers with it what it was asked last.
func (e *Exchange) answers(from Peer, turn uint64) bool {
	a := e.asks[from.ID]
	return a != nil && a.turn == turn
}

// askOn asks a node for the next piece, if it has answered with one and there are more.
func (e *Exchange) askOn(id crdt.NodeID, turn, next uint64, now Millis) []Message {
	if turn == 0 {
		return nil
	}
	a := e.asks[id]
	if next == 0 {
		a.turn = 0
		return nil
	}
	e.turn++
	a.turn, a.cursor = e.turn, next
	return []Message{a.message(id, now)}
}

// Awaits returns the nodes that have not told all that they know.
func (e *Exchange) Awaits() (ids []crdt.NodeID) {
	for _, id := range slices.SortedFunc(maps.Keys(e.asks), crdt.NodeID.Compare) {
		if e.asks[id].turn > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Asked answers a question. To a node of the own site it tells of the keys that this node owns, and to those
// of others of those that both own, and the other did not own before.
func (e *Exchange) Asked(from Peer, message []byte, now Millis) ([]Message, error) {
	m, err := decodeAsked(message)
	if err != nil || len(m.nodes) == 0 {
		e.Refused++
		return nil, err
	}
	near := from.Site == e.site
	var terms [MaxSlots]*Terms
	for slot, c := range e.rules.bySlot {
		if c != nil && (near || c.Rule.Scope == Mesh) {
			terms[slot] = &c.Terms
		}
	}
	told := batch[fact]{seq: m.turn} // so that there is a part, if nothing is known
	next := e.scan(m.cursor, terms[:], now, func(slot uint16, s State) {
		chooser := room.Chooser(s.Key)
		switch {
		case chooser.Of(e.nodes) != e.self.Node:
			return
		case near:
		case chooser.Of(m.nodes) != from.ID, len(m.before) > 0 && chooser.Of(m.before) == from.ID:
			return
		}
		told.add(e.rules.bySlot[slot], factOf(s, now))
	})
	k := known{sent: now, turn: m.turn, next: next, heard: e.heard(), groups: told.parts()[0]}
	return []Message{{To: from.ID, Kind: Known, Payload: k.encode()}}, nil
}

// scan yields what is known of keys from a cursor on: those that are near their limits, and then all others.
// It returns where it goes on, after as many as go in a message; 0: that was all.
func (e *Exchange) scan(cursor uint64, terms []*Terms, now Millis, yield func(uint16, State)) (next uint64) {
	few, table, set := cursor>>48 == 0, int(cursor>>32&0xffff), int(cursor&0xffffffff)
	for looked, found := 0, 0; looked < maxScanned && found+ways <= maxItems; {
		there := e.tables.Nth(table, func(t *Table) {
			sets := max(min(len(t.sets)-set, maxSetsAtOnce, (maxItems-found)/ways), 0)
			t.knownOf(set, sets, terms, now, func(slot uint16, s State, much bool) {
				if much == few {
					found++
					yield(slot, s)
				}
			})
			looked += sets * ways
			if set += sets; set >= len(t.sets) {
				table, set = table+1, 0
			}
		})
		if !there && !few {
			return 0
		}
		if !there {
			few, table, set = false, 0, 0
		}
	}
	next = uint64(table)<<32 | uint64(set)
	if !few {
		next |= 1 << 48
	}
	return next
}

// maxSetsAtOnce is how many sets are looked at while a table is locked.
const maxSetsAtOnce = 1 << 11

// heard says what is in what this node knows, at most, of what nodes tell as counts.
func (e *Exchange) heard() []mark {
	all := maps.Clone(e.marks)
	for id, l := range e.links {
		if l.round > 0 {
			all[id] = later(all[id], mark{id, l.boot, l.round})
		}
	}
	all[e.self.Node] = mark{e.self.Node, e.self.Boot, e.round}
	ids := slices.SortedFunc(maps.Keys(all), crdt.NodeID.Compare)
	marks := make([]mark, 0, len(ids))
	for _, id := range ids[:min(len(ids), maxHeard)] {
		marks = append(marks, all[id])
	}
	return marks
}

// mark notes what may be in what was taken as a whole.
func (e *Exchange) mark(heard []mark) {
	for _, m := range heard {
		if m.node == e.self.Node {
			continue
		}
		if _, ok := e.marks[m.node]; ok || len(e.marks) < maxHeard {
			e.marks[m.node] = later(e.marks[m.node], m)
			e.link(m.node) // with which it is forgotten
		}
	}
}

func later(a, b mark) mark {
	if a.boot > b.boot || a.boot == b.boot && a.round > b.round {
		return a
	}
	return b
}

// mayHold reports whether what was taken as a whole may hold what a node noted in a round, or later.
func (e *Exchange) mayHold(from Peer, round uint64) bool {
	m, ok := e.marks[from.ID]
	return ok && (m.boot > from.Boot || m.boot == from.Boot && m.round >= round)
}
