package node

import (
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/packed"
	"github.com/ropeline/ropeline/node/ticket"
)

// The last steps of closings.go: what is known of a node is deleted, and it is named nowhere.

// forgetAll forgets all of whom nobody goes by anything that is known any more.
func (g *goneNodes) forgetAll() {
	c := g.core
	rooms := slices.SortedFunc(maps.Keys(c.facts.rooms), crdt.RoomID.Compare)
	named := slices.Clone(rooms)
	if read := c.Catalog(); read != nil { // what a node remembers of its file is of no use without it
		named = slices.AppendSeq(named, read.InFiles())
		slices.SortFunc(named, crdt.RoomID.Compare)
		named = slices.Compact(named)
	}
	inAll(g, rooms, func(room crdt.RoomID) func(crdt.NodeID) bool {
		f := c.facts.room(room)
		if f.retired {
			return func(crdt.NodeID) bool { return true }
		}
		return c.facts.mayForgetIn(f)
	}, func(id crdt.NodeID) {
		if g.mayForget(id) {
			g.forget(id, named)
		}
	})
}

// mayForget reports whether all have folded their accounts with a node, and no other node that is gone is known by it.
func (g *goneNodes) mayForget(id crdt.NodeID) bool {
	c := g.core
	if !g.all(id, stepFolded) {
		return false
	}
	for _, o := range g.ids {
		if (c.facts.left[o] == id || slices.Contains(c.facts.named[o], id)) && !g.all(o, stepFolded) {
			return false
		}
	}
	return true
}

// mayForgetIn returns what reports whether nobody goes by anything that is known of a node in one room.
func (f *facts) mayForgetIn(r *roomFacts) func(crdt.NodeID) bool {
	if f.gone(r.minter) || len(f.unrecovered(r)) > 0 {
		return func(crdt.NodeID) bool { return false }
	}
	has := map[crdt.NodeID]bool{} // whose rights a last ledger has: who names that one no more goes by what was received for it
	var finals, recovered []crdt.NodeID
	for id, final := range r.finals {
		for _, x := range final.Inherited {
			has[x.Leaver] = true
		}
		for _, x := range final.Recovered {
			has[x.Dead] = true
		}
		if !r.keptForGood(id) {
			finals = append(finals, id)
		}
	}
	for id := range r.again {
		if !r.keptForGood(id) {
			recovered = append(recovered, id)
		}
	}
	return func(id crdt.NodeID) bool {
		_, left := r.finals[id]
		_, again := r.again[id]
		if has[id] || (left || again) && !r.keptForGood(id) {
			return false
		}
		return !slices.ContainsFunc(finals, func(o crdt.NodeID) bool { return o != id && r.finalNeeds(o, id) }) &&
			!slices.ContainsFunc(recovered, func(o crdt.NodeID) bool { return o != id && r.recoveredNeeds(o, id) })
	}
}

// finalNeeds reports whether one that has left, and whose rights nobody has for good, may have to be recovered by what is known of
// another one that is gone.
func (r *roomFacts) finalNeeds(o, id crdt.NodeID) bool {
	x, final := r.finals[o], r.finals[id]
	_, again := r.again[id]
	return x.Heir == id || r.inherited[o] == id ||
		!x.Closings.Stands(o, id, final, again) && (again || x.DealtWith(id) || final.DealtWith(o))
}

// recoveredNeeds is the same of one that was recovered.
func (r *roomFacts) recoveredNeeds(o, id crdt.NodeID) bool {
	final := r.finals[id]
	_, again := r.again[id]
	_, left := r.finals[o]
	return r.again[o].by == id || !r.closingsOf(o).Stands(o, id, final, again) && (again || !left && final.DealtWith(o))
}

// forget deletes all facts of a node of which nobody has to know any more, those of the node itself last.
func (g *goneNodes) forget(id crdt.NodeID, rooms []crdt.RoomID) {
	c := g.core
	g.then(func(now time.Time) {
		g.own.rounds += c.facts.forgot[id].rounds + int64(4+len(c.facts.named[id]))
		c.setFact(nodeKey(factForgot, c.self.Node), g.own.encode(), now)
	})
	g.chunks(len(rooms), goneRoomsAtOnce, func(i int, now time.Time) { g.forgetIn(rooms[i], id, now) })
	g.then(func(now time.Time) {
		for _, heir := range slices.SortedFunc(slices.Values(c.facts.named[id]), compareNodes) {
			g.delete(nodeKey(factDead, id)+"/"+heir.String(), now)
		}
		for _, kind := range []string{factStart, factForgot, factOver, factLeft, factName, factCame, factNode} {
			g.delete(nodeKey(kind, id), now)
		}
	})
}

// forgetIn deletes the facts of a node in one room.
func (g *goneNodes) forgetIn(room crdt.RoomID, id crdt.NodeID, now time.Time) {
	f := g.core.facts.room(room)
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
	g.delete(catalog.PrintsKey(room, id), now)
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
	f := g.core.facts.room(r.id)
	r.rights.ForgetKeepers(func(id crdt.NodeID) bool {
		_, left := f.finals[id]
		return !left && !g.core.facts.gone(id)
	})
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
			packed.Delete(&c.forgetting.without, id)
			packed.Delete(&c.inquiries.by, id)
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
		packed.Delete(&f.without, id)
		return false
	}
	if f.without[id].IsZero() {
		noteFact(&f.without, id, now)
	}
	return now.Sub(f.without[id]) >= forgetAfter
}
