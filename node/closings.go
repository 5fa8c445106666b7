package node

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// How the mesh forgets nodes that have left, and lost ones whose rights were recovered. What a node has dealt with
// others is needed for as long as anybody may have to be recovered by it. So nodes stop needing it step by
// step, and each step begins when the one before is on the disks of all nodes that exist:
//
//  1. Each closes its accounts with the node that is gone, once nothing is on its way any more, and tells what stands in
//     them: by that its own rights are recovered from now on, and by nothing that the gone one or who keeps its rights has said.
//  2. Who keeps its rights has them for good: they are recovered with its own, and by no words on the gone one.
//  3. All others fold their accounts with it.
//  4. Its facts are deleted, by the least of all nodes that exist.
//  5. What is left of the accounts is added to that of all before, and the node is named nowhere.
//
// A node that does not run holds that up until it is back, has left, or is recovered itself.

const (
	stepClosed = 1
	stepFolded = 2
)

// forgot is what a node has told of nodes that are gone: how far it is with each, and as how much less it is to be
// counted in rounds that some are forgotten; see facts.round.
type forgot struct {
	rounds int64
	steps  map[crdt.NodeID]byte
}

const forgotVersion = 1

func (f forgot) encode() []byte {
	out := binary.AppendUvarint([]byte{forgotVersion}, uint64(f.rounds))
	for _, id := range slices.SortedFunc(maps.Keys(f.steps), compareNodes) {
		out = append(append(out, id[:]...), f.steps[id])
	}
	return out
}

func decodeForgot(value []byte) (f forgot, err error) {
	if len(value) == 0 || value[0] != forgotVersion {
		return f, fmt.Errorf("%w: what a node has forgotten", errMalformed)
	}
	rounds, n := binary.Uvarint(value[1:])
	rest := value[1+max(0, n):]
	const entry = len(crdt.NodeID{}) + 1
	if n <= 0 || rounds > maxAmount || len(rest)%entry != 0 {
		return f, fmt.Errorf("%w: what a node has forgotten", errMalformed)
	}
	f = forgot{int64(rounds), make(map[crdt.NodeID]byte, len(rest)/entry)}
	for ; len(rest) > 0; rest = rest[entry:] {
		f.steps[crdt.NodeID(rest[:entry-1])] = rest[entry-1]
	}
	return f, nil
}

// closingsOf returns what a node has told of its closed accounts: of one that has left, its last ledger says it.
func (r *roomFacts) closingsOf(id crdt.NodeID) ticket.Closings {
	if final, left := r.finals[id]; left {
		return final.Closings
	}
	return r.closings.of(id)
}

// takeClosings notes whose rights are others' for good.
func (r *roomFacts) takeClosings() {
	r.forGood = nil
	note := func(by crdt.NodeID, c ticket.Closings) {
		for _, x := range c.Closed {
			if x.Kept {
				noteFact(&r.forGood, x.Node, by)
			}
		}
	}
	for id, c := range r.closings.all() {
		if _, left := r.finals[id]; !left {
			note(id, c)
		}
	}
	for id, final := range r.finals {
		note(id, final.Closings)
	}
}

// keptForGood reports whether another node has the rights of one that is gone for good.
func (r *roomFacts) keptForGood(id crdt.NodeID) bool {
	_, kept := r.forGood[id]
	return kept
}

// goneAtOnce is of how many nodes, each in one room, something is looked up in one step, and goneRoomsAtOnce in how many rooms at
// most: the loop waits for it.
const (
	goneAtOnce      = 1000
	goneRoomsAtOnce = 100
)

