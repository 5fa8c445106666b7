//go:build linux

package hurt

import (
	"time"

	"github.com/ropeline/ropeline/bench/rig/udp"
)

// fault is one way of hurting a mesh.
type fault struct {
	name, injected string
	period         time.Duration
	args           map[string]string // of some nodes
	shaped         bool              // needs a network that loses packets
	hurt           func(*run) error  // nil: nothing is done to it
	// limits is how often the limit may be reached within a period meanwhile: so many
	// parts of the mesh count for themselves. A node that was stopped lets pass what
	// waited, and something before it hears of the others.
	limits int
}

// lasts is how long a fault that can be ended lasts: so that whole periods lie within it.
func (f *fault) lasts() time.Duration { return 5 * f.period / 2 }

func faults(period time.Duration) []fault {
	all := []fault{
		{name: "none", period: time.Minute, limits: 1},
		{name: "none", limits: 1},
		{name: "every node killed, one after the other", injected: "kill −9, started again at once", hurt: killAll, limits: 2},
		{name: "a node killed, and not started again", injected: "kill −9", hurt: killOne, limits: 2},
		{name: "a node stopped, then woken", injected: "SIGSTOP, SIGCONT", hurt: pause, limits: 3},
		{name: "a site cut off, then healed", injected: "links taken down", hurt: cut([2]string{"a", "b"}, [2]string{"a", "c"}), limits: 2},
		{name: "all sites cut apart, then healed", injected: "links taken down", hurt: cut([2]string{"a", "b"}, [2]string{"a", "c"}, [2]string{"b", "c"}), limits: 3},
		{name: "a node cut off inside its site, then healed", injected: "port of the switch taken down", hurt: cutNode, limits: 2},
		{name: "one direction of one link lost", injected: "blackhole route", hurt: cutOneWay, limits: 2},
		{name: "20 % of packets lost, 5 % doubled, 5 % late by 100 ms, 20 ms of delay", injected: "proxies", shaped: true, hurt: bend, limits: 2},
		{name: "clocks a minute ahead and a minute behind", injected: "shifted clocks", limits: 1,
			args: map[string]string{"a1": "--fault-clock-skew=63.7s", "c2": "--fault-clock-skew=-58.1s"}},
	}
	for i := range all {
		if all[i].period == 0 {
			all[i].period = period
		}
	}
	return all
}

// killAll is sure to meet the nodes that own the keys.
func killAll(r *run) error {
	for _, n := range r.mesh.Nodes {
		if err := n.Kill(); err != nil {
			return err
		}
		if err := n.Start(); err != nil {
			return err
		}
		if err := r.sleep(r.period); err != nil {
			return err
		}
	}
	return nil
}

func killOne(r *run) error {
	if err := r.mesh.Node("b1").Kill(); err != nil {
		return err
	}
	return r.sleep(r.lasts())
}

func pause(r *run) error {
	n := r.mesh.Node("b1")
	if err := n.Pause(); err != nil {
		return err
	}
	if err := r.sleep(r.lasts()); err != nil {
		return err
	}
	return n.Resume()
}

func cut(sites ...[2]string) func(*run) error {
	return func(r *run) error {
		for _, s := range sites {
			if err := r.mesh.Net.CutSites(s[0], s[1]); err != nil {
				return err
			}
		}
		return r.heal()
	}
}

func cutNode(r *run) error {
	if err := r.mesh.Net.CutNode("b1"); err != nil {
		return err
	}
	return r.heal()
}

func cutOneWay(r *run) error {
	if err := r.mesh.Net.CutOneWay("b1", "b2"); err != nil {
		return err
	}
	return r.heal()
}

func bend(r *run) error {
	if err := r.mesh.Net.Shape(udp.Link{
		Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.2,
		Duplicate: 0.05, Reorder: 0.05, Late: 100 * time.Millisecond,
	}); err != nil {
		return err
	}
	return r.heal()
}

// heal mends the network when the fault has lasted.
func (r *run) heal() error {
	if err := r.sleep(r.lasts()); err != nil {
		return err
	}
	return r.mesh.Net.Heal()
}
