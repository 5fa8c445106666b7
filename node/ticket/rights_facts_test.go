package ticket

import (
	"maps"
	"slices"

	"github.com/ropeline/ropeline/crdt"
)

// facts is what nodes of the world tell each other: each a last-writer map of the
// plainest kind. A value of it is never changed once it is in use.
type facts struct {
	limits    limitFact
	minter    crdt.NodeID
	minted    map[crdt.NodeID]mintedFact
	known     map[crdt.NodeID]bool
	left      map[crdt.NodeID]Final
	dead      map[wordKey]bool // as a node has it that is to be the heir
	words     map[wordKey]wordFact
	recovered map[crdt.NodeID]recoveredFact
	closings  map[crdt.NodeID]Closings
	settled   map[wordKey]bool // who has closed the account with whom, or had none
	folded    map[wordKey]bool // and who has folded it
	forgotten int64            // as much as round is less for those that were forgotten
}

// recoveredFact says who has recovered a node's rights, what it had minted as
// far as that was known, which is what counts from then on, and in which turn that was.
type recoveredFact struct {
	by     crdt.NodeID
	minted Amount
	turn   int64
}

type limitFact struct {
	version int
	by      crdt.NodeID
	Amount
}

func (a limitFact) older(b limitFact) bool {
	return a.version < b.version || a.version == b.version && a.by.Compare(b.by) < 0
}

type mintedFact struct {
	version int64
	Amount
}

type wordKey struct{ node, dead crdt.NodeID }

type wordFact struct {
	version int64
	Word
}

func newFacts() *facts {
	return &facts{
		minted: map[crdt.NodeID]mintedFact{}, known: map[crdt.NodeID]bool{}, left: map[crdt.NodeID]Final{},
		dead: map[wordKey]bool{}, words: map[wordKey]wordFact{}, recovered: map[crdt.NodeID]recoveredFact{},
		closings: map[crdt.NodeID]Closings{}, settled: map[wordKey]bool{}, folded: map[wordKey]bool{},
	}
}

func (f *facts) clone() *facts {
	c := *f
	c.minted, c.known, c.left, c.dead = maps.Clone(f.minted), maps.Clone(f.known), maps.Clone(f.left), maps.Clone(f.dead)
	c.words, c.recovered = maps.Clone(f.words), maps.Clone(f.recovered)
	return &c
}

// merged returns f with what o knows besides.
func (f *facts) merged(o *facts) *facts {
	c := f.clone()
	if c.limits.older(o.limits) {
		c.limits = o.limits
	}
	if (c.minter == crdt.NodeID{}) {
		c.minter = o.minter
	}
	for id, a := range o.minted {
		if a.version > c.minted[id].version {
			c.minted[id] = a
		}
	}
	maps.Copy(c.dead, o.dead)
	maps.Copy(c.known, o.known)
	maps.Copy(c.left, o.left)
	for key, x := range o.words {
		if x.version > c.words[key].version {
			c.words[key] = x
		}
	}
	maps.Copy(c.recovered, o.recovered)
	return c
}

// withoutMinted returns what is known but for how much was minted.
func (f *facts) withoutMinted() *facts {
	c := *f
	c.minted = nil
	return &c
}

// heir returns who answers for a node.
func (f *facts) heir(id crdt.NodeID) crdt.NodeID {
	for range 20 {
		if final, ok := f.left[id]; ok {
			id = final.Heir
		} else if heir := f.named(id); (heir != crdt.NodeID{}) {
			id = heir
		} else {
			break
		}
	}
	return id
}

// named returns the least heir of a dead node; zero: it is not dead.
func (f *facts) named(id crdt.NodeID) (least crdt.NodeID) {
	for x := range f.dead {
		if x.dead == id && (least == crdt.NodeID{} || x.node.Compare(least) < 0) {
			least = x.node
		}
	}
	return least
}

func (f *facts) isDead(id crdt.NodeID) bool { return f.named(id) != crdt.NodeID{} }

// round is the same wherever the same is known of who is there.
func (f *facts) round() int64 {
	return f.forgotten + int64(len(f.dead)+len(f.known)+len(f.left)+len(f.recovered))
}