// forgetGone notes what is to be done about nodes that are gone, step by step, unless some of that is left from before.
// Settled is what is on the disks of all nodes that exist.
func (c *Core) forgetGone(settled crdt.LWWDigest) {
	before := c.lookBack(settled)
	if c.leave.on || !c.open.Load() || len(c.forgetting.steps) > 0 {
		return
	}
	g := &goneNodes{core: c, settled: settled, before: before, exist: slices.SortedFunc(maps.Keys(c.existing()), compareNodes), own: forgot{
		rounds: c.facts.forgot[c.self.Node].rounds, steps: maps.Clone(c.facts.forgot[c.self.Node].steps),
	}}
	if g.own.steps == nil {
		g.own.steps = map[crdt.NodeID]byte{}
	}
	g.ids = g.allGone()
	rooms, n := g.rooms(), max(1, len(g.ids))
	ripe, named := map[crdt.NodeID]bool{}, map[crdt.NodeID]bool{}
	inAll(g, rooms, g.ripeIn, func(id crdt.NodeID) { ripe[id] = g.ripe(id) })
	inAll(g, rooms, func(r *Room) func(crdt.NodeID) bool {
		return func(id crdt.NodeID) bool { return ripe[id] && r.closeAccount(id) }
	}, func(id crdt.NodeID) { g.own.steps[id] = max(g.own.steps[id], stepClosed) })
	g.chunks(len(rooms), 20*goneAtOnce/n/n, func(i int, now time.Time) { // who may be kept hangs on all others
		g.keepForGood(rooms[i], now)
		g.mint(rooms[i], now)
	})
	inAll(g, rooms, g.foldIn, func(id crdt.NodeID) { g.own.steps[id] = stepFolded })
	g.chunks(len(rooms), goneRoomsAtOnce, func(i int, now time.Time) { g.tell(rooms[i], now) })
	g.chunks(len(rooms), goneAtOnce/n, func(i int, now time.Time) { g.unname(rooms[i], named, now) })
	g.then(func(now time.Time) { g.tellSteps(named, now) })
	if g.exist[0] == c.self.Node {
		g.forgetAll()
	}
}

// then has something done in a step of its own.
func (g *goneNodes) then(do func(now time.Time)) {
	f := &g.core.forgetting
	f.steps = append(f.steps, do)
}

// chunks has something done for each of n numbers, for so many in each step.
func (g *goneNodes) chunks(n, each int, do func(i int, now time.Time)) {
	each = min(max(1, each), goneRoomsAtOnce)
	for from := 0; from < n; from += each {
		g.then(func(now time.Time) {
			for i := from; i < min(n, from+each); i++ {
				do(i, now)
			}
		})
	}
}

// inAll has something looked up of all nodes that are gone in some rooms, and then has something done about those of which it is
// so in all rooms.
func inAll[R any](g *goneNodes, rooms []R, in func(R) func(crdt.NodeID) bool, do func(crdt.NodeID)) {
	not := map[crdt.NodeID]bool{}
	g.chunks(len(rooms), goneAtOnce/max(1, len(g.ids)), func(i int, _ time.Time) {
		is := in(rooms[i])
		for _, id := range g.ids {
			not[id] = !is(id) || not[id]
		}
	})
	g.then(func(time.Time) {
		for _, id := range g.ids {
			if !not[id] {
				do(id)
			}
		}
	})
}

// stepGone takes one of these steps, and reports whether there was one.
func (c *Core) stepGone(now time.Time) bool {
	f := &c.forgetting
	if c.leave.on {
		f.steps = nil // it is others who forget this node now
	}
	if len(f.steps) == 0 {
		return false
	}
	do := f.steps[0]
	if f.steps[0], f.steps = nil, f.steps[1:]; len(f.steps) == 0 {
		f.steps = nil // else it keeps all that this look was about
	}
	do(now)
	return true
}

// anyGone reports whether there is something to forget of any node.
func (c *Core) anyGone() bool {
	return len(c.facts.left)+len(c.facts.dead) > 0 || len(c.facts.forgot[c.self.Node].steps) > 0
}

// goneNodes is one look at all nodes that are gone.
type goneNodes struct {
	core    *Core
	settled crdt.LWWDigest
	before  goneSeen      // what was known at the newest look of which all is on all disks
	exist   []crdt.NodeID // in order
	ids     []crdt.NodeID // that are gone, in order
	own     forgot
}

