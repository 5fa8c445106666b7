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
	for end := time.Now().Add(d); time.Now().Before(end); {
		r.sleep(250 * time.Millisecond)
		if r.Room.onPartition == partitionOpen {
			r.shown = max(r.shown, r.borrowed())
		}
	}
	var seen []string // to show that a cut is one
	for _, n := range r.mesh.Nodes {
		if s, err := n.Status(r.ctx); err == nil {
			seen = append(seen, fmt.Sprintf("%s %d", n.Name, rig.Alive(s)))
		}
	}
	r.note("peers alive during the cut: %s", strings.Join(seen, ", "))
	r.heal()
}

// borrowed returns how many sessions without a right the nodes show.
func (r *run) borrowed() (all int64) {
	for _, n := range r.mesh.Nodes {
		if is := r.rights(n); is != nil {
			all += is.Borrowed
		}
	}
	return all
}

// checkBorrowed: who goes on without a right is shown for as long as that lasts. A
// session that is repaid counts as borrowed in the records until it ends, so these
// may have more than were shown at any moment.
func checkBorrowed(r *run) []string {
	r.note("the nodes showed %d borrowed sessions at one time", r.shown)
	switch {
	case !r.strict(): // others have no rights, and nothing to borrow
	case r.found.active.PeakBorrowed == 0:
		return []string{"no session was borrowed: this has shown nothing"}
	case r.shown == 0:
		return []string{fmt.Sprintf("%d sessions were borrowed at one time, and no node showed one", r.found.active.PeakBorrowed)}
	}
	return nil
}
