//go:build linux

package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/udp"
)

// mixture is faults that come one after the other, some at the same time.
type mixture struct {
	nodes   []ailment
	network []disorder
}

// ailment is one kind of fault that a node can have. Meanwhile something may be wrong
// with the network, too, unless it is alone.
type ailment struct {
	kind  string
	often int // compared with the others
	alone bool
	come  func(r *run, n *rig.Node) (cure func())
}

// disorder is one kind of fault of the network. a and b are nodes.
type disorder struct {
	kind string
	come func(r *run, a, b string) (what string)
}

// wholeWithin is how long after the last fault the mesh is to be whole again, each node ready.
const wholeWithin = 30 * time.Second

// script has nodes fall ill in turn. In a third of all rounds something is wrong with the network instead, in another
// third at the same time. After each round all nodes are to run, and to be ready.
func (m mixture) script(d time.Duration) func(*run) {
	return func(r *run) {
		var deck []ailment // each comes as often as it should before any comes once more
		count := map[string]int{}
		var slowest time.Duration
		for end := time.Now().Add(d - warmUp - 2*healed); time.Now().Before(end); {
			if len(deck) == 0 {
				deck = m.shuffled(r)
			}
			a := deck[0]
			which := r.rng.IntN(3) // 0: only the network, 1: only a node, 2: both
			heal := func() {}
			if which != 1 && !a.alone {
				heal = m.spoil(r, count)
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
			slowest = max(slowest, r.wholeAgain())
			r.sleep(r.between(time.Second, 5*time.Second))
		}
		var parts []string
		for _, kind := range slices.Sorted(maps.Keys(count)) {
			parts = append(parts, fmt.Sprintf("%s ×%d", kind, count[kind]))
		}
		r.note("%s; all nodes ready %.1f s after the last fault of a round at the latest", strings.Join(parts, ", "), slowest.Seconds())
		r.sleep(healed)
	}
}

// shuffled returns each ailment that can be had here as often as it should come, in random order.
func (m mixture) shuffled(r *run) (deck []ailment) {
	for _, a := range m.nodes {
		if a.kind != fullDisk(1).kind || r.Disk > 0 {
			deck = append(deck, slices.Repeat([]ailment{a}, a.often)...)
		}
	}
	r.rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

// spoil has something be wrong with the network until it is called off.
func (m mixture) spoil(r *run, count map[string]int) (heal func()) {
	i, n := r.rng.IntN(len(r.Nodes)), len(r.Nodes)
	d := m.network[r.rng.IntN(len(m.network))]
	r.mark("%s", d.come(r, r.Nodes[i], r.Nodes[(i+1+r.rng.IntN(n-1))%n]))
	count[d.kind]++
	return func() { rig.Must(r.mesh.Net.Heal()) }
}

// wholeAgain waits until all nodes are ready and see all others, and says how long it took. None may have ended: who
// ends one starts it again.
func (r *run) wholeAgain() time.Duration {
	began := time.Now()
	for _, n := range r.mesh.Nodes {
		if !n.Running() {
			rig.Must(fmt.Errorf("%s has ended by itself (%s); it said last:\n%s", n.Name, n.State(), n.Tail(8)))
		}
	}
	rig.Must(r.mesh.Await(r.ctx, wholeWithin))
	return time.Since(began)
}

// victim returns any node, but counters more often than others: they have more to lose.
func (r *run) victim() *rig.Node {
	n := r.anyNode()
	if c := r.agreed(n.Site); c != nil && r.rng.IntN(2) == 0 {
		return c
	}
	return n
}

func killed(often int) ailment {
	return ailment{"kill", often, false, func(r *run, n *rig.Node) func() {
		r.kill(n)
		return func() { r.start(n) }
	}}
}

func stopped(often int) ailment {
	return ailment{"stop", often, false, func(_ *run, n *rig.Node) func() {
		rig.Must(n.Pause())
		return func() { rig.Must(n.Resume()) }
	}}
}

func lostDisk(often int) ailment {
	return ailment{"lost disk", often, true, func(r *run, n *rig.Node) func() {
		old := r.status(n).Node
		r.lose(n)
		return func() { r.renew(n, old) }
	}}
}

func fullDisk(often int) ailment {
	return ailment{"full disk", often, false, func(_ *run, n *rig.Node) func() {
		rig.Must(n.Disk.Fill())
		return func() { rig.Must(n.Disk.Free()) }
	}}
}

var (
	sitesApart = disorder{"cut", func(r *run, _, _ string) string {
		rig.Must(r.mesh.Net.CutSite("a"))
		return "the sites are cut apart"
	}}
	nodeCutOff = disorder{"cut", func(r *run, a, _ string) string {
		rig.Must(r.mesh.Net.CutNode(a))
		return a + " is cut off"
	}}
	deafLink = disorder{"cut", func(r *run, a, b string) string {
		rig.Must(r.mesh.Net.CutOneWay(a, b))
		return "nothing that " + a + " sends reaches " + b
	}}
	bentLinks = disorder{"bend", func(r *run, _, _ string) string {
		loss := 0.1 * r.rng.Float64()
		rig.Must(r.mesh.Net.Shape(udp.Bent(loss)))
		return fmt.Sprintf("links lose %.1f %%", 100*loss)
	}}
	narrowLinks = disorder{"narrow", func(r *run, _, _ string) string {
		rig.Must(r.mesh.Net.Shape(udp.Link{Room: tunnelRoom}))
		return fmt.Sprintf("links carry no packet of more than %d bytes", tunnelRoom)
	}}
)

// tunnelRoom is what a packet of UDP may have in tunnels with the 1,280 bytes that IPv6 has at least, less the heads of
// IPv6 and UDP.
const tunnelRoom = 1280 - 40 - 8
