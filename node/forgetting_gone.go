package node

import (
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// The last steps of closings.go: what is known of a node is deleted, and it is named nowhere.

// mayForget reports whether nobody goes by anything that is known of a node any more.
func (g *goneNodes) mayForget(id crdt.NodeID) bool {
	c := g.core
	if !g.all(id, stepFolded) {
		return false
	}
	for _, o := range g.ids() {
		if (c.facts.left[o] == id || slices.Contains(c.facts.named[o], id)) && !g.all(o, stepFolded) {
			return false
		}
	}
	for _, f := range c.facts.rooms {
		if !f.retired && !c.facts.mayForgetIn(f, id) {
			return false
		}
	}
	return true
}

// mayForgetIn is mayForget in one room.
func (f *facts) mayForgetIn(r *roomFacts, id crdt.NodeID) bool {
	final, left := r.finals[id]
	_, again := r.again[id]
	if f.gone(r.minter) || (left || again) && !r.keptForGood(id) || len(f.unrecovered(r)) > 0 {
		return false
	}
	dealt := func(a ticket.Final, with crdt.NodeID) bool {
		return slices.ContainsFunc(a.Accounts, func(x ticket.Account) bool { return x.Node == with })
	}
	for o, x := range r.finals {
		if o == id {
			continue
		}
		if names(x, id) || !r.keptForGood(o) && (x.Heir == id || r.inherited[o] == id) {
			return false
		}
		if !r.keptForGood(o) && !x.Closings.Names(id) && (dealt(x, id) || dealt(final, o)) {
			return false
		}
	}
	for o, x := range r.again {
		_, oLeft := r.finals[o]
		if o == id || r.keptForGood(o) {
			continue
		}
		if x.by == id || !r.closingsOf(o).Names(id) && (again || !oLeft && dealt(final, o)) {
			return false
		}
	}
	return true
}

// names reports whether a last ledger says of a node who has its rights: that is to go before what the node itself has said.
func names(final ticket.Final, id crdt.NodeID) bool {
	return slices.ContainsFunc(final.Inherited, func(x ticket.Inherited) bool { return x.Leaver == id }) ||
		slices.ContainsFunc(final.Recovered, func(x ticket.Recovery) bool { return x.Dead == id })
}

// forget deletes all facts of a node of which nobody has to know any more, those of the node itself last.
func (g *goneNodes) forget(id crdt.NodeID, now time.Time) {
	c := g.core
	if !g.mayForget(id) {
		return
	}
	g.own.rounds += c.facts.forgot[id].rounds + int64(4+len(c.facts.named[id]))
	c.setFact(nodeKey(factForgot, c.self.Node), g.own.encode(), now)
	for _, room := range slices.SortedFunc(maps.Keys(c.facts.rooms), crdt.RoomID.Compare) {
		f := c.facts.rooms[room]
		for name := range f.knew.all() {
			g.unknow(roomNodeKey(factKnew, room, name), id, now)
		}
		for _, w := range f.words {
			if w.Node == id || w.Dead == id {
				g.delete(wordKey(room, w.Dead, w.Node), now)
			}
		}
		for _, kind := range []string{factKnew, factMinted, factTold, factRests, factClosed, factRecovered, factFinal} {
			g.delete(roomNodeKey(kind, room, id), now)
		}
	}
	for _, heir := range slices.SortedFunc(slices.Values(c.facts.named[id]), compareNodes) {
		g.delete(nodeKey(factDead, id)+"/"+heir.String(), now)
	}
	for _, kind := range []string{factStart, factForgot, factOver, factLeft, factName, factNode} {
		g.delete(nodeKey(kind, id), now)
	}
}

// unknow takes a node out of what another one has told to be minted.
func (g *goneNodes) unknow(key string, id crdt.NodeID, now time.Time) {
	value, _, there := g.core.replica.Get(key)
	knew, err := ticket.DecodeTold(value)
	left := slices.DeleteFunc(slices.Clone(knew), func(x ticket.Told) bool { return x.Node == id })
	if there && err == nil && len(left) < len(knew) {
		g.core.setFact(key, ticket.AppendTold(nil, left), now)
	}
}

func (g *goneNodes) delete(key string, now time.Time) {
	if _, _, there := g.core.replica.Get(key); there {
		g.core.setFact(key, nil, now)
	}
}

// unname has the accounts with nodes named no more whose facts are deleted on all disks, and notes of which there are accounts.
func (g *goneNodes) unname(r *Room, named map[crdt.NodeID]bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rights == nil {
		return
	}
	for _, x := range r.rights.Closings().Closed {
		if named[x.Node] = true; g.forgotten(r.id, x.Node, now) {
			r.rights.Unname(x.Node)
			g.core.storing.touch(r)
		}
	}
}

// tellSteps has all know how far this node is.
func (g *goneNodes) tellSteps(named map[crdt.NodeID]bool, now time.Time) {
	c := g.core
	for id := range g.own.steps {
		if !named[id] && !c.facts.gone(id) {
			delete(g.own.steps, id)
			delete(c.forgetting.without, id)
		}
	}
	if _, told := c.facts.forgot[c.self.Node]; told || len(g.own.steps) > 0 {
		c.setFact(nodeKey(factForgot, c.self.Node), g.own.encode(), now)
	}
}

// forgotten reports whether nothing is left of a node in a room, nor of the deletion of what there was, and that for a
// while: then its own data directory is refused wherever it is started.
func (g *goneNodes) forgotten(room crdt.RoomID, id crdt.NodeID, now time.Time) bool {
	keys := []string{nodeKey(factNode, id), nodeKey(factLeft, id), nodeKey(factOver, id)}
	for _, kind := range []string{factFinal, factRecovered, factMinted, factClosed} {
		keys = append(keys, roomNodeKey(kind, room, id))
	}
	f := &g.core.forgetting
	if g.core.facts.gone(id) || slices.ContainsFunc(keys, func(key string) bool {
		_, at, _ := g.core.replica.Get(key)
		return at != crdt.Stamp{}
	}) {
		delete(f.without, id)
		return false
	}
	if f.without[id].IsZero() {
		noteFact(&f.without, id, now)
	}
	return now.Sub(f.without[id]) >= forgetAfter
}
