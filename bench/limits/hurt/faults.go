//go:build linux

package hurt

import (
	"errors"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/udp"
)

// fault is one way of hurting a mesh.
type fault struct {
	name, injected string
	period         time.Duration
	args           map[string]string // of some nodes
	shaped         bool              // needs a network that loses packets
	hurt           func(*run)        // nil: nothing is done to it; see rig.Must
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
		{name: "a node cut off inside its site, then healed", injected: "port of the switch taken down", hurt: bent(func(n rig.Network) error { return n.CutNode("b1") }), limits: 2},
		{name: "one direction of one link lost", injected: "blackhole route", hurt: bent(func(n rig.Network) error { return n.CutOneWay("b1", "b2") }), limits: 2},
		{name: "20 % of packets lost, 5 % doubled, 5 % late by 100 ms, 20 ms of delay", injected: "proxies", shaped: true, hurt: bent(func(n rig.Network) error { return n.Shape(udp.Bent(0.2)) }), limits: 2},
		{
			name: "clocks a minute ahead and a minute behind", injected: "shifted clocks", limits: 1,
			args: map[string]string{"a1": "--fault-clock-skew=63.7s", "c2": "--fault-clock-skew=-58.1s"},
		},
	}
	for i := range all {
		if all[i].period == 0 {
			all[i].period = period
		}
	}
	return all
}

// killAll is sure to meet the nodes that own the keys.
func killAll(r *run) {
	for _, n := range r.mesh.Nodes {
		rig.Must(n.Kill())
		rig.Must(n.Start())
		r.sleep(r.period)
	}
}

func killOne(r *run) {
	rig.Must(r.mesh.Node("b1").Kill())
	r.sleep(r.lasts())
}

func pause(r *run) {
	n := r.mesh.Node("b1")
	rig.Must(n.Pause())
	r.sleep(r.lasts())
	rig.Must(n.Resume())
}

// bent spoils the network, and mends it when that has lasted.
func bent(how func(rig.Network) error) func(*run) {
	return func(r *run) {
		rig.Must(how(r.mesh.Net))
		r.sleep(r.lasts())
		rig.Must(r.mesh.Net.Heal())
	}
}

func cut(sites ...[2]string) func(*run) {
	return bent(func(n rig.Network) (err error) {
		for _, s := range sites {
			err = errors.Join(err, n.CutSites(s[0], s[1]))
		}
		return err
	})
}
