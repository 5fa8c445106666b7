//go:build linux

package faults

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/udp"
	"github.com/ropeline/ropeline/node"
)

// soakRate is the number of visitors per second, each of whom gets a ticket:
// enough for ten million in an hour, with a twelfth to spare for outages.
const soakRate = 3050

// soakScenario mixes all faults that a mesh on this machine can have.
func soakScenario(d time.Duration) scenario {
	s := scenario{
		Name: "soak", Fault: "all of these, mixed at random", Injected: "one after the other, some at the same time, for " + d.String(),
		Nodes: five, Length: d, Script: soak(d), Settle: 30 * time.Second,
		// The rate rights of a node that has restarted rest for a minute: those of
		// the others have to do.
		Room:  roomArgs{active: 100_000, perMinute: 10_000_000, session: time.Second, once: true},
		Crowd: load.Crowd{Rate: soakRate},
		Node:  map[string][]string{},
	}
	for i, skew := range []time.Duration{maxSkew, -maxSkew / 2, 0, -maxSkew, maxSkew / 2} {
		s.Node[five[i]] = soakArgs(skew)
	}
	if os.Geteuid() == 0 {
		s.Disk = 64 << 20
	}
	return s
}

// maxSkew is how far a clock is off at most: any two then differ by no more than
// the 400 ms that the limit allows.
const maxSkew = 200 * time.Millisecond

// soakArgs are the flags of every start of a node of the mixture. A signal to stop
// is an order to leave: to restart, nodes of a mixture are killed.
func soakArgs(skew time.Duration) []string {
	return []string{"--fault-clock-skew=" + skew.String(), "--on-stop=leave"}
}

// ailment is one kind of fault of the mixture: it comes, lasts, and is over when
// cure has been called.
type ailment struct {
	often int  // how often compared with the others
	alone bool // nothing else is wrong meanwhile
	apply func() illness
}

// illness is a fault that has come. The zero value is none: nobody was well enough
// to get it.
type illness struct {
	kind  string
	cure  func()
	first bool // is cured before others: it may keep these from it
}

// mixture is what is known of a mesh that has all faults.
type mixture struct {
	*run
	deck   []ailment // still to be drawn
	count  map[string]int
	sick   map[*rig.Node]bool     // who has a fault now
	always map[*rig.Node][]string // flags of every start
	spare  *rig.Node              // runs on copies of others' data
	ids    map[*rig.Node]string   // who each of them was when all were well
	dead   map[*rig.Node]string   // who each of them was before, and is to be declared dead
}

func soak(d time.Duration) func(*run) {
	return func(r *run) {
		m := &mixture{run: r, count: map[string]int{}, sick: map[*rig.Node]bool{}, always: map[*rig.Node][]string{}, ids: map[*rig.Node]string{}, dead: map[*rig.Node]string{}}
		for name, args := range r.Node {
			m.always[r.mesh.Node(name)] = args
		}
		m.spare = rig.Got(r.mesh.Add("a9"))
		for end := time.Now().Add(d - warmUp - 2*healed); time.Now().Before(end); {
			m.round()
		}
		var parts []string
		for _, kind := range slices.Sorted(maps.Keys(m.count)) {
			parts = append(parts, fmt.Sprintf("%s ×%d", kind, m.count[kind]))
		}
		r.note("%s", strings.Join(parts, ", "))
		r.sleep(healed)
	}
}

// round has one or two faults come, last, and be over.
func (m *mixture) round() {
	var all []illness
	for range 1 + m.rng.IntN(3)/2 { // two at a time in a third of the cases
		a := m.draw()
		if a.alone && len(all) > 0 {
			m.deck = append(m.deck, a) // in the next round
			break
		}
		i := a.apply()
		if i.cure == nil {
			continue
		}
		m.count[i.kind]++
		if i.first {
			all = slices.Insert(all, 0, i)
		} else {
			all = append(all, i)
		}
		if a.alone {
			break
		}
	}
	m.sleep(m.between(time.Second, 8*time.Second))
	for _, i := range all {
		i.cure()
	}
	m.recover()
	m.sleep(m.between(time.Second, 5*time.Second))
}

// draw returns the next ailment. Each comes as often as it should before any comes
// once more.
func (m *mixture) draw() ailment {
	if len(m.deck) == 0 {
		for _, a := range m.ailments() {
			for range a.often {
				m.deck = append(m.deck, a)
			}
		}
		m.rng.Shuffle(len(m.deck), func(i, j int) { m.deck[i], m.deck[j] = m.deck[j], m.deck[i] })
	}
	a := m.deck[len(m.deck)-1]
	m.deck = m.deck[:len(m.deck)-1]
	return a
}

// victim returns a node that is well, or nil.
func (m *mixture) victim() *rig.Node {
	n := m.mesh.Node(m.Nodes[m.rng.IntN(len(m.Nodes))])
	if c := m.agreed(n.Site); c != nil && m.rng.IntN(2) == 0 {
		n = c // counters have more to lose
	}
	if !n.Running() || m.sick[n] {
		return nil
	}
	return n
}

