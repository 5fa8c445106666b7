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
	apply func(*run) (illness, error)
}

// illness is a fault that has come. The zero value is none: nobody was well enough
// to get it.
type illness struct {
	kind  string
	cure  func() error
	first bool // is cured before others: it may keep these from it
}

func soak(d time.Duration) func(*run) error {
	return func(r *run) error {
		m, err := newMixture(r)
		if err != nil {
			return err
		}
		for end := time.Now().Add(d - warmUp - 2*healed); time.Now().Before(end); {
			if err := m.round(); err != nil {
				return err
			}
		}
		var parts []string
		for _, kind := range kinds {
			parts = append(parts, fmt.Sprintf("%s ×%d", kind, m.count[kind]))
		}
		r.note("%s", strings.Join(parts, ", "))
		return r.sleep(healed)
	}
}

// round has one or two faults come, last, and be over.
func (m *mixture) round() error {
	var all []illness
	for range 1 + m.run.rng.IntN(3)/2 { // two at a time in a third of the cases
		a := m.draw()
		if a.alone && len(all) > 0 {
			m.deck = append(m.deck, a) // in the next round
			break
		}
		i, err := a.apply(m.run)
		if err != nil {
			return err
		}
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
	if err := m.run.sleep(m.run.between(time.Second, 8*time.Second)); err != nil {
		return err
	}
	for _, i := range all {
		if err := i.cure(); err != nil {
			return err
		}
	}
	if err := m.recover(); err != nil {
		return err
	}
	return m.run.sleep(m.run.between(time.Second, 5*time.Second))
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
		m.run.rng.Shuffle(len(m.deck), func(i, j int) { m.deck[i], m.deck[j] = m.deck[j], m.deck[i] })
	}
	a := m.deck[len(m.deck)-1]
	m.deck = m.deck[:len(m.deck)-1]
	return a
}

func (r *run) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(r.rng.Int64N(int64(hi-lo)))
}

// victim returns a node that is well, or nil.
func (m *mixture) victim() *rig.Node {
	r := m.run
	n := r.mesh.Node(r.Nodes[r.rng.IntN(len(r.Nodes))])
	if c := r.agreed(n.Site); c != nil && r.rng.IntN(2) == 0 {
		n = c // counters have more to lose
	}
	if !n.Running() || m.sick[n] {
		return nil
	}
	return n
}

// ail has one node be ill until the cure.
func (m *mixture) ail(kind, what string, hurt, cure func(*rig.Node) error) (illness, error) {
	n := m.victim()
	if n == nil {
		return illness{}, nil
	}
	m.sick[n] = true
	m.run.mark("%s %s", n.Name, what)
	return illness{kind: kind, cure: func() error {
		delete(m.sick, n)
		m.run.say("%s: over", n.Name)
		return cure(n)
	}}, hurt(n)
}
