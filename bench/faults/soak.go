//go:build linux

package faults

import (
	"os"
	"time"

	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/bench/rig"
)

// soakRate is the number of visitors per second, each of whom gets a ticket:
// enough for ten million in an hour, with a twelfth to spare for outages.
const soakRate = 3050

// soakScenario mixes all faults after which a mesh goes on with the nodes that it has.
func soakScenario(d time.Duration) scenario {
	s := scenario{
		Name: "soak", Fault: "all of these, mixed at random", Injected: "one after the other, some at the same time, for " + d.String(),
		Nodes: five, Length: d, Script: soak.script(d), Settle: 30 * time.Second,
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

// soak has faults of nodes whose restarts take no time, so that visitors come without a pause.
var soak = mixture{
	nodes: []ailment{
		killed(6), stopped(4), lostDisk(1), fullDisk(1),
		{"clock", 2, false, func(r *run, n *rig.Node) func() {
			r.kill(n)
			return func() {
				n.Args = soakArgs(r.between(-maxSkew, maxSkew).Round(time.Millisecond))
				r.start(n)
			}
		}},
		{"leave", 1, true, func(r *run, n *rig.Node) func() {
			r.stop(n)
			return func() { r.start(n) }
		}},
	},
	network: []disorder{sitesApart, nodeCutOff, deafLink, bentLinks},
}