// recover waits until the mesh is whole again.
func (m *mixture) recover() {
	for _, name := range m.Nodes {
		if n := m.mesh.Node(name); !n.Running() {
			m.startOrRenew(n, m.ids[n])
		}
	}
	rig.Must(m.mesh.Await(m.ctx, time.Minute))
	for _, name := range m.Nodes {
		n := m.mesh.Node(name)
		if s, err := n.Status(m.ctx); err == nil {
			m.ids[n] = s.Node
		}
	}
	for n, old := range m.dead {
		m.seeDeclared(n, old)
		delete(m.dead, n)
	}
}

// seeDeclared waits until a node has declared another one dead. It says so once, and
// has to be told again if others were out of reach.
func (m *mixture) seeDeclared(n *rig.Node, old string) {
	for tries := 1; ; tries++ {
		declared := false
		m.until(20*time.Second, 100*time.Millisecond, func() bool {
			text := n.Log()
			declared = strings.Contains(text, "declared dead: its rights")
			return declared || strings.Contains(text, "not declared dead")
		})
		if declared {
			return
		}
		if tries == 3 {
			rig.Must(fmt.Errorf("%s does not declare %s dead; it said last:\n%s", n.Name, old, n.Tail(4)))
		}
		m.reborn(n, "--declare-dead="+old)
	}
}

func (m *mixture) ailments() []ailment {
	list := []ailment{
		{6, false, func() illness { return m.ail("kill", "is killed", m.kill, m.revive) }},
		{4, false, func() illness {
			return m.ail("stop", "is stopped", func(n *rig.Node) { rig.Must(n.Pause()) }, func(n *rig.Node) { rig.Must(n.Resume()) })
		}},
		{2, false, m.shiftClock},
		{2, false, m.cutOff},
		{2, false, m.bend},
		{2, false, m.spoilOrigin},
		{1, false, m.loseData},
		{1, true, m.copyData},
		{1, true, m.bringBack},
		{1, false, func() illness { return m.ail("leave", "leaves for good", m.stop, m.revive) }},
	}
	if m.Disk > 0 {
		list = append(list, ailment{1, false, func() illness {
			return m.ail("full disk", "has a full disk", func(n *rig.Node) { rig.Must(n.Disk.Fill()) }, func(n *rig.Node) { rig.Must(n.Disk.Free()) })
		}})
	}
	if m.strict() { // only this policy writes anything that a ticket waits for
		for _, how := range []string{"slow=100ms", "fail@50", "fail@500"} {
			list = append(list, ailment{1, false, func() illness {
				return m.ail("bad store", "restarts with a store that is "+how,
					func(n *rig.Node) { m.reborn(n, "--fault-store="+how) }, func(n *rig.Node) { m.reborn(n) })
			}})
		}
	}
	return list
}

// ail has one node be ill until the cure.
func (m *mixture) ail(kind, what string, hurt, cure func(*rig.Node)) illness {
	n := m.victim()
	if n == nil {
		return illness{}
	}
	m.sick[n] = true
	m.mark("%s %s", n.Name, what)
	hurt(n)
	return illness{kind: kind, cure: func() {
		delete(m.sick, n)
		m.say("%s: over", n.Name)
		cure(n)
	}}
}

// ailAs is ail for faults after which nobody may go by the id that the node has now.
func (m *mixture) ailAs(kind, what string, hurt func(*rig.Node), cure func(n *rig.Node, id string)) illness {
	id := ""
	return m.ail(kind, what, func(n *rig.Node) {
		id = m.status(n).Node
		hurt(n)
	}, func(n *rig.Node) { cure(n, id) })
}

// revive starts a node that has ended with the flags that it always has.
func (m *mixture) revive(n *rig.Node) { rig.Must(m.tryStart(n)) }

// tryStart starts a node that has ended with more flags than it always has.
func (m *mixture) tryStart(n *rig.Node, args ...string) (err error) {
	n.Args = append(slices.Clone(m.always[n]), args...)
	for range 3 {
		// One that could not leave goes on with that first, and ends.
		if err = rig.Try(func() { m.start(n) }); err == nil || n.Running() || n.Code() != 0 {
			break
		}
	}
	return err
}

// reborn restarts a node with other flags than before.
func (m *mixture) reborn(n *rig.Node, args ...string) {
	m.kill(n)
	rig.Must(m.tryStart(n, args...))
}

// renew starts a node that has lost what it knew: a new one, which has the others
// share out what the old one had.
func (m *mixture) renew(n *rig.Node, old string) {
	m.dead[n] = old
	m.lose(n)
	rig.Must(m.tryStart(n, "--declare-dead="+old))
}

// startOrRenew starts a node whose data may be older than what others know of it.
func (m *mixture) startOrRenew(n *rig.Node, id string) {
	err := m.tryStart(n)
	if err != nil && !n.Running() && strings.Contains(n.Log(), "copied or rolled back") {
		m.renew(n, id)
		return
	}
	rig.Must(err)
}

