//go:build linux

package faults

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/udp"
)

// healed is how long after the last fault a run goes on, so that what came of it
// shows: a session and what is kept aside for one, and more.
const healed = 12 * time.Second

func bendLinks(r *run) error {
	for _, loss := range []float64{0.01, 0.05, 0.20} {
		r.mark("%g %% of packets are lost", 100*loss)
		if err := r.mesh.Net.Shape(udp.Link{
			Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: loss,
			Duplicate: 0.05, Reorder: 0.05, Late: 100 * time.Millisecond,
		}); err != nil {
			return err
		}
		if err := r.sleep(12 * time.Second); err != nil {
			return err
		}
	}
	return r.heal()
}

// heal mends the network, says how long it takes until all see all, and waits.
func (r *run) heal() error {
	r.mark("healed")
	if err := r.mesh.Net.Heal(); err != nil {
		return err
	}
	began := time.Now()
	if err := r.mesh.Await(r.ctx, 40*time.Second); err != nil {
		return err
	}
	r.note("all nodes see all %.1f s after the healing", time.Since(began).Seconds())
	return r.sleep(healed)
}

func cutSites(d time.Duration) func(*run) error {
	return func(r *run) error {
		return r.cut(d, "sites a and b are cut apart", func() error { return r.mesh.Net.CutSites("a", "b") })
	}
}

func cutNode(d time.Duration) func(*run) error {
	return func(r *run) error {
		c, err := r.counter("a")
		if err != nil {
			return err
		}
		name := "a1"
		if c.Name == name {
			name = "a2"
		}
		return r.cut(d, name+" is cut off", func() error { return r.mesh.Net.CutNode(name) })
	}
}

func cutCounter(d time.Duration) func(*run) error {
	return func(r *run) error {
		c, err := r.counter("a")
		if err != nil {
			return err
		}
		return r.cut(d, c.Name+", the counter, is cut off", func() error { return r.mesh.Net.CutNode(c.Name) })
	}
}

func cutOneWay(d time.Duration) func(*run) error {
	return func(r *run) error {
		c, err := r.counter("a")
		if err != nil {
			return err
		}
		for _, n := range r.mesh.Nodes {
			if n.Site == c.Site && n != c {
				what := fmt.Sprintf("nothing that %s sends reaches %s, the counter", n.Name, c.Name)
				return r.cut(d, what, func() error { return r.mesh.Net.CutOneWay(n.Name, c.Name) })
			}
		}
		return fmt.Errorf("site %s has one node only", c.Site)
	}
}

func (r *run) cut(d time.Duration, what string, cut func() error) error {
	r.mark("%s for %v", what, d)
	if err := cut(); err != nil {
		return err
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := r.sleep(250 * time.Millisecond); err != nil {
			return err
		}
		if r.Room.onPartition == partitionOpen {
			r.shown = max(r.shown, r.borrowed())
		}
	}
	r.views()
	return r.heal()
}

// borrowed returns how many sessions without a right the nodes show.
func (r *run) borrowed() (all int64) {
	for _, n := range r.mesh.Nodes {
		if s, err := n.Status(r.ctx); err == nil && len(s.Rooms) > 0 && s.Rooms[0].Rights != nil {
			all += s.Rooms[0].Rights.Borrowed
		}
	}
	return all
}

// checkBorrowed: who goes on without a right is shown for as long as that lasts. A
// session that is repaid counts as borrowed in the records until it ends, so these
// may have more than were shown at any moment.
func checkBorrowed(r *run) error {
	r.note("the nodes showed %d borrowed sessions at one time", r.shown)
	switch {
	case !r.strict():
		return nil // others have no rights, and nothing to borrow
	case r.found.PeakBorrowed == 0:
		return errors.New("no session was borrowed: this has shown nothing")
	case r.shown == 0:
		return fmt.Errorf("%d sessions were borrowed at one time, and no node showed one", r.found.PeakBorrowed)
	}
	return nil
}

// views says how many others each node sees alive, to show that a cut is one.
func (r *run) views() {
	var seen []string
	for _, n := range r.mesh.Nodes {
		if s, err := n.Status(r.ctx); err == nil {
			seen = append(seen, fmt.Sprintf("%s %d", n.Name, rig.Alive(s)))
		}
	}
	r.note("peers alive during the cut: %s", strings.Join(seen, ", "))
}
