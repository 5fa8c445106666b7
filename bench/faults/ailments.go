//go:build linux

package faults

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/udp"
	"github.com/ropeline/ropeline/node"
)

// kinds are the kinds of faults of a mixture, as they are told.
var kinds = []string{"kill", "stop", "clock", "cut", "bend", "full disk", "bad store", "lost disk", "copied disk", "disk of before", "leave", "origin"}

// mixture is what is known of a mesh that has all faults.
type mixture struct {
	run    *run
	deck   []ailment // still to be drawn
	count  map[string]int
	sick   map[*rig.Node]bool     // who has a fault now
	always map[*rig.Node][]string // flags of every start
	spare  *rig.Node              // runs on copies of others' data
	ids    map[*rig.Node]string   // who each of them was when all were well
	dead   map[*rig.Node]string   // who each of them was before, and is to be declared dead
}

func newMixture(r *run) (*mixture, error) {
	m := &mixture{run: r, count: map[string]int{}, sick: map[*rig.Node]bool{}, always: map[*rig.Node][]string{}, ids: map[*rig.Node]string{}, dead: map[*rig.Node]string{}}
	for name, args := range r.Node {
		m.always[r.mesh.Node(name)] = args
	}
	var err error
	m.spare, err = r.mesh.Add("a9")
	return m, err
}

func (m *mixture) ailments() []ailment {
	list := []ailment{
		{6, false, func(*run) (illness, error) {
			return m.ail("kill", "is killed", (*rig.Node).Kill, m.start)
		}},
		{4, false, func(*run) (illness, error) {
			return m.ail("stop", "is stopped", (*rig.Node).Pause, (*rig.Node).Resume)
		}},
		{2, false, m.shiftClock},
		{2, false, m.cut},
		{2, false, m.bend},
		{2, false, m.spoilOrigin},
		{1, false, m.loseData},
		{1, true, m.copyData},
		{1, true, m.bringBack},
		{1, false, func(*run) (illness, error) {
			return m.ail("leave", "leaves for good", func(n *rig.Node) error { return n.Stop(40 * time.Second) }, m.start)
		}},
	}
	if m.run.Disk > 0 {
		list = append(list, ailment{1, false, func(*run) (illness, error) {
			return m.ail("full disk", "has a full disk", func(n *rig.Node) error { return n.Disk.Fill() }, func(n *rig.Node) error { return n.Disk.Free() })
		}})
	}
	if m.run.strict() { // only this policy writes anything that a ticket waits for
		for _, how := range []string{"slow=100ms", "fail@50", "fail@500"} {
			list = append(list, ailment{1, false, func(*run) (illness, error) {
				return m.ail("bad store", "restarts with a store that is "+how, m.reborn("--fault-store="+how), m.reborn())
			}})
		}
	}
	return list
}

// start starts a node with the flags that it always has.
func (m *mixture) start(n *rig.Node) error { return m.startWith(n) }

// startWith starts a node that has ended with more flags than it always has.
func (m *mixture) startWith(n *rig.Node, args ...string) (err error) {
	n.Args = append(slices.Clone(m.always[n]), args...)
	for range 3 {
		// One that could not leave goes on with that first, and ends.
		if err = m.run.restart(n); err == nil || n.Running() || n.Code() != 0 {
			break
		}
	}
	return err
}

// reborn restarts a node with other flags than before.
func (m *mixture) reborn(args ...string) func(*rig.Node) error {
	return func(n *rig.Node) error { return errors.Join(n.Kill(), m.startWith(n, args...)) }
}

// renew starts a node that has lost what it knew: a new one, which has the others
// share out what the old one had.
func (m *mixture) renew(n *rig.Node, old string) error {
	m.dead[n] = old
	return errors.Join(n.Kill(), n.Wipe(), m.startWith(n, "--declare-dead="+old))
}