func (m *mixture) shiftClock() illness {
	skew := m.between(-maxSkew, maxSkew).Round(time.Millisecond)
	if m.rng.IntN(2) == 0 {
		skew = []time.Duration{-maxSkew, maxSkew}[m.rng.IntN(2)]
	}
	return m.ail("clock", "restarts with a clock that is off by "+skew.String(), func(n *rig.Node) {
		m.always[n] = soakArgs(skew)
		m.reborn(n)
	}, func(*rig.Node) {})
}

// healing is a fault of the network, which heals as a whole.
func (m *mixture) healing(kind string) illness {
	return illness{kind, func() { rig.Must(m.mesh.Net.Heal()) }, true}
}

func (m *mixture) cutOff() illness {
	i, n := m.rng.IntN(len(m.Nodes)), len(m.Nodes)
	a, b := m.Nodes[i], m.Nodes[(i+1+m.rng.IntN(n-1))%n]
	switch m.rng.IntN(3) {
	case 0:
		m.mark("the sites are cut apart")
		rig.Must(m.mesh.Net.CutSites("a", "b"))
	case 1:
		m.mark("%s is cut off", a)
		rig.Must(m.mesh.Net.CutNode(a))
	default:
		m.mark("nothing that %s sends reaches %s", a, b)
		rig.Must(m.mesh.Net.CutOneWay(a, b))
	}
	return m.healing("cut")
}

func (m *mixture) bend() illness {
	l := udp.Bent(0.1 * m.rng.Float64())
	l.Delay, l.Jitter = m.between(0, 100*time.Millisecond), m.between(0, 20*time.Millisecond)
	m.mark("links take %v and lose %.1f %%", l.Delay.Round(time.Millisecond), 100*l.Loss)
	rig.Must(m.mesh.Net.Shape(l))
	return m.healing("bend")
}

// spoilOrigin has the site behind the mesh misbehave, for as many of the visitors as
// the machine can hold the connections and carry the bytes of.
func (m *mixture) spoilOrigin() illness {
	switch m.rng.IntN(3) {
	case 0:
		m.mark("the origin answers with 500")
		m.origin.be(fails, 1)
	case 1:
		m.mark("the origin hangs, for one of 50 visitors")
		m.origin.be(hangs, 50)
	default:
		m.mark("the origin is slow, for one of 500 visitors")
		m.origin.be(slow, 500)
	}
	return illness{"origin", func() { m.origin.be(well, 1) }, true}
}

// loseData has a node lose its data directory.
func (m *mixture) loseData() illness {
	return m.ailAs("lost disk", "is killed, and its data directory lost", m.lose, m.renew)
}

// copyData has two processes run on the data of a node. One of them stops by itself;
// where that is the original, its data is given up.
func (m *mixture) copyData() illness {
	if m.spare.Running() {
		return illness{}
	}
	return m.ailAs("copied disk", "has a twin, on a copy of its data directory", func(n *rig.Node) {
		m.spare.Args = m.always[n]
		rig.Must(copyOf(n, m.spare.Data))
		rig.Must(m.spare.Start())
	}, func(n *rig.Node, id string) {
		if !m.until(twinsWithin, 20*time.Millisecond, func() bool { return !goesOn(n) || !goesOn(m.spare) }) {
			rig.Must(fmt.Errorf("%s and its twin both go on for %v", n.Name, twinsWithin))
		}
		m.kill(m.spare)
		if !goesOn(n) {
			m.renew(n, id) // nobody knows what the twin has done in its name
		}
	})
}

// goesOn reports whether a node has not begun to end. One that does lets requests
// under way end, of which an origin that hangs may hold some for long, and gives no
// ticket any more.
func goesOn(n *rig.Node) bool {
	return n.Running() && !strings.Contains(n.Log(), "stopping: requests under way")
}

// bringBack has a node start from an older copy of its data directory, of the same start
// or of one before. Those who have got rights of it since know that it is older; if nobody
// has, it may go on.
func (m *mixture) bringBack() illness {
	return m.ailAs("disk of before", "is killed, and starts from an older copy of its data directory", func(n *rig.Node) {
		old := m.scratch(n.Name + "-before")
		rig.Must(copyOf(n, old))
		for range m.rng.IntN(3) {
			m.kill(n)
			m.revive(n)
		}
		m.sleep(m.between(time.Second, 6*time.Second))
		m.lose(n)
		rig.Must(os.CopyFS(n.Data, os.DirFS(old)))
		rig.Must(n.Start())
	}, func(n *rig.Node, id string) {
		err := n.Await(m.ctx, 20*time.Second, "is ready, or ends", func(s node.Status) bool { return s.Ready })
		if err == nil {
			m.sleep(time.Second)
		}
		if n.Running() || m.ctx.Err() != nil {
			rig.Must(err)
			return
		}
		m.renew(n, id)
	})
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
