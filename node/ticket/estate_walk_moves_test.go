package ticket

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// What happens in estate walks.

// step has one thing happen.
func (w *estateWalk) step() {
	if w.opt.Restarts && w.IntN(8) == 0 {
		w.restart(w.pick(w.living()))
	}
	switch x := w.IntN(100); {
	case x < 30:
		w.give()
	case x < 46:
		w.wait(time.Duration(w.IntN(5000)) * time.Millisecond)
		w.deliver(w.chance)
	case x < 54:
		w.leave()
	case x < 60:
		w.lose()
	case x < 67:
		w.declare()
	case x < 70 && w.opt.Limits:
		if w.IntN(3) == 0 {
			more := w.Int64N(100)
			w.limit = w.limit.Add(Amount{more, more})
		}
		w.mint(w.IntN(2) == 0)
	case x < 74 && len(w.nodes) < walkMost:
		w.join()
	default:
		w.act(w.chance)
	}
}

// join adds a node, with what is on its disk.
func (w *estateWalk) join(stored ...Put) crdt.NodeID {
	id := crdt.NodeID{byte(1 + w.IntN(250)), byte(len(w.nodes))} // who is least does not hang on who came first
	w.open(id, stored)
	w.facts.known[id] = true
	w.nodes = append(w.nodes, id)
	w.note(eventJoins, id, crdt.NodeID{}, w.rights[id].Held().Places)
	return id
}

