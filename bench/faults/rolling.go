//go:build linux

package faults

import (
	"fmt"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/bench/rig"
)

// What operators do to a mesh on a working day, behind a balancer: nothing may be lost
// by it.

const (
	// turnOver is how long the visitors of busyRoom need to make way for others.
	turnOver = 40 * time.Second

	// takesPart is within what time a node that is added has its part of the requests.
	takesPart = 3 * time.Second
)

// drain is what a node is told behind a balancer that asks it ten times a second.
var drain = []string{"--drain-delay=1s"}

// endWell has a node end in good order, and says when it began to.
func (r *run) endWell(n *rig.Node) (began time.Time) {
	began = time.Now()
	rig.Must(n.StopWithin(time.Minute))
	if c := n.Code(); c != 0 {
		rig.Must(fmt.Errorf("%s ended with code %d", n.Name, c))
	}
	return began
}

// rolling restarts all nodes, one after the other, as an upgrade does. working is how long
// the mesh goes on between two of them.
func rolling(working time.Duration) func(*run) {
	return func(r *run) {
		for _, n := range r.mesh.Nodes {
			r.mark("%s is stopped, and started again", n.Name)
			began := r.endWell(n)
			ended := time.Since(began)
			r.start(n)
			r.say("%s ended after %.1f s and was back after %.1f s", n.Name, ended.Seconds(), time.Since(began).Seconds())
			r.sleep(working)
		}
	}
}

// rollingKill does the same by kill −9.
func rollingKill(working time.Duration) func(*run) {
	return func(r *run) {
		for _, n := range r.mesh.Nodes {
			r.mark("%s is killed, and started again", n.Name)
			r.kill(n)
			r.start(n)
			r.sleep(working)
		}
	}
}

// grow adds a node to a site that is under load, and tells when it has its part.
func grow(r *run) {
	n := rig.Got(r.mesh.Add("a4"))
	r.mark("a4 is started")
	began := time.Now()
	k := r.front.add(n)
	r.start(n)
	ready := time.Since(began)
	full := 1 / float64(len(r.mesh.Nodes))
	const window, every = time.Second, 20 * time.Millisecond
	var past [int(window / every)][2]int64 // requests to it and to all, since the window began
	for i := 0; ; i++ {
		now := [2]int64{k.served.Load(), 0}
		for _, other := range *r.front.backends.Load() {
			now[1] += other.served.Load()
		}
		at := &past[i%len(past)]
		if mine, all := now[0]-at[0], now[1]-at[1]; i >= len(past) && float64(mine) >= 0.9*full*float64(max(1, all)) {
			break
		}
		*at = now
		if time.Since(began) > 20*time.Second {
			rig.Must(fmt.Errorf("a4 never had its part of the requests, %.0f %%", 100*full))
		}
		r.sleep(every)
	}
	r.grown = time.Since(began)
	r.note("a4 was ready %.1f s after its start, and had its part of the requests (%.0f %%, over %v) after %.1f s",
		ready.Seconds(), 100*full, window, r.grown.Seconds())
	r.sleep(turnOver)
}

// checkGrown is checkNothingLost for a mesh to which a node was added, which has to have
// its part in time, and to let visitors in.
func checkGrown(r *run) (wrong []string) {
	entered, first := 0, int64(0)
	for e := range r.events("a4") {
		if e.Kind != record.Entered {
			continue
		}
		if entered++; first == 0 {
			first = e.At
		}
	}
	if entered == 0 {
		return []string{"a4 let nobody in"}
	}
	r.note("a4 let %d visitors in, the first %.1f s after its start", entered, time.Duration(first-r.marks[0]).Seconds())
	if r.grown > takesPart {
		wrong = append(wrong, fmt.Sprintf("a4 had its part of the requests after %.1f s, want %v", r.grown.Seconds(), takesPart))
	}
	return append(wrong, checkNothingLost(r)...)
}

// shrink takes a node out of a site for good.
func shrink(r *run) {
	r.mark("a2 is stopped, and leaves")
	began := r.endWell(r.mesh.Node("a2"))
	r.note("a2 ended %.1f s after the signal", time.Since(began).Seconds())
	r.sleep(turnOver)
}

// checkNothingLost is for what is done in good order: every request has an answer, every
// visitor keeps place and session.
func checkNothingLost(r *run) []string {
	r.note("%d requests, %d of them without an answer or with a 5xx%s", r.loaded.Requests, r.loaded.Errors, r.front.why())
	return r.lost(0)
}

// checkInFlight is for nodes that are killed: what they were answering is lost, and
// nothing else.
func checkInFlight(r *run) []string {
	broken := 0
	for _, k := range *r.front.backends.Load() {
		broken += int(k.failed.Load())
	}
	r.note("%d requests, %d without an answer or with a 5xx, of which %d were at a node when it was killed%s", r.loaded.Requests, r.loaded.Errors, broken, r.front.why())
	return r.lost(broken)
}

// lost says what visitors lost but for so many requests.
func (r *run) lost(but int) []string {
	l := &r.loaded
	if l.Errors <= but && l.SessionsLost == 0 && l.PlacesLost == 0 && l.Status["5xx"] <= but {
		return nil
	}
	return []string{fmt.Sprintf("%d requests failed (%v), %d were answered with a 5xx, and %d may; %d sessions and %d places were lost",
		l.Errors, l.LastError(), l.Status["5xx"], but, l.SessionsLost, l.PlacesLost)}
}
