package node

import (
	"slices"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// What the facts say of nodes that have left or are lost: who has what they had.

// gone reports whether a node has left or is lost.
func (f *facts) gone(id crdt.NodeID) bool {
	_, left := f.left[id]
	_, dead := f.dead[id]
	return left || dead
}

// hops bounds how often what was a node's in a room has passed to another: heirs leave as well,
// and machines are replaced for years. Nobody passes it on twice, but two nodes that name each
// other must not make a search run for ever.
func (f *facts) hops(r *roomFacts) int {
	return len(f.left) + len(f.dead) + len(r.finals) + len(r.inherited) + len(r.again) + 1
}

// leftTo returns to whom a node has left a room; ok is false if it has not. A node leaves rooms
// one by one: it has left those of which its last ledger is known, or that of its heir. Once it has left all, those in
// which it had no ledger count as well, unless it is declared dead: then what was given to it in
// them is recovered.
func (f *facts) leftTo(r *roomFacts, id crdt.NodeID) (heir crdt.NodeID, ok bool) {
	if final, known := r.finals[id]; known {
		return final.Heir, true
	}
	if heir, known := r.inherited[id]; known {
		return heir, true
	}
	heir, all := f.left[id]
	_, dead := f.dead[id]
	return heir, all && !dead && (!r.kept.has(id) || r.retired)
}

// hasLeft reports whether a node has left all rooms and has said so itself. Its heir may say so
// before it, when it has the last ledgers of all rooms that it knows of.
func (f *facts) hasLeft(id crdt.NodeID) bool {
	_, left := f.left[id]
	_, _, over := f.replica.Get(nodeKey(factOver, id))
	return left && over
}

// leftBehind reports whether a node that has left and said so itself had a ledger of a room that nobody has been
// told of. Before a leaver was known to go on with all its rooms after a restart it could forget some. All that
// it said is known here, so what it had there is nobody's, and can be recovered as if its disk was lost.
func (f *facts) leftBehind(id crdt.NodeID) bool {
	if _, at, _ := f.replica.Get(nodeKey(factOver, id)); !f.hasLeft(id) || !f.replica.HoldsUpTo(at) {
		return false
	}
	for _, r := range f.rooms {
		if !r.kept.has(id) || r.retired {
			continue
		}
		if _, left := f.leftTo(r, id); !left {
			return true
		}
	}
	return false
}

// heir returns who answers for a node in a room by now: itself, or who took over last.
func (f *facts) heir(r *roomFacts, id crdt.NodeID) crdt.NodeID {
	for range f.hops(r) {
		next, gone := f.leftTo(r, id)
		if x, done := r.again[id]; !gone && done {
			next, gone = x.by, true
		}
		if !gone {
			next, gone = f.dead[id]
		}
		if !gone {
			break
		}
		id = next
	}
	return id
}

// keeper returns who keeps what was given to a node that has left a room: an heir that has
// not left it itself, lost or not.
func (f *facts) keeper(r *roomFacts, id crdt.NodeID) crdt.NodeID {
	for range f.hops(r) {
		next, left := f.leftTo(r, id)
		if !left {
			break
		}
		id = next
	}
	return id
}

// tookOver reports whether a node has told that it has taken over from another one, and has that on disk.
func (r *roomFacts) tookOver(keeper, leaver crdt.NodeID) bool {
	return slices.ContainsFunc(r.words, func(w ticket.Word) bool {
		return w.Node == keeper && w.Dead == leaver && w.Heir == crdt.NodeID{}
	})
}

// mints returns who mints in a room: nobody while a lost minter's rights are not
// recovered.
func (f *facts) mints(r *roomFacts) crdt.NodeID {
	id := r.minter
	for range f.hops(r) {
		next, left := f.leftTo(r, id)
		if _, dead := f.dead[id]; !left && !dead {
			break
		} else if !left {
			x, done := r.again[id]
			if !done {
				return crdt.NodeID{}
			}
			next = x.by
		}
		id = next
	}
	return id
}

// speakers returns, in order, the nodes whose word on the dead is needed in a room: all that
// may own rights, are not dead and have not left the room.
func (f *facts) speakers(r *roomFacts) (all []crdt.NodeID) {
	for id := range f.sites {
		_, dead := f.dead[id]
		if _, left := f.leftTo(r, id); !dead && !left {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, compareNodes)
	return all
}

// neverHad reports whether a node that has left, and what of it is with heir by now, never
// had a ledger in a room. That is sure if all is known that it said before it left, since
// who leaves takes no room up any more: if it has said itself that it has left, or if heir
// has, which had heard all before it agreed to take over.
// A version before could have a ledger that it had told nobody of: whoever took that over says so.
func (f *facts) neverHad(room crdt.RoomID, id, heir crdt.NodeID) bool {
	r := f.room(room)
	if _, left := f.leftTo(r, id); !left || id == heir || f.keeper(r, id) != heir {
		return false
	}
	_, final := r.finals[id]
	_, passed := r.inherited[id]
	_, at, said := f.replica.Get(nodeKey(factOver, id))
	if !said { // it may run an older version
		_, at, _ = f.replica.Get(nodeKey(factLeft, id))
	}
	heard := f.replica.HoldsUpTo(at) && (at.Node == id || f.agreed(id, at.Node))
	return !final && !passed && !r.kept.has(id) && heard
}

// agreed reports whether a node has left to another one by its own choice, and runs a version
// in which that one then has heard all that it said.
func (f *facts) agreed(leaver, heir crdt.NodeID) bool {
	for _, r := range f.rooms {
		if final, known := r.finals[leaver]; known && final.Heir == heir && final.Minting.Known {
			return true
		}
	}
	return false
}

// handedOver reports whether the last ledgers of a node are known in all rooms that
// it had one of.
func (f *facts) handedOver(id crdt.NodeID) bool {
	for _, r := range f.rooms {
		if _, final := r.finals[id]; r.kept.has(id) && !final && !r.retired {
			return false
		}
	}
	return true
}