// recover waits until the mesh is whole again.
func (m *mixture) recover() error {
	r := m.run
	for _, name := range r.Nodes {
		if n := r.mesh.Node(name); !n.Running() {
			if err := m.startOrRenew(n, m.ids[n]); err != nil {
				return err
			}
		}
	}
	if err := r.mesh.Await(r.ctx, time.Minute); err != nil {
		return err
	}
	for _, name := range r.Nodes {
		if s, err := r.mesh.Node(name).Status(r.ctx); err == nil {
			m.ids[r.mesh.Node(name)] = s.Node
		}
	}
	for n, old := range m.dead {
		if err := m.seeDeclared(n, old); err != nil {
			return err
		}
		delete(m.dead, n)
	}
	return nil
}

// seeDeclared waits until a node has declared another one dead. It says so once, and
// has to be told again if others were out of reach.
func (m *mixture) seeDeclared(n *rig.Node, old string) error {
	for tries := 1; ; tries++ {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
			text := n.Log()
			if strings.Contains(text, "declared dead: its rights") {
				return nil
			}
			if strings.Contains(text, "not declared dead") {
				break
			}
			if err := m.run.sleep(100 * time.Millisecond); err != nil {
				return err
			}
		}
		if tries == 3 {
			return fmt.Errorf("%s does not declare %s dead; it said last:\n%s", n.Name, old, n.Tail(4))
		}
		if err := m.reborn("--declare-dead=" + old)(n); err != nil {
			return err
		}
	}
}

func (m *mixture) shiftClock(r *run) (illness, error) {
	skew := r.between(-maxSkew, maxSkew).Round(time.Millisecond)
	if r.rng.IntN(2) == 0 {
		skew = []time.Duration{-maxSkew, maxSkew}[r.rng.IntN(2)]
	}
	return m.ail("clock", "restarts with a clock that is off by "+skew.String(), func(n *rig.Node) error {
		m.always[n] = soakArgs(skew)
		return m.reborn()(n)
	}, func(*rig.Node) error { return nil })
}

func (m *mixture) cut(r *run) (illness, error) {
	var err error
	i, n := r.rng.IntN(len(r.Nodes)), len(r.Nodes)
	a, b := r.Nodes[i], r.Nodes[(i+1+r.rng.IntN(n-1))%n]
	switch r.rng.IntN(3) {
	case 0:
		r.mark("the sites are cut apart")
		err = r.mesh.Net.CutSites("a", "b")
	case 1:
		r.mark("%s is cut off", a)
		err = r.mesh.Net.CutNode(a)
	default:
		r.mark("nothing that %s sends reaches %s", a, b)
		err = r.mesh.Net.CutOneWay(a, b)
	}
	return illness{"cut", r.mesh.Net.Heal, true}, err
}

func (m *mixture) bend(r *run) (illness, error) {
	l := udp.Link{
		Delay: r.between(0, 100*time.Millisecond), Jitter: r.between(0, 20*time.Millisecond), Loss: 0.1 * r.rng.Float64(),
		Duplicate: 0.05, Reorder: 0.05, Late: 100 * time.Millisecond,
	}
	r.mark("links take %v and lose %.1f %%", l.Delay.Round(time.Millisecond), 100*l.Loss)
	return illness{"bend", r.mesh.Net.Heal, true}, r.mesh.Net.Shape(l)
}

// spoilOrigin has the site behind the mesh misbehave, for as many of the visitors as
// the machine can hold the connections and carry the bytes of.
func (m *mixture) spoilOrigin(r *run) (illness, error) {
	switch r.rng.IntN(3) {
	case 0:
		r.mark("the origin answers with 500")
		r.origin.be(fails, 1)
	case 1:
		r.mark("the origin hangs, for one of 50 visitors")
		r.origin.be(hangs, 50)
	default:
		r.mark("the origin is slow, for one of 500 visitors")
		r.origin.be(slow, 500)
	}
	return illness{"origin", func() error { r.origin.be(well, 1); return nil }, true}, nil
}