// mintedBy returns what a node has minted as far as it counts.
func (f *facts) mintedBy(id crdt.NodeID) Amount {
	if x, done := f.recovered[id]; done {
		return x.minted
	}
	return f.minted[id].Amount.Add(f.closingsOf(id).AllMinted())
}

// closingsOf returns what a node has told of those that left before it.
func (f *facts) closingsOf(id crdt.NodeID) Closings {
	if final, left := f.left[id]; left {
		return final.Closings
	}
	return f.closings[id]
}

// keptForGood reports whether a node says that it has the rights of one that has left for good.
func (f *facts) keptForGood(id crdt.NodeID) bool {
	for by := range f.known {
		if f.closingsOf(by).Keeps(id) {
			return true
		}
	}
	return false
}

// mints returns who mints: nobody while a dead minter's rights are not recovered.
func (f *facts) mints() crdt.NodeID {
	id := f.minter
	for range 20 {
		if final, ok := f.left[id]; ok {
			id = final.Heir
		} else if !f.isDead(id) {
			break
		} else if x, done := f.recovered[id]; done {
			id = x.by
		} else {
			return crdt.NodeID{}
		}
	}
	return id
}

func (f *facts) present(id crdt.NodeID) bool {
	_, left := f.left[id]
	return !left && !f.isDead(id)
}

// unrecovered returns, in order, the dead whose rights nobody has, and who left to
// one of them. Who has left is not dead, whatever was said.
func (f *facts) unrecovered() []crdt.NodeID {
	in := map[crdt.NodeID]bool{}
	for key := range f.dead {
		id := key.dead
		_, left := f.left[id]
		if x, done := f.recovered[id]; !left && (!done || !f.present(f.heirOfLeaver(x.by))) && !f.keptForGood(id) {
			in[id] = true
		}
	}
	for id := range f.left {
		if in[f.heirOfLeaver(id)] && !f.keptForGood(id) {
			in[id] = true
		}
	}
	return slices.SortedFunc(maps.Keys(in), crdt.NodeID.Compare)
}

// heirOf returns who recovers the rights of nodes: the least of those who were
// named, or whoever answers for it; where none of them is there, the least of all.
func (f *facts) heirOf(dead []crdt.NodeID) (least crdt.NodeID) {
	take := func(heir crdt.NodeID) {
		if f.present(heir) && (least == crdt.NodeID{} || heir.Compare(least) < 0) {
			least = heir
		}
	}
	for key := range f.dead {
		if slices.Contains(dead, key.dead) {
			take(f.heir(key.node))
		}
	}
	if (least == crdt.NodeID{}) {
		for id := range f.known {
			take(id)
		}
	}
	return least
}

// estate returns what has to be recovered by a node; nothing if that is not for it.
func (f *facts) estate(self crdt.NodeID) (e Estate) {
	dead := f.unrecovered()
	if f.heirOf(dead) != self {
		return Estate{}
	}
	for _, id := range dead {
		e.Dead = append(e.Dead, id)
		e.Minted = append(e.Minted, f.mintedBy(id))
		if e.Closings == nil {
			e.Closings = map[crdt.NodeID]Closings{}
		}
		e.Closings[id] = f.closingsOf(id)
	}
	for id := range f.known {
		if f.present(id) {
			e.Needed = append(e.Needed, id)
		}
	}
	slices.SortFunc(e.Needed, crdt.NodeID.Compare)
	for _, w := range f.words {
		e.Words = append(e.Words, w.Word)
	}
	e.Recovered = map[crdt.NodeID]int64{}
	for id, x := range f.recovered {
		e.Recovered[id] = x.turn
	}
	for _, x := range f.left {
		e.Finals = append(e.Finals, x)
	}
	return e
}

// heirOfLeaver follows heirs of nodes that left to one that has not.
func (f *facts) heirOfLeaver(id crdt.NodeID) crdt.NodeID {
	for range 20 {
		final, ok := f.left[id]
		if !ok {
			break
		}
		id = final.Heir
	}
	return id
}
