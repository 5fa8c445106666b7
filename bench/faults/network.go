//go:build linux

package faults

import (
	"fmt"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/udp"
)

func bendLinks(r *run) {
	for _, loss := range []float64{0.01, 0.05, 0.20} {
		r.mark("%g %% of packets are lost", 100*loss)
		rig.Must(r.mesh.Net.Shape(udp.Bent(loss)))
		r.sleep(12 * time.Second)
	}
	r.heal()
}

// heal mends the network, says how long it takes until all see all, and waits.
func (r *run) heal() {
	r.mark("healed")
	rig.Must(r.mesh.Net.Heal())
	began := time.Now()
	r.whole()
	r.note("all nodes see all %.1f s after the healing", time.Since(began).Seconds())
	r.sleep(healed)
}

func cutSites(d time.Duration) func(*run) {
	return func(r *run) {
		r.cut(d, "sites a and b are cut apart", func() error { return r.mesh.Net.CutSite("a") })
	}
}

func cutNode(d time.Duration) func(*run) {
	return func(r *run) {
		name := "a1"
		if r.counter("a").Name == name {
			name = "a2"
		}
		r.cut(d, name+" is cut off", func() error { return r.mesh.Net.CutNode(name) })
	}
}

func cutCounter(d time.Duration) func(*run) {
	return func(r *run) {
		c := r.counter("a")
		r.cut(d, c.Name+", the counter, is cut off", func() error { return r.mesh.Net.CutNode(c.Name) })
	}
}

func cutOneWay(d time.Duration) func(*run) {
	return func(r *run) {
		c := r.counter("a")
		n := r.mateOf(c)
		r.cut(d, fmt.Sprintf("nothing that %s sends reaches %s, the counter,", n.Name, c.Name), func() error { return r.mesh.Net.CutOneWay(n.Name, c.Name) })
	}
}

// mateOf returns another node of a node's site.
func (r *run) mateOf(n *rig.Node) *rig.Node {
	for _, other := range r.mesh.Nodes {
		if other.Site == n.Site && other != n {
			return other
		}
	}
	rig.Must(fmt.Errorf("site %s has one node only", n.Site))
	return nil
}

// cut cuts, goes on like that for a while, and heals it.
func (r *run) cut(d time.Duration, what string, cut func() error) {
	r.mark("%s for %v", what, d)
	rig.Must(cut())
	r.sleep(d)
	var seen []string // to show that a cut is one
	for _, n := range r.mesh.Nodes {
		if s, err := n.Status(r.ctx); err == nil {
			seen = append(seen, fmt.Sprintf("%s %d", n.Name, rig.Alive(s)))
		}
	}
	r.note("peers alive during the cut: %s", strings.Join(seen, ", "))
	r.heal()
}
