package footprint

import (
	"fmt"
	"slices"
	"time"

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
func (c *crowd) come(at *virtual.Node, passes []node.Pass, known bool) error {
	for some := range slices.Chunk(passes, perStep) {
		if err := c.ask(at, some, known); err != nil {
			return err
		}
	}
	c.m.Run(10 * time.Second) // until nothing is on its way, and was swept
	return nil
}

// ask has visitors ask a node within one tick.
func (c *crowd) ask(at *virtual.Node, passes []node.Pass, known bool) error {
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
			return nil
		}
	}
	return fmt.Errorf("%d of %d visitors have an answer", answers, len(passes))
}

// shares is how many bytes one visitor takes at each node of a mesh.
type shares struct {
	anchor    float64 // where the visitor asked, and has the lease
	mate, far float64 // in the same site, and in another one
}

// perActive returns the bytes of a visitor who was let in at once: the difference between
// two meshes of three nodes in two sites, one with few of them and one with many.
func perActive(few, many int) (s shares, err error) {
	less, err := inside(few, false)
	if err != nil {
		return s, err
	}
	more, err := inside(many, false)
	if err != nil {
		return s, err
	}
	for i, to := range []*float64{&s.anchor, &s.mate, &s.far} {
		*to = float64(more[i]-less[i]) / float64(many-few)
	}
	return s, nil
}

// perRoaming returns the bytes that a visitor takes at a second node of the site that the
// visitor asks as well.
func perRoaming(n int) (float64, error) {
	less, err := inside(n, false)
	if err != nil {
		return 0, err
	}
	more, err := inside(n, true)
	if err != nil {
		return 0, err
	}
	return float64(more[1]-less[1]) / float64(n), nil
}

// inside returns how much memory each node of a mesh takes with n visitors who were let in
// at the first. If they roam, each has asked the second once after that.
func inside(n int, roam bool) ([]int64, error) {
	m, err := newMesh([]room.Settings{oneRoom(plenty)}, "a", "a", "b")
	if err != nil {
		return nil, err
	}
	at, err := counter(m)
	if err != nil {
		return nil, err
	}
	c := newCrowd(m)
	if err := c.come(at, make([]node.Pass, n), false); err != nil {
		return nil, err
	}
	if got := c.anchors[at.ID]; got != n {
		return nil, fmt.Errorf("%d of %d visitors have their lease where they asked", got, n)
	}
	if roam {
		err = c.come(m.Nodes[1], c.inside, true)
	}
	m.Run(10 * time.Second)
	return weigh(m), err
}

// counter returns the node of the first site that hands out tickets, as the first of the
// mesh from then on.
func counter(m *virtual.Mesh) (*virtual.Node, error) {
	for i, at := range m.Nodes[:2] {
		c := newCrowd(m)
		if err := c.come(at, make([]node.Pass, 1), false); err != nil {
			return nil, err
		}
		if c.anchors[at.ID] == 1 {
			m.Nodes[0], m.Nodes[i] = m.Nodes[i], m.Nodes[0]
			return at, nil
		}
	}
	return nil, fmt.Errorf("no node of the first site has handed out a ticket of its own")
}

// perWaiting returns the bytes of a visitor who waits, and those of one who was let in
// after that, at a single node that is all to them: where they ask, their owner and their
// anchor. Both are the difference between a node with few and one with many of them.
func perWaiting(few, many int) (waiting, waited float64, err error) {
	if waiting, err = perOne(few, many, func(n int) (int64, error) { return waiters(n, false) }); err != nil {
		return 0, 0, err
	}
	waited, err = perOne(few, many, func(n int) (int64, error) { return waiters(n, true) })
	return waiting, waited, err
}

// waiters returns how much memory a node takes with n visitors who wait, or were let in
// after that.
func waiters(n int, in bool) (int64, error) {
	s := oneRoom(1)
	s.RefreshInterval = time.Minute
	m, err := newMesh([]room.Settings{s}, "a")
	if err != nil {
		return 0, err
	}
	c := newCrowd(m)
	if err := c.come(m.Nodes[0], make([]node.Pass, n+1), false); err != nil {
		return 0, err
	}
	if len(c.waiting) != n {
		return 0, fmt.Errorf("%d of %d visitors wait", len(c.waiting), n)
	}
	if in {
		err = c.letIn(m.Nodes[0])
	}
	return weigh(m)[0], err
}

// letIn has everybody who waits let in.
func (c *crowd) letIn(at *virtual.Node) error {
	if err := widen(at, c.m.Now); err != nil {
		return err
	}
	for range 10 {
		c.m.Run(50 * time.Second)
		all := c.waiting
		c.waiting = nil
		if err := c.come(at, all, true); err != nil || len(c.waiting) == 0 {
			return err
		}
	}
	return fmt.Errorf("%d visitors still wait", len(c.waiting))
}

// widen has an operator give the room a limit that nobody meets.
func widen(at *virtual.Node, now time.Time) error {
	return at.Core.Edit(func(all *catalog.Catalog) ([]catalog.Write, error) {
		for r := range all.Rooms() {
			wide := *r
			wide.Settings.TotalActiveUsers = plenty
			return catalog.Writes(r, &wide), nil
		}
		return nil, fmt.Errorf("there is no room")
	}, now)
}
