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
)

// soakRate is the number of visitors per second, each of whom gets a ticket:
// enough for ten million in an hour, with a twelfth to spare for outages.
const soakRate = 3050

// soakScenario mixes all faults after which a mesh goes on with the nodes that it has.
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

// ailment is one kind of fault that a node can have. Meanwhile something may be wrong
// with the network, too, unless it is alone.
type ailment struct {
	kind  string
	often int // compared with the others
	alone bool
	come  func(r *run, n *rig.Node) (cure func())
}

func ailments(disks bool) []ailment {
	all := []ailment{
		{"kill", 6, false, func(r *run, n *rig.Node) func() {
			r.kill(n)
			return func() { r.start(n) }
		}},
		{"stop", 4, false, func(_ *run, n *rig.Node) func() {
			rig.Must(n.Pause())
			return func() { rig.Must(n.Resume()) }
		}},
		{"clock", 2, false, func(r *run, n *rig.Node) func() {
			r.kill(n)
			return func() {
				n.Args = soakArgs(r.between(-maxSkew, maxSkew).Round(time.Millisecond))
				r.start(n)
			}
		}},
		{"lost disk", 1, true, func(r *run, n *rig.Node) func() {
			old := r.status(n).Node
			r.lose(n)
			return func() { r.renew(n, old) }
		}},
		{"leave", 1, true, func(r *run, n *rig.Node) func() {
			r.stop(n)
			return func() { r.start(n) }
		}},
	}
	if disks {
		all = append(all, ailment{"full disk", 1, false, func(_ *run, n *rig.Node) func() {
			rig.Must(n.Disk.Fill())
			return func() { rig.Must(n.Disk.Free()) }
		}})
	}
	return all
}

// soak has nodes fall ill in turn. In a third of all rounds something is wrong with the network instead, in another
// third at the same time.
func soak(d time.Duration) func(*run) {
	return func(r *run) {
		var deck []ailment // each comes as often as it should before any comes once more
		count := map[string]int{}
		for end := time.Now().Add(d - warmUp - 2*healed); time.Now().Before(end); {
			if len(deck) == 0 {
				for _, a := range ailments(r.Disk > 0) {
					deck = append(deck, slices.Repeat([]ailment{a}, a.often)...)
				}
				r.rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
			}
			a := deck[0]
			which := r.rng.IntN(3) // 0: only the network, 1: only a node, 2: both
			heal := func() {}
			if which != 1 && !a.alone {
				heal = r.spoil(count)
			}
			cure := func() {}
			if which != 0 || a.alone {
				deck = deck[1:]
				n := r.victim()
				r.mark("%s: %s", n.Name, a.kind)
				count[a.kind]++
				cure = a.come(r, n)
			}
			r.sleep(r.between(time.Second, 8*time.Second))
			heal() // first: it may keep a node from being well
			cure()
			rig.Must(r.mesh.Await(r.ctx, time.Minute))
			r.sleep(r.between(time.Second, 5*time.Second))
		}
		var parts []string
		for _, kind := range slices.Sorted(maps.Keys(count)) {
			parts = append(parts, fmt.Sprintf("%s ×%d", kind, count[kind]))
		}
		r.note("%s", strings.Join(parts, ", "))
		r.sleep(healed)
	}
}

// victim returns any node, but counters more often than others: they have more to lose.
func (r *run) victim() *rig.Node {
	n := r.anyNode()
	if c := r.agreed(n.Site); c != nil && r.rng.IntN(2) == 0 {
		return c
	}
	return n
}

// spoil has something be wrong with the network until it is called off.
func (r *run) spoil(count map[string]int) (heal func()) {
	i, n := r.rng.IntN(len(r.Nodes)), len(r.Nodes)
	a, b := r.Nodes[i], r.Nodes[(i+1+r.rng.IntN(n-1))%n]
	net, loss := r.mesh.Net, 0.1*r.rng.Float64()
	all := []struct {
		kind, what string
		come       func()
	}{
		{"cut", "the sites are cut apart", func() { rig.Must(net.CutSite("a")) }},
		{"cut", a + " is cut off", func() { rig.Must(net.CutNode(a)) }},
		{"cut", "nothing that " + a + " sends reaches " + b, func() { rig.Must(net.CutOneWay(a, b)) }},
		{"bend", fmt.Sprintf("links lose %.1f %%", 100*loss), func() { rig.Must(net.Shape(udp.Bent(loss))) }},
	}
	is := all[r.rng.IntN(len(all))]
	r.mark("%s", is.what)
	count[is.kind]++
	is.come()
	return func() { rig.Must(net.Heal()) }
}
