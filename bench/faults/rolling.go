//go:build linux

package faults

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// What operators do to a mesh on a working day, behind a balancer: nothing may be lost
// by it.

// turnOver is how long the visitors of busyRoom need to make way for others.
const turnOver = 40 * time.Second

// drain is what a node is told behind a balancer that asks it ten times a second.
var drain = []string{"--drain-delay=1s"}

// rolling restarts all nodes, one after the other, as an upgrade does. working is how long
// the mesh goes on between two of them.
func rolling(working time.Duration) func(*run) error {
	return func(r *run) error {
		for _, n := range r.mesh.Nodes {
			r.mark("%s is stopped, and started again", n.Name)
			began := time.Now()
			if err := n.Stop(40 * time.Second); err != nil {
				return err
			}
			ended := time.Since(began)
			if c := n.Code(); c != 0 {
				return fmt.Errorf("%s ended with code %d", n.Name, c)
			}
			if err := r.restart(n); err != nil {
				return err
			}
			r.say("%s ended after %.1f s and was back after %.1f s", n.Name, ended.Seconds(), time.Since(began).Seconds())
			if err := r.sleep(working); err != nil {
				return err
			}
		}
		return nil
	}
}

// rollingKill does the same by kill −9.
func rollingKill(working time.Duration) func(*run) error {
	return func(r *run) error {
		for _, n := range r.mesh.Nodes {
			r.mark("%s is killed, and started again", n.Name)
			if err := n.Kill(); err != nil {
				return err
			}
			if err := r.restart(n); err != nil {
				return err
			}
			if err := r.sleep(working); err != nil {
				return err
			}
		}
		return nil
	}
}

// grow adds a node to a site that is under load, and tells when it has its part.
func grow(r *run) error {
	n, err := r.mesh.Add("a4")
	if err != nil {
		return err
	}
	r.mark("a4 is started")
	began := time.Now()
	k := r.front.add(n)
	if err := r.restart(n); err != nil {
		return err
	}
	ready := time.Now()
	full := 1 / float64(len(r.mesh.Nodes))
	const window = time.Second
	for {
		now := time.Now()
		if r.front.share(k, now.Add(-window), now) >= 0.9*full {
			break
		}
		if now.Sub(began) > 20*time.Second {
			return fmt.Errorf("a4 never had its part of the requests, %.0f %%", 100*full)
		}
		if err := r.sleep(20 * time.Millisecond); err != nil {
			return err
		}
	}
	whole := time.Now()
	r.grown = whole.Sub(began)
	r.note("a4 was ready %.1f s after its start, and had its part of the requests (%.0f %%, over %v) after %.1f s",
		ready.Sub(began).Seconds(), 100*full, window, whole.Sub(began).Seconds())
	return r.sleep(turnOver)
}

// checkGrown is checkNothingLost for a mesh to which a node was added, which has to have
// its part in time, and to let visitors in.
func checkGrown(r *run) error {
	sources := slices.DeleteFunc(r.mesh.Sources(), func(s record.Source) bool { return s.Node != "a4" })
	entered, first := 0, int64(0)
	for e, err := range record.NewMerge(sources).All() {
		if err != nil {
			return err
		}
		if e.Kind != record.Entered {
			continue
		}
		if entered++; first == 0 {
			first = e.At
		}
	}
	if entered == 0 {
		return errors.New("a4 let nobody in")
	}
	r.note("a4 let %d visitors in, the first %.1f s after its start", entered, time.Duration(first-r.marks[0]).Seconds())
	if r.grown > takesPart {
		return fmt.Errorf("a4 had its part of the requests after %.1f s, want %v", r.grown.Seconds(), takesPart)
	}
	return checkNothingLost(r)
}

// shrink takes a node out of a site for good.
func shrink(r *run) error {
	n := r.mesh.Node("a2")
	r.mark("a2 is stopped, and leaves")
	began := time.Now()
	if err := n.Stop(60 * time.Second); err != nil {
		return err
	}
	if c := n.Code(); c != 0 {
		return fmt.Errorf("a2 ended with code %d", c)
	}
	r.note("a2 ended %.1f s after the signal", time.Since(began).Seconds())
	return r.sleep(turnOver)
}

// checkNothingLost is for what is done in good order: every request has an answer, every
// visitor keeps place and session.
func checkNothingLost(r *run) error {
	l := &r.loaded
	r.note("%d requests, %d of them without an answer or with a 5xx%s", l.Requests, l.Errors, r.front.why())
	if l.Errors > 0 || l.SessionsLost > 0 || l.PlacesLost > 0 || l.Status["5xx"] > 0 {
		return fmt.Errorf("%d requests failed (%v), %d were answered with a 5xx, %d sessions and %d places were lost", l.Errors, l.LastError(), l.Status["5xx"], l.SessionsLost, l.PlacesLost)
	}
	return nil
}

// takesPart is within what time a node that is added has its part of the requests.
const takesPart = 3 * time.Second

// checkInFlight is for nodes that are killed: what they were answering is lost, and
// nothing else.
func checkInFlight(r *run) error {
	l := &r.loaded
	broken := 0
	for _, k := range r.front.backends {
		broken += int(k.failed.Load())
	}
	r.note("%d requests, %d without an answer or with a 5xx, of which %d were at a node when it was killed%s", l.Requests, l.Errors, broken, r.front.why())
	if l.Errors > broken || l.SessionsLost > 0 || l.PlacesLost > 0 {
		return fmt.Errorf("%d requests failed (%v), %d of them at nodes that were killed; %d sessions and %d places were lost", l.Errors, l.LastError(), broken, l.SessionsLost, l.PlacesLost)
	}
	return nil
}
