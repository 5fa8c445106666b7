package node

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// What this node knows of nodes that came, or may own rights, and do not run: for operators, who start
// them again or declare them dead. Nothing is decided by it. What such a node owns is known
// exactly from what all others have dealt with it, so every node tells its part.

const (
	downEvery = 2 * time.Second

	// downAfter is how long a node that has started waits until it takes for down whom it has
	// not met.
	downAfter = 5 * time.Second
)

// Down is what one node knows of a node that does not run, or whose rights are being recovered.
type Down struct {
	Node     crdt.NodeID
	Name     string // "": nobody has told it
	Site     string
	Since    time.Time // its last sign of life, or when it was missed
	Declared bool      // dead, by an operator
	Rooms    []DownRoom
}

// DownRoom is what it knows of it in one room.
type DownRoom struct {
	Room crdt.RoomID
	Name string

	Minted ticket.Amount // by all nodes
	Papers ticket.Amount // minted by it, and dealt with nodes that are gone for good
	Dealt  ticket.Amount // with this node: given to it less received from it

	Held      ticket.Amount // as its last row said
	HeldKnown bool
	Sessions  int64 // of its own that are still counted as active

	WaitsFor []crdt.NodeID // whose word is missing, before anybody can recover its rights
	By       crdt.NodeID   // who has recovered its rights; zero: nobody
	Locked   ticket.Amount // of those, what this node has and cannot use yet
	Until    time.Time     // when it can; zero: this node does not have them
	LockSpan time.Duration // for how long they are locked once they are recovered
}

// downs is what the loop keeps of nodes that are down. The zero value is ready.
type downs struct {
	looked time.Time     // when the last round began
	next   []crdt.NodeID // those of the round that are not looked at yet
	found  []Down        // the others, as far as they matter
	known  map[crdt.NodeID]*downNode

	reading uint64 // of the facts that behind is of
	behind  map[crdt.NodeID]bool
}

type downNode struct {
	since     time.Time
	held      map[crdt.RoomID]ticket.Amount // by the last row, which is forgotten before the node is back
	recovered time.Time                     // when it was noticed that all its rights are recovered
}

// Down returns what this node knows of nodes that do not run. Any goroutine may call it; what
// it returns is shared and not to be changed.
func (n *Node) Down() []Down {
	if all := n.core.shownDown.Load(); all != nil {
		return *all
	}
	return nil
}

// downRooms is at how many rooms of nodes that are down a tick looks, but at one node at least.
const downRooms = 1000

// noteDown looks who is down, now and then, and has this node's name be known.
func (c *Core) noteDown(now time.Time) {
	if !c.open.Load() {
		return
	}
	if len(c.downs.next) > 0 {
		c.lookAtDown(downRooms, now)
		return
	}
	if now.Sub(c.downs.looked) < downEvery && !now.Before(c.downs.looked) {
		return
	}
	_, rights := c.facts.sites[c.self.Node]
	if c.name != "" && rights && c.facts.names[c.self.Node] != c.name {
		c.setFact(nodeKey(factName, c.self.Node), []byte(c.name), now)
	}
	c.beginDown(now)
	c.lookAtDown(downRooms, now)
}

// lookForDown notes who is down now.
func (c *Core) lookForDown(now time.Time) {
	c.beginDown(now)
	c.lookAtDown(math.MaxInt, now)
}

// beginDown begins a round of looking at nodes that are down.
func (c *Core) beginDown(now time.Time) {
	met := now.Sub(c.openedAt) >= downAfter
	d := &c.downs
	d.looked, d.found = now, []Down{}
	d.next = slices.DeleteFunc(c.missing(), func(id crdt.NodeID) bool {
		_, declared := c.facts.dead[id]
		return !met && !declared
	})
}

// lookAtDown looks at the next nodes of the round, and shows what was found with the last of them.
func (c *Core) lookAtDown(rooms int, now time.Time) {
	d := &c.downs
	for ; len(d.next) > 0 && rooms > 0; rooms -= len(c.order) {
		id := d.next[0]
		d.next = d.next[1:]
		if _, back := c.peers.Find(id); back {
			continue
		}
		if is, ok := c.downNode(id, now); ok {
			d.found = append(d.found, is)
		}
	}
	if len(d.next) == 0 {
		found := d.found
		c.shownDown.Store(&found)
		d.next, d.found = nil, nil
	}
}