// goneSeen is what was known at one look.
type goneSeen struct {
	known  crdt.LWWDigest
	forgot map[crdt.NodeID]forgot
	kept   map[crdt.RoomID]map[crdt.NodeID]crdt.NodeID // roomFacts.forGood
}

// goneLooks is how many looks are kept: what was known at one is on all disks, as those have said, two looks later.
const goneLooks = 4

// lookBack notes what is known now, and returns what was at the newest look of which all is settled.
func (c *Core) lookBack(settled crdt.LWWDigest) (before goneSeen) {
	now := goneSeen{c.replica.MapDigest(), maps.Clone(c.facts.forgot), map[crdt.RoomID]map[crdt.NodeID]crdt.NodeID{}}
	for id, r := range c.facts.rooms {
		if len(r.forGood) > 0 {
			now.kept[id] = r.forGood
		}
	}
	f := &c.forgetting
	for _, then := range f.gone {
		open := false
		for writer, n := range then.known {
			open = open || settled[writer] < n && now.known[writer] > 0
		}
		if !open {
			before = then
		}
	}
	if f.gone = append(f.gone, now); len(f.gone) > goneLooks {
		f.gone = f.gone[1:]
	}
	return before
}

// allGone returns, in order, the nodes that are gone and of which something is known.
func (g *goneNodes) allGone() []crdt.NodeID {
	all := maps.Clone(g.core.facts.left)
	maps.Copy(all, g.core.facts.dead)
	delete(all, g.core.self.Node)
	return slices.SortedFunc(maps.Keys(all), compareNodes)
}

// holds reports whether a fact is on all disks as it is known here; one that there is not is.
func (g *goneNodes) holds(key string) bool {
	at, told := g.core.replica.TellerOf(key)
	return !told || g.settled.Holds(at)
}

// rooms returns the rooms in which rights are kept.
func (g *goneNodes) rooms() (all []*Room) {
	for _, r := range g.core.order {
		if r.hasRights() && !g.core.facts.room(r.id).retired {
			all = append(all, r)
		}
	}
	return all
}

// ripe reports whether all nodes know, for good, that a node is gone: it has said itself that it has left, or was declared dead.
// Who has its rights they know as well where ripeIn says so of all rooms.
func (g *goneNodes) ripe(id crdt.NodeID) bool {
	_, dead := g.core.facts.dead[id]
	return dead || g.core.facts.hasLeft(id) && g.holds(nodeKey(factOver, id)) && g.holds(nodeKey(factLeft, id))
}

func (g *goneNodes) ripeIn(r *Room) func(crdt.NodeID) bool {
	c := g.core
	f := c.facts.room(r.id)
	busy := len(c.facts.unrecovered(f)) > 0
	return func(id crdt.NodeID) bool {
		_, dead := c.facts.dead[id]
		_, again := f.again[id]
		_, final := f.finals[id]
		switch {
		case busy, again && !g.holds(roomNodeKey(factRecovered, r.id, id)), final && !g.holds(roomNodeKey(factFinal, r.id, id)):
			return false
		default:
			return again || final || !dead && !f.kept.has(id)
		}
	}
}

// closeAccount closes this node's account with one of which all know that it is gone, and reports whether that is closed, and confirmed,
// or there is none.
func (r *Room) closeAccount(id crdt.NodeID) (closed bool) {
	f := r.core.facts.room(r.id)
	_, again := f.again[id]
	final, left := f.finals[id]
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.rights.NeverDealt(id):
		return true
	case again:
		closed = r.rights.CloseDead(id)
	case left:
		closed = r.rights.CloseAccount(final)
	}
	if !closed {
		r.core.storing.touch(r)
	}
	return closed
}

