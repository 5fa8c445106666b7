package footprint

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/virtual"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// plenty is a limit that nobody meets.
const plenty = 1 << 28

// oneRoom returns a room with the default settings and given limits.
func oneRoom(total int) room.Settings {
	return room.Settings{ID: crdt.RoomID{7}, Name: "room", Path: "/", TotalActiveUsers: total, NewUsersPerMinute: plenty}.WithDefaults()
}

// perStep is how many visitors come within one tick: 100,000 a second.
const perStep = 5000

// crowd is visitors of the one room of a mesh, and where they are anchored.
type crowd struct {
	m       *virtual.Mesh
	waiting []node.Pass
	inside  []node.Pass
	anchors map[crdt.NodeID]int
}

func newCrowd(m *virtual.Mesh) *crowd { return &crowd{m: m, anchors: map[crdt.NodeID]int{}} }

// come has visitors ask a node, each of whom has to be let in, or to wait.
func (c *crowd) come(at *virtual.Node, passes []node.Pass, known bool) {
	for some := range slices.Chunk(passes, perStep) {
		c.ask(at, some, known)
	}
	c.m.Run(10 * time.Second) // until nothing is on its way, and was swept
}

// ask has visitors ask a node within one tick.
func (c *crowd) ask(at *virtual.Node, passes []node.Pass, known bool) {
	answers := 0
	done := func(v node.Verdict) {
		answers++
		if v.Admit {
			c.anchors[v.Pass.Ticket.Anchor]++
			c.inside = append(c.inside, v.Pass)
		} else {
			c.waiting = append(c.waiting, v.Pass)
		}
	}
	r := at.Core.Route("any", "/")
	for _, p := range passes {
		if v, ok := r.Begin(p, known, c.m.Now, done); ok {
			done(v)
		}
	}
	c.m.Flush(at)
	for range 40 { // two seconds: longer than anybody is kept
		if c.m.Run(virtual.Tick); answers == len(passes) {
			return
		}
	}
	rig.Must(fmt.Errorf("%d of %d visitors have an answer", answers, len(passes)))
}

// shares is how many bytes one visitor takes at each node of a mesh.
type shares struct {
	anchor    float64 // where the visitor asked, and has the lease
	mate, far float64 // in the same site, and in another one
}

// perActive returns the bytes of a visitor who was let in at once: the difference between
// two meshes of three nodes in two sites, one with few of them and one with many.
func perActive(few, many int) shares {
	less, more := inside(few, false), inside(many, false)
	of := func(i int) float64 { return float64(more[i]-less[i]) / float64(many-few) }
	return shares{anchor: of(0), mate: of(1), far: of(2)}
}

// perRoaming returns the bytes that a visitor takes at a second node of the site that the
// visitor asks as well.
func perRoaming(n int) float64 {
	less := inside(n, false)[1]
	return float64(inside(n, true)[1]-less) / float64(n)
}

// inside returns how much memory each node of a mesh takes with n visitors who were let in
// at the first. If they roam, each has asked the second once after that.
func inside(n int, roam bool) []int64 {
	m := newMesh([]room.Settings{oneRoom(plenty)}, "a", "a", "b")
	at := counter(m)
	c := newCrowd(m)
	c.come(at, make([]node.Pass, n), false)
	if got := c.anchors[at.ID]; got != n {
		rig.Must(fmt.Errorf("%d of %d visitors have their lease where they asked", got, n))
	}
	if roam {
		c.come(m.Nodes[1], c.inside, true)
	}
	m.Run(10 * time.Second)
	return weigh(m)
}

// counter returns the node of the first site that hands out tickets, as the first of the
// mesh from then on.
func counter(m *virtual.Mesh) *virtual.Node {
	for i, at := range m.Nodes[:2] {
		c := newCrowd(m)
		c.come(at, make([]node.Pass, 1), false)
		if c.anchors[at.ID] == 1 {
			m.Nodes[0], m.Nodes[i] = m.Nodes[i], m.Nodes[0]
			return at
		}
	}
	rig.Must(errors.New("no node of the first site has handed out a ticket of its own"))
	return nil
}

// perWaiting returns the bytes of a visitor who waits, and those of one who was let in
// after that, at a single node that is all to them: where they ask, their owner and their
// anchor. Both are the difference between a node with few and one with many of them.
func perWaiting(few, many int) (waiting, waited float64) {
	return perOne(few, many, func(n int) int64 { return waiters(n, false) }), perOne(few, many, func(n int) int64 { return waiters(n, true) })
}

// waiters returns how much memory a node takes with n visitors who wait, or were let in
// after that.
func waiters(n int, in bool) int64 {
	s := oneRoom(1)
	s.RefreshInterval = time.Minute
	m := newMesh([]room.Settings{s}, "a")
	c := newCrowd(m)
	c.come(m.Nodes[0], make([]node.Pass, n+1), false)
	if len(c.waiting) != n {
		rig.Must(fmt.Errorf("%d of %d visitors wait", len(c.waiting), n))
	}
	if in {
		c.letIn(m.Nodes[0])
	}
	return weigh(m)[0]
}

// letIn has everybody who waits let in.
func (c *crowd) letIn(at *virtual.Node) {
	rig.Must(widen(at, c.m.Now))
	for range 10 {
		c.m.Run(50 * time.Second)
		all := c.waiting
		c.waiting = nil
		if c.come(at, all, true); len(c.waiting) == 0 {
			return
		}
	}
	rig.Must(fmt.Errorf("%d visitors still wait", len(c.waiting)))
}

// widen has an operator give the room a limit that nobody meets.
func widen(at *virtual.Node, now time.Time) error {
	return at.Core.Edit(func(all *catalog.Catalog) ([]catalog.Write, error) {
		for r := range all.Rooms() {
			wide := *r
			wide.Settings.TotalActiveUsers = plenty
			return all.Writes(r, &wide), nil
		}
		return nil, errors.New("there is no room")
	}, now)
}