// missing returns, in order, the nodes that came, or may own rights, and are no members: those that have not
// left, those that have and left a room behind, and those that were declared dead, who may not have left all rooms.
func (c *Core) missing() (all []crdt.NodeID) {
	behind := c.leftBehind()
	for id := range c.facts.met() {
		_, left := c.facts.left[id]
		_, dead := c.facts.dead[id]
		if _, member := c.peers.Find(id); (!left || dead || behind[id]) && !member && id != c.self.Node {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, compareNodes)
	for id := range c.downs.known {
		if _, still := slices.BinarySearchFunc(all, id, compareNodes); !still {
			delete(c.downs.known, id)
		}
	}
	return all
}

// leftBehind returns the nodes that have left, and left a room behind. It looks through all rooms only when something
// else is known.
func (c *Core) leftBehind() map[crdt.NodeID]bool {
	d := &c.downs
	if d.reading == c.facts.reading {
		return d.behind
	}
	d.reading, d.behind = c.facts.reading, map[crdt.NodeID]bool{}
	for id := range c.facts.left {
		if c.facts.leftBehind(id) {
			d.behind[id] = true
		}
	}
	return d.behind
}

// downNode returns what is known of one that is missing; false if others have what it had.
func (c *Core) downNode(id crdt.NodeID, now time.Time) (d Down, matters bool) {
	k := c.downs.known[id]
	if k == nil {
		k = &downNode{since: now, held: map[crdt.RoomID]ticket.Amount{}}
		if last, ok := c.replica.LastStart(id); ok {
			k.since = c.replica.LastChange(last)
		}
		if c.downs.known == nil {
			c.downs.known = map[crdt.NodeID]*downNode{}
		}
		c.downs.known[id] = k
	}
	_, declared := c.facts.dead[id]
	d = Down{Node: id, Name: c.facts.names[id], Site: cmp.Or(c.facts.sites[id], c.facts.came[id]), Since: k.since, Declared: declared}
	open, span := false, time.Duration(0)
	for _, r := range c.order {
		f := c.facts.room(r.id)
		if !r.hasRights() || f.retired {
			continue
		}
		of := r.downRoom(id, k, f, now)
		if open = open || of.By == (crdt.NodeID{}); of.By != (crdt.NodeID{}) {
			span = max(span, of.LockSpan)
		}
		if !of.nothing() {
			d.Rooms = append(d.Rooms, of)
		}
	}
	if open {
		k.recovered = time.Time{}
		return d, true
	}
	// All is recovered. For as long as it may be locked it is of interest to the others, too.
	if k.recovered.IsZero() {
		k.recovered = now
	}
	return d, now.Sub(k.recovered) < span+2*downEvery
}

// ErrNotDead says that nobody has declared a node dead.
var ErrNotDead = errors.New("nobody has declared this node dead")

// allRecovered reports whether other nodes have all rights that a dead node had.
func (c *Core) allRecovered(id crdt.NodeID) (bool, error) {
	if _, declared := c.facts.dead[id]; !declared {
		return false, fmt.Errorf("node %s: %w", id, ErrNotDead)
	}
	for _, r := range c.order {
		f := c.facts.room(r.id)
		if r.hasRights() && !f.retired && slices.Contains(c.facts.unrecovered(f), id) {
			return false, nil
		}
	}
	return true, nil
}

// nothing reports whether a node has never dealt with rights of a room, as far as this one knows.
func (d *DownRoom) nothing() bool {
	return d.Papers.IsZero() && d.Dealt.IsZero() && d.Held.IsZero() && d.Sessions == 0 && d.Until.IsZero()
}

func (r *Room) downRoom(id crdt.NodeID, k *downNode, f *roomFacts, now time.Time) DownRoom {
	c := r.core
	of := DownRoom{Room: r.id, Name: r.Settings().Name, Papers: c.papers(f, id)}
	for _, minted := range f.mintedByEach() {
		of.Minted = of.Minted.Add(minted)
	}
	if last, ok := c.replica.LastStart(id); ok {
		held, rate := c.replica.LastHeld(last, r.id)
		k.held[r.id] = ticket.Amount{Places: held, Rate: rate}
		of.Sessions = c.replica.ActiveOf(last, r.id, now)
	}
	of.Held, of.HeldKnown = k.held[r.id]
	if x, ok := f.again[id]; ok {
		of.By = c.facts.keeper(f, x.by)
	} else if _, left := c.facts.leftTo(f, id); left {
		of.By = c.facts.keeper(f, id)
	}
	if _, lost := c.facts.dead[of.By]; lost {
		of.By = crdt.NodeID{} // and is not recovered
	}
	session := r.longestSession(f, []crdt.NodeID{id})
	r.mu.Lock()
	if r.rights != nil {
		of.Dealt = r.rights.DealtWith(id)
		of.LockSpan = r.rights.LockSpan(session, now)
		for _, x := range r.rights.Locked(now) {
			if x.Dead == id {
				of.By, of.Locked, of.Until = c.self.Node, x.Rights, x.Until
			}
		}
	}
	r.mu.Unlock()
	if _, declared := c.facts.dead[id]; declared && of.By == (crdt.NodeID{}) {
		of.WaitsFor = c.silentOn(f, id)
	}
	return of
}

// papers returns what is written of a node's rights in a room by nodes that are gone for good.
func (c *Core) papers(f *roomFacts, id crdt.NodeID) ticket.Amount {
	in := ticket.Estate{Dead: []crdt.NodeID{id}, Minted: []ticket.Amount{f.mintedBy(id)}, Closings: map[crdt.NodeID]ticket.Closings{id: f.closingsOf(id)}}
	for _, w := range f.words {
		if c.facts.gone(w.Node) {
			in.Words = append(in.Words, w)
		}
	}
	for _, other := range f.leavers {
		in.Finals = append(in.Finals, f.finals[other])
	}
	return in.Rights()
}

// silentOn returns whose word on a dead node is missing in a room.
func (c *Core) silentOn(f *roomFacts, dead crdt.NodeID) (all []crdt.NodeID) {
	for _, id := range c.facts.speakers(f) {
		if !slices.ContainsFunc(f.words, func(w ticket.Word) bool { return w.Dead == dead && w.Node == id }) {
			all = append(all, id)
		}
	}
	return all
}
