//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ropeline/ropeline/bench/faults/rig"
	"github.com/ropeline/ropeline/bench/faults/udp"
	"github.com/ropeline/ropeline/bench/load"
)

// soakRate is the number of visitors per second, each of whom gets a ticket:
// enough for ten million in an hour, with a twelfth to spare for outages.
const soakRate = 3050

// soakScenario mixes all faults that a mesh on this machine can have.
func soakScenario(d time.Duration) scenario {
	s := scenario{
		Name: "soak", Fault: "all of these, mixed at random", Injected: "one after the other, some at the same time, for " + d.String(),
		Nodes: five, Length: d, Script: soak(d),
		// The rate rights of a node that has restarted rest for a minute: those of
		// the others have to do.
		Room:  roomArgs{active: 100_000, perMinute: 10_000_000, session: time.Second, once: true},
		Crowd: load.Crowd{Rate: soakRate},
	}
	if os.Geteuid() == 0 {
		s.Disk = 32 << 20
	}
	return s
}

// ailment is one kind of fault of the mixture: it comes, lasts, and is over when
// cure has been called.
type ailment struct {
	often int // how often compared with the others
	apply func(*run) (what string, cure func() error, err error)
}

func soak(d time.Duration) func(*run) error {
	return func(r *run) error {
		var deck []ailment
		for _, a := range ailments(r) {
			for range a.often {
				deck = append(deck, a)
			}
		}
		count := map[string]int{}
		for end := time.Now().Add(d - warmUp - 2*healed); time.Now().Before(end); {
			var cures []func() error
			for range 1 + r.rng.IntN(3)/2 { // two at a time in a third of the cases
				what, cure, err := deck[r.rng.IntN(len(deck))].apply(r)
				if err != nil {
					return err
				}
				if cure != nil {
					count[what]++
					cures = append(cures, cure)
				}
			}
			if err := r.sleep(r.between(time.Second, 8*time.Second)); err != nil {
				return err
			}
			for _, cure := range cures {
				if err := cure(); err != nil {
					return err
				}
			}
			if err := r.mesh.Await(r.ctx, time.Minute); err != nil {
				return err
			}
			if err := r.sleep(r.between(time.Second, 5*time.Second)); err != nil {
				return err
			}
		}
		for _, what := range []string{"kill", "stop", "clock", "cut", "bend", "disk", "store"} {
			if count[what] > 0 {
				r.note("%s ×%d", what, count[what])
			}
		}
		return r.sleep(healed)
	}
}

func (r *run) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(r.rng.Int64N(int64(hi-lo)))
}

// victim returns a node that is well, or nil.
func (r *run) victim() *rig.Node {
	n := r.mesh.Nodes[r.rng.IntN(len(r.mesh.Nodes))]
	if c := r.agreed(n.Site); c != nil && r.rng.IntN(2) == 0 {
		n = c // counters have more to lose
	}
	if !n.Running() || r.sick[n] {
		return nil
	}
	return n
}

// ail has one node be ill until the cure.
func (r *run) ail(kind, what string, hurt, cure func(*rig.Node) error) (string, func() error, error) {
	n := r.victim()
	if n == nil {
		return "", nil, nil
	}
	r.sick[n] = true
	r.mark("%s %s", n.Name, what)
	return kind, func() error {
		delete(r.sick, n)
		r.say("%s: over", n.Name)
		return cure(n)
	}, hurt(n)
}

func ailments(r *run) []ailment {
	r.sick = map[*rig.Node]bool{}
	list := []ailment{
		{6, func(r *run) (string, func() error, error) {
			return r.ail("kill", "is killed", (*rig.Node).Kill, r.restart)
		}},
		{4, func(r *run) (string, func() error, error) {
			return r.ail("stop", "is stopped", (*rig.Node).Pause, (*rig.Node).Resume)
		}},
		{1, func(r *run) (string, func() error, error) {
			skew := fmt.Sprintf("--fault-clock-skew=%v", r.between(-200*time.Millisecond, 200*time.Millisecond).Round(time.Millisecond))
			return r.ail("clock", "restarts with "+skew, r.reborn(skew), func(*rig.Node) error { return nil })
		}},
		{2, cutAtRandom},
		{2, bendAtRandom},
	}
	if r.Disk > 0 {
		list = append(list, ailment{1, func(r *run) (string, func() error, error) {
			return r.ail("disk", "has a full disk",
				func(n *rig.Node) error { return n.Disk.Fill() },
				func(n *rig.Node) error {
					err := n.Disk.Free()
					if !n.Running() {
						err = errors.Join(err, r.restart(n))
					}
					return err
				})
		}})
	}
	if r.strict() { // only this policy writes anything that a ticket waits for
		for _, how := range []string{"slow=100ms", "fail@50", "fail@500"} {
			list = append(list, ailment{1, func(r *run) (string, func() error, error) {
				return r.ail("store", "restarts with a store that is "+how, r.reborn("--fault-store="+how),
					func(n *rig.Node) error { return r.reborn()(n) })
			}})
		}
	}
	return list
}

// reborn restarts a node with other flags than before.
func (r *run) reborn(args ...string) func(*rig.Node) error {
	return func(n *rig.Node) error {
		n.Args = args
		return errors.Join(n.Kill(), r.restart(n))
	}
}

func cutAtRandom(r *run) (string, func() error, error) {
	var err error
	a, b := r.mesh.Nodes[r.rng.IntN(len(r.mesh.Nodes))], r.mesh.Nodes[r.rng.IntN(len(r.mesh.Nodes))]
	switch r.rng.IntN(3) {
	case 0:
		r.mark("the sites are cut apart")
		err = r.mesh.Net.CutSites("a", "b")
	case 1:
		r.mark("%s is cut off", a.Name)
		err = r.mesh.Net.CutNode(a.Name)
	default:
		r.mark("nothing that %s sends reaches %s", a.Name, b.Name)
		err = r.mesh.Net.CutOneWay(a.Name, b.Name)
	}
	return "cut", r.mesh.Net.Heal, err
}

func bendAtRandom(r *run) (string, func() error, error) {
	l := udp.Link{
		Delay: r.between(0, 100*time.Millisecond), Jitter: r.between(0, 20*time.Millisecond), Loss: 0.1 * r.rng.Float64(),
		Duplicate: 0.05, Reorder: 0.05, Late: 100 * time.Millisecond,
	}
	r.mark("links take %v and lose %.1f %%", l.Delay.Round(time.Millisecond), 100*l.Loss)
	return "bend", r.mesh.Net.Heal, r.mesh.Net.Shape(l)
}
