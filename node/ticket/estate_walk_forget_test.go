package ticket

import (
	"maps"
	"slices"

	"github.com/ropeline/ropeline/crdt"
)

// How nodes of a walk forget who has left, or was lost and recovered.

// forget has all nodes do what they may about those that are gone. With a chance each, they tell of it, and nobody goes on
// by what was not told.
func (w *estateWalk) forget(chance float64) {
	if minter := w.facts.mints(); (minter != crdt.NodeID{}) && w.rights[minter].Written() {
		w.facts.minter = minter
	}
	gone := slices.DeleteFunc(slices.Clone(w.nodes), func(id crdt.NodeID) bool { return !w.over(id) })
	for _, id := range w.staying() {
		for _, g := range gone {
			if w.Float64() < chance {
				w.closeAccount(id, g, chance)
			}
		}
		if w.Float64() < chance {
			w.keepForGood(id, gone)
		}
	}
	for _, g := range gone {
		if w.mayForget(g) && w.Float64() < chance {
			w.note(eventForgets, g, crdt.NodeID{}, 0)
			w.drop(g)
		}
	}
	for _, id := range w.staying() {
		for _, x := range w.rights[id].Closings().Closed {
			if !w.facts.known[x.Node] && w.Float64() < chance {
				w.rights[id].Unname(x.Node)
				w.write(id)
				w.facts.closings[id] = w.rights[id].Closings()
			}
		}
	}
}

// over reports whether a node is gone, and somebody who is there has what it had.
func (w *estateWalk) over(g crdt.NodeID) bool {
	return w.facts.known[g] && !w.present(g) && w.present(w.keeper(g))
}

// keeper returns who has what was a node's; nobody, if that is lost and not recovered.
func (w *estateWalk) keeper(g crdt.NodeID) crdt.NodeID {
	for range 20 {
		if x, recovered := w.facts.recovered[g]; recovered {
			g = x.by
		} else if final, left := w.facts.left[g]; left {
			g = final.Heir
		} else {
			break
		}
	}
	if w.facts.isDead(g) {
		return crdt.NodeID{}
	}
	return g
}

func (w *estateWalk) close(r *Rights, g crdt.NodeID) bool {
	if _, recovered := w.facts.recovered[g]; recovered {
		return r.CloseDead(g)
	}
	return r.CloseAccount(w.facts.left[g])
}

// closeAccount has a node close its account with one that is gone, and fold it if who keeps the rights of that one has.
func (w *estateWalk) closeAccount(id, g crdt.NodeID, chance float64) {
	r, key := w.rights[id], wordKey{id, g}
	w.close(r, g)
	w.write(id)
	if w.facts.keptForGood(g) {
		r.Fold(g)
		w.write(id)
	}
	if w.Float64() >= chance {
		return
	}
	w.facts.closings[id] = r.Closings()
	if w.close(r, g) && !w.facts.settled[key] {
		w.note(eventCloses, id, g, 0)
		w.facts.settled[key] = true
	}
	if r.Folded(g) && !w.facts.folded[key] {
		w.note(eventFolds, id, g, 0)
		w.facts.folded[key] = true
	}
}

// keepForGood has a node fold the accounts of those whose rights it has, once all others have closed theirs.
func (w *estateWalk) keepForGood(keeper crdt.NodeID, gone []crdt.NodeID) {
	var may []crdt.NodeID
	for _, g := range gone {
		open := w.facts.keptForGood(g) || w.keeper(g) != keeper || w.rights[keeper].Anchors(g)
		for id := range w.facts.known {
			open = open || w.present(id) && !w.facts.settled[wordKey{id, g}]
		}
		if !open {
			may = append(may, g)
		}
	}
	r := w.rights[keeper]
	for _, g := range r.MayKeep(may, w.facts.keptForGood, w.present, w.facts.left) {
		r.Fold(g)
		w.note(eventKeeps, keeper, g, 0)
		w.facts.folded[wordKey{keeper, g}] = true
	}
	w.write(keeper)
	w.facts.closings[keeper] = r.Closings()
}

// mayForget reports whether nobody goes by anything that is known of a node.
func (w *estateWalk) mayForget(g crdt.NodeID) bool {
	if !w.facts.keptForGood(g) || w.facts.minter == g {
		return false
	}
	_, recovered := w.facts.recovered[g]
	for x := range w.facts.known {
		if x == g {
			continue
		}
		if w.present(x) {
			if !w.facts.folded[wordKey{x, g}] {
				return false
			}
			continue
		}
		if w.facts.left[x].Heir == g || has(w.facts.left[x], g) || w.facts.recovered[x].by == g || w.facts.dead[wordKey{g, x}] {
			return false
		}
		if !w.facts.keptForGood(x) && !w.facts.closingsOf(x).Stands(x, g, w.facts.left[g], recovered) && w.mayHaveDealt(x, g) {
			return false
		}
	}
	return true
}

// has reports whether a last ledger says that it has the rights of another node: it is to be forgotten before what that has said.
func has(f Final, id crdt.NodeID) bool {
	return slices.ContainsFunc(f.Inherited, func(x Inherited) bool { return x.Leaver == id }) ||
		slices.ContainsFunc(f.Recovered, func(x Recovery) bool { return x.Dead == id })
}

// mayHaveDealt reports whether somebody may have to reckon with what two nodes that are gone have dealt with each other.
func (w *estateWalk) mayHaveDealt(x, g crdt.NodeID) bool {
	a, leftA := w.facts.left[x]
	b, leftB := w.facts.left[g]
	_, recovered := w.facts.recovered[g]
	return recovered || !leftA && !leftB || a.DealtWith(g) || b.DealtWith(x)
}

func (w *estateWalk) drop(g crdt.NodeID) {
	f := w.facts
	before := f.round()
	delete(f.left, g)
	delete(f.known, g)
	delete(f.minted, g)
	delete(f.closings, g)
	delete(f.recovered, g)
	maps.DeleteFunc(f.dead, func(key wordKey, _ bool) bool { return key.dead == g })
	maps.DeleteFunc(f.words, func(key wordKey, _ wordFact) bool { return key.node == g || key.dead == g })
	f.forgotten += before - f.round()
}

// restart has a node crash while it writes that accounts are closed, folded or named no more, and start again: nobody knows whether
// its disk has that.
func (w *estateWalk) restart(id crdt.NodeID) {
	r := w.rights[id]
	w.write(id)
	for _, g := range w.nodes {
		if !w.opt.Forget || w.IntN(3) > 0 {
			continue
		}
		if !w.facts.known[g] {
			r.Unname(g)
		} else if w.over(g) && w.present(id) {
			if w.close(r, g); w.facts.keptForGood(g) {
				r.Fold(g)
			}
		}
	}
	puts, stored := r.Writes(), r.Stored()
	if w.IntN(2) == 0 {
		for _, p := range puts {
			stored = slices.DeleteFunc(stored, func(was Put) bool { return was.Key == p.Key })
			if p.Value != nil {
				stored = append(stored, p)
			}
		}
	}
	w.open(id, stored)
	w.note(eventRestarts, id, crdt.NodeID{}, int64(len(puts)))
}
