//go:build linux

package faults

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/bench/rig"
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
		for _, kind := range kinds {
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