// keepForGood has this node keep the rights for good of those of whom it has them, once all others have closed their accounts.
func (g *goneNodes) keepForGood(r *Room, now time.Time) {
	c, f := g.core, g.core.facts.room(r.id)
	var may []crdt.NodeID
	for _, id := range g.ids {
		if !f.keptForGood(id) && c.facts.keepsNow(f, id) == c.self.Node && g.all(id, stepClosed) {
			may = append(may, id)
		}
	}
	if len(may) == 0 || !r.hasRights() || f.retired || len(c.facts.unrecovered(f)) > 0 {
		return
	}
	there := func(id crdt.NodeID) bool {
		_, exists := slices.BinarySearchFunc(g.exist, id, compareNodes)
		return exists
	}
	r.mu.Lock()
	may = slices.DeleteFunc(may, func(id crdt.NodeID) bool { return r.rights.Anchors(id) && !g.longAgo(r.id, id, now) })
	for _, id := range r.rights.MayKeep(may, f.keptForGood, there, f.finals) {
		r.rights.Fold(id)
	}
	r.mu.Unlock()
	c.storing.touch(r)
}

// longAgo reports whether a node is gone from a room for longer than any session lasts. Whoever still comes by a ticket of it, since they
// never stopped, goes on with a ticket of another node when it is forgotten, as where an anchor is out of reach.
func (g *goneNodes) longAgo(room crdt.RoomID, id crdt.NodeID, now time.Time) bool {
	key := roomNodeKey(factFinal, room, id)
	if _, recovered := g.core.facts.room(room).again[id]; recovered {
		key = roomNodeKey(factRecovered, room, id)
	}
	_, at, told := g.core.replica.Get(key)
	return told && now.Sub(time.UnixMilli(at.Wall)) > maxSession+time.Hour
}

// mint has this node be named as the one that mints in a room, where one is that others forget.
func (g *goneNodes) mint(r *Room, now time.Time) {
	c, f := g.core, g.core.facts.room(r.id)
	if f.keptForGood(f.minter) && c.facts.mints(f) == c.self.Node && (r.id != c.mesh.room || c.foundsNow(now)) {
		c.setFact(roomKey(factMinter, r.id), c.self.Node[:], now)
	}
}

// keepsNow returns who has the rights of a node that is gone, by a way on which nobody is lost and not recovered.
func (f *facts) keepsNow(r *roomFacts, id crdt.NodeID) crdt.NodeID {
	for range f.hops(r) {
		if x, again := r.again[id]; again {
			id = x.by
		} else if next, left := f.leftTo(r, id); left {
			id = next
		} else {
			break
		}
	}
	if f.gone(id) {
		return crdt.NodeID{}
	}
	return id
}

// all reports whether all nodes that exist have taken a step about one that is gone, and that is on all disks.
func (g *goneNodes) all(id crdt.NodeID, step byte) bool {
	return !slices.ContainsFunc(g.exist, func(o crdt.NodeID) bool { return g.before.forgot[o].steps[id] < step })
}

// foldIn folds this node's accounts in a room with those that are gone, once all know who has their rights for good, and reports whether
// one is folded, or there is none.
func (g *goneNodes) foldIn(r *Room) func(crdt.NodeID) bool {
	c := g.core
	f := c.facts.room(r.id)
	return func(id crdt.NodeID) bool {
		if g.own.steps[id] != stepClosed {
			return false
		}
		_, again := f.again[id]
		if _, left := f.finals[id]; !again && !left {
			return true
		}
		if _, kept := g.before.kept[r.id][id]; !kept {
			return false
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.rights.Folded(id) || r.rights.NeverDealt(id) {
			return true
		}
		if !again || r.rights.CloseDead(id) { // it may have been closed before somebody recovered it
			r.rights.Fold(id)
		}
		c.storing.touch(r)
		return false
	}
}

// tell has all know what this node's closed accounts say.
func (g *goneNodes) tell(r *Room, now time.Time) {
	if !r.hasRights() {
		return
	}
	r.mu.Lock()
	is := r.rights.Closings()
	r.mu.Unlock()
	key := roomNodeKey(factClosed, r.id, g.core.self.Node)
	if _, _, told := g.core.replica.Get(key); told || !is.IsZero() {
		g.core.setFact(key, withCode(g.core.start.key, key, ticket.AppendClosings(nil, is)), now)
	}
}