// open starts a node with what is on its disk.
func (w *estateWalk) open(id crdt.NodeID, stored []Put) {
	w.boots[id]++
	cfg := RightsConfig{Self: crdt.Incarnation{Node: id, Boot: w.boots[id]}, Session: walkSession, LeaveOut: RateCools | RestartCools | w.opt.LeftOut}
	r, _, err := OpenRights(cfg, stored, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	w.rights[id] = r
}

// give has one node give to another, which may be lost, but is not known to be.
func (w *estateWalk) give() {
	stay := w.staying()
	from, to := w.pick(stay), w.pick(stay)
	if w.IntN(3) == 0 {
		to = w.pick(w.nodes)
	}
	if from == to || !w.present(to) {
		return
	}
	n := 1 + w.Int64N(60)
	if got := w.rights[from].Give(to, Amount{n, n}, w.now); !got.IsZero() {
		w.note(eventGives, from, to, got.Places)
	}
	w.write(from)
}

// leave has a node begin to leave.
func (w *estateWalk) leave() {
	stay := w.staying()
	from, to := w.pick(stay), w.pick(stay)
	if from == to {
		return
	}
	w.write(from)
	if held := w.rights[from].Held(); w.rights[from].Leave(to, w.now) == nil {
		w.note(eventLeaves, from, to, held.Places)
	}
	w.write(from)
}

// lose takes a disk, also of who leaves or has left, and mostly one with the rights of others. One
// node has to stay.
func (w *estateWalk) lose() {
	from := w.living()
	if successors := w.successors(); len(successors) > 0 && w.IntN(4) > 0 {
		from = successors
	}
	if id := w.pick(from); len(w.staying()) > 1 {
		w.lost[id] = true
		w.note(eventLost, id, w.facts.heir(id), w.rights[id].Held().Places)
	}
}

// successors live, and have recovered others or were left to.
func (w *estateWalk) successors() []crdt.NodeID {
	return slices.DeleteFunc(w.living(), func(id crdt.NodeID) bool {
		return !slices.ContainsFunc(w.nodes, func(of crdt.NodeID) bool {
			return w.facts.recovered[of].by == id || w.facts.left[of].Heir == id
		})
	})
}

// declare has lost nodes declared dead, with any node as the one to recover them. Who has left is
// not lost, whatever became of its disk.
func (w *estateWalk) declare() {
	for _, id := range w.nodes {
		if w.lost[id] && w.present(id) && w.IntN(2) == 0 {
			by := w.pick(w.staying())
			w.facts.dead[wordKey{by, id}] = true
			w.note(eventDead, by, id, w.rights[id].Held().Places)
		}
	}
}

// act has all nodes do what the facts ask for. With a chance each, they say what others have to
// know for it.
func (w *estateWalk) act(chance float64) {
	dead, round := w.facts.unrecovered(), w.facts.round()
	heir := w.facts.heirOf(dead)
	for _, id := range w.living() {
		w.refuse(id, dead, heir, round)
		w.write(id)
		if w.Float64() < chance && w.facts.known[id] {
			w.tell(id)
		}
	}
	if w.opt.Forget {
		w.forget(chance)
	}
	if dead = w.facts.unrecovered(); len(dead) > 0 {
		if heir = w.facts.heirOf(dead); slices.Contains(w.staying(), heir) {
			w.recover(heir)
		}
	}
}

// refuse has a node refuse the dead, also those that were recovered before it came, and take what
// those gave it that have left. Nobody is taken from before all are refused that have to be: who left
// to one that was recovered was recovered with it.
func (w *estateWalk) refuse(id crdt.NodeID, dead []crdt.NodeID, heir crdt.NodeID, round int64) {
	r := w.rights[id]
	w.refuseRecovered(id)
	if (heir != crdt.NodeID{}) {
		for _, x := range dead {
			r.Fence(x, heir, round, w.now)
		}
	}
	for _, x := range w.nodes {
		if final, left := w.facts.left[x]; left {
			r.Settle(final, w.facts.heirOfLeaver(x))
		}
	}
}

func (w *estateWalk) refuseRecovered(id crdt.NodeID) {
	for _, x := range w.nodes {
		if by, recovered := w.facts.recovered[x]; recovered {
			w.rights[id].Fence(x, by.by, 1, w.now)
		}
	}
}

// tell has a node give its word on the dead, and say that it has left if its successor cannot. Who
// leaves gives none: its last ledger says what it would, and others may have reckoned with that.
func (w *estateWalk) tell(id crdt.NodeID) {
	r := w.rights[id]
	_, left := w.facts.left[id]
	if _, leaving := r.Leaving(); !left && !leaving || w.opt.LeaversSpeak {
		for _, dead := range w.nodes {
			if word, ok := r.Frozen(dead); ok {
				w.facts.words[wordKey{id, dead}] = wordFact{1, word}
			}
		}
	}
	if final, ok := r.Left(); ok && !left {
		w.note(eventLeftToDead, id, final.Heir, final.gave(final.Heir).Places)
		w.facts.left[id] = final
	}
}

// recover has the heir of all that are dead take their rights, unless words are missing.
func (w *estateWalk) recover(heir crdt.NodeID) {
	r := w.rights[heir]
	if r.Recover(w.facts.estate(heir), w.now) != nil {
		return
	}
	w.write(heir)
	for _, x := range r.Recovered() {
		was, again := w.facts.recovered[x.Dead]
		switch {
		case was.by == heir:
			continue
		case again:
			w.note(eventAgain, heir, x.Dead, x.Minted.Places)
		default:
			w.note(eventRecovers, heir, x.Dead, x.Minted.Places)
		}
		w.facts.recovered[x.Dead] = recoveredFact{heir, x.Minted, x.Turn}
	}
}

// mint has whoever mints follow the limit, as far as it knows what others have minted. Unless it
// tells what it has minted itself, that is known once its last ledger says it, if ever.
func (w *estateWalk) mint(tells bool) {
	minter := w.facts.mints()
	if !slices.Contains(w.staying(), minter) {
		return
	}
	r := w.rights[minter]
	before, counted := r.Minted(), w.counted()
	r.SetLimits(w.limit, r.OthersMinted(func(yield func(crdt.NodeID, Amount) bool) {
		for _, id := range w.nodes {
			if w.facts.keptForGood(id) {
				continue
			}
			minted := w.facts.mintedBy(id)
			_, recovered := w.facts.recovered[id]
			if exact, ok := counted[id]; ok && !recovered {
				minted = exact
			}
			if !yield(id, minted) {
				return
			}
		}
	}), minter, w.now)
	w.write(minter)
	minted := r.Minted()
	if minted != before {
		w.note(eventMints, minter, w.facts.minter, minted.Sub(before).Places)
	}
	if tells && minted != w.facts.minted[minter].Amount {
		w.facts.minted[minter] = mintedFact{1, minted}
	}
}

// counted returns what nodes had minted that have left, as their last ledgers say it.
func (w *estateWalk) counted() map[crdt.NodeID]Amount {
	counted := map[crdt.NodeID]Amount{}
	for _, id := range w.nodes {
		final, left := w.facts.left[id]
		if !left || w.opt.LeftOut&FreshMint != 0 {
			continue
		}
		counted[id] = final.Counted().Minted
		for _, x := range final.Inherited {
			if x.Minting.Known {
				counted[x.Leaver] = x.Minting.Minted
			}
		}
	}
	return counted
}