// ailAs is ail for faults after which nobody may go by the id that the node has now.
func (m *mixture) ailAs(kind, what string, hurt func(*rig.Node) error, cure func(n *rig.Node, id string) error) (illness, error) {
	id := ""
	return m.ail(kind, what, func(n *rig.Node) error {
		s, err := n.Status(m.run.ctx)
		if err != nil {
			return err
		}
		id = s.Node
		return hurt(n)
	}, func(n *rig.Node) error { return cure(n, id) })
}

// loseData has a node lose its data directory.
func (m *mixture) loseData(*run) (illness, error) {
	return m.ailAs("lost disk", "is killed, and its data directory lost",
		func(n *rig.Node) error { return errors.Join(n.Kill(), n.Wipe()) }, m.renew)
}

// copyData has two processes run on the data of a node. One of them stops by itself;
// where that is the original, its data is given up.
func (m *mixture) copyData(r *run) (illness, error) {
	if m.spare.Running() {
		return illness{}, nil
	}
	return m.ailAs("copied disk", "has a twin, on a copy of its data directory", func(n *rig.Node) error {
		m.spare.Args = m.always[n]
		if err := copyOf(n, m.spare.Data); err != nil {
			return err
		}
		return m.spare.Start()
	}, func(n *rig.Node, id string) error {
		for began := time.Now(); goesOn(n) && goesOn(m.spare); {
			if time.Since(began) > twinsWithin {
				return fmt.Errorf("%s and its twin both go on for %v", n.Name, twinsWithin)
			}
			if err := r.sleep(20 * time.Millisecond); err != nil {
				return err
			}
		}
		if err := m.spare.Kill(); err != nil || goesOn(n) {
			return err
		}
		return m.renew(n, id) // nobody knows what the twin has done in its name
	})
}

// goesOn reports whether a node has not begun to end. One that does lets requests
// under way end, of which an origin that hangs may hold some for long, and gives no
// ticket any more.
func goesOn(n *rig.Node) bool {
	return n.Running() && !strings.Contains(n.Log(), "stopping: requests under way")
}

// twinsWithin is how long two processes may go on with one identity.
const twinsWithin = 10 * time.Second

// bringBack has a node start from an older copy of its data directory, of the same start
// or of one before. Those who have got rights of it since know that it is older; if nobody
// has, it may go on.
func (m *mixture) bringBack(r *run) (illness, error) {
	return m.ailAs("disk of before", "is killed, and starts from an older copy of its data directory", func(n *rig.Node) error {
		old := r.scratch(n.Name + "-before")
		if err := copyOf(n, old); err != nil {
			return err
		}
		for range r.rng.IntN(3) {
			if err := errors.Join(n.Kill(), m.start(n)); err != nil {
				return err
			}
		}
		if err := r.sleep(r.between(time.Second, 6*time.Second)); err != nil {
			return err
		}
		return errors.Join(n.Kill(), n.Wipe(), os.CopyFS(n.Data, os.DirFS(old)), n.Start())
	}, func(n *rig.Node, id string) error {
		err := n.Await(r.ctx, 20*time.Second, "is ready, or ends", func(s node.Status) bool { return s.Ready })
		if n.Running() && err == nil {
			err = r.sleep(time.Second)
		}
		if n.Running() || r.ctx.Err() != nil {
			return err
		}
		return m.renew(n, id)
	})
}

// startOrRenew starts a node whose data may be older than what others know of it.
func (m *mixture) startOrRenew(n *rig.Node, id string) error {
	err := m.start(n)
	if err != nil && !n.Running() && strings.Contains(n.Log(), "copied or rolled back") {
		return m.renew(n, id)
	}
	return err
}

// copyOf copies the data directory of a node that runs to a new one.
func copyOf(n *rig.Node, to string) (err error) {
	for range 5 { // a file that is being replaced may be gone when its turn comes
		if err = os.RemoveAll(to); err != nil {
			return err
		}
		if err = n.Copy(to); err == nil {
			return nil
		}
	}
	return err
}
