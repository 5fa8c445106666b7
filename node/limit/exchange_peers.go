package limit

import (
	"maps"
	"slices"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// SetPeers says which other nodes live. It is called whenever that changes. Where a key
// has another owner from then on, all who know much of it tell that one.
func (e *Exchange) SetPeers(peers []Peer, now Millis) (out []Message) {
	was := e.peers
	e.peers = make(map[crdt.NodeID]Peer, len(peers))
	for _, p := range peers {
		if p.ID != e.self.Node {
			e.peers[p.ID] = p
		}
	}
	if maps.Equal(was, e.peers) {
		return nil
	}
	for id, l := range e.links {
		if _, ok := e.peers[id]; ok {
			l.gone = 0
		} else if l.gone == 0 {
			l.gone = now
		}
		if p, ok := e.peers[id]; !ok || p.Boot != was[id].Boot || !p.Ready {
			e.Lost += l.forget()
		}
	}
	e.greeted = 0
	before := e.nodes
	e.arrange(peers)
	e.tables.Each(func(t *Table) {
		if t.Tell = len(e.peers) > 0; !t.Tell {
			t.Release(e.unheard) // later it would be taken for what comes then
		}
	})
	if !slices.Equal(before, e.nodes) {
		e.drop()
		out = e.handOver(before, now)
	}
	e.askPeers()
	return out
}

// arrange puts the nodes that answer requests in order.
func (e *Exchange) arrange(peers []Peer) {
	e.nodes, e.others, e.away = []crdt.NodeID{e.self.Node}, nil, map[string][]crdt.NodeID{}
	for _, p := range peers {
		switch {
		case p.ID == e.self.Node || !p.Ready:
		case p.Site == e.site:
			e.nodes = append(e.nodes, p.ID)
		default:
			e.away[p.Site] = append(e.away[p.Site], p.ID)
		}
	}
	slices.SortFunc(e.nodes, crdt.NodeID.Compare)
	e.others = slices.Sorted(maps.Keys(e.away))
}

// handOver tells the owners that keys have now what this node knows of those that had
// others.
func (e *Exchange) handOver(before []crdt.NodeID, now Millis) (out []Message) {
	to := map[crdt.NodeID]*batch[fact]{}
	var terms [MaxSlots]*Terms
	for slot, c := range e.rules.bySlot {
		if c != nil {
			terms[slot] = &c.Terms
		}
	}
	e.tables.Each(func(t *Table) {
		t.Release(func(f Fresh) bool { return e.release(f, before) })
		t.Known(terms[:], now, func(slot uint16, s State) {
			chooser := room.Chooser(s.Key)
			owner := chooser.Of(e.nodes)
			if owner == e.self.Node || owner == chooser.Of(before) {
				return
			}
			if to[owner] == nil {
				to[owner] = &batch[fact]{}
			}
			to[owner].add(e.rules.bySlot[slot], factOf(s, now))
		})
	})
	for _, id := range slices.SortedFunc(maps.Keys(to), crdt.NodeID.Compare) {
		for _, groups := range to[id].parts() {
			out = append(out, Message{To: id, Kind: Known, Payload: (&known{sent: now, heard: e.heard(), groups: groups}).encode()})
		}
	}
	return out
}

// release reports whether a key of which others are to hear was this node's and is not any
// more. Other sites do not hear of that, then.
func (e *Exchange) release(f Fresh, before []crdt.NodeID) bool {
	chooser := room.Chooser(f.Key)
	if chooser.Of(before) != e.self.Node || chooser.Of(e.nodes) == e.self.Node {
		return false
	}
	if c := e.rules.bySlot[f.Slot]; c != nil && c.Rule.Scope == Mesh && len(e.others) > 0 {
		e.Lost += uint64(f.Count)
	}
	return true
}

// unheard notes that nobody is there to hear of a key.
func (e *Exchange) unheard(f Fresh) bool {
	e.Lost += uint64(f.Count)
	return true
}

// drop forgets what nodes of the own site were to hear of keys that they do not own any
// more: the new owners are told of it as part of what is known.
func (e *Exchange) drop() {
	for id, l := range e.links {
		if e.peers[id].Site == e.site {
			e.Lost += l.drop(func(k Key) bool { return e.owner(k) != id })
		}
	}
}
