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

// grow starts a node of a site that is under load, and tells when it has its part.
func grow(r *run) {
	n := r.mesh.Node(r.Later)
	r.mark("%s is started", n.Name)
	began := time.Now()
	r.start(n)
	ready := time.Since(began)
	full := 1 / float64(len(r.mesh.Nodes))
	const window, every = time.Second, 100 * time.Millisecond
	var past [int(window / every)][2]int // requests to it and to all, since the window began
	for i := 0; ; i++ {
		counts := r.front.count(statRequests)
		now := [2]int{counts[n.Name], 0}
		for _, requests := range counts {
			now[1] += requests
		}
		at := &past[i%len(past)]
		if mine, all := now[0]-at[0], now[1]-at[1]; i >= len(past) && float64(mine) >= 0.9*full*float64(max(1, all)) {
			break
		}
		*at = now
		if time.Since(began) > 20*time.Second {
			rig.Must(fmt.Errorf("%s never had its part of the requests, %.0f %%", n.Name, 100*full))
		}
		r.sleep(every)
	}
	r.grown = time.Since(began)
	r.note("%s was ready %.1f s after its start, and had its part of the requests (%.0f %%, over %v) after %.1f s",
		n.Name, ready.Seconds(), 100*full, window, r.grown.Seconds())
	r.sleep(turnOver)
}

// checkGrown is checkNothingLost for a mesh to which a node was added, which has to have
// its part in time, and to let visitors in.
func checkGrown(r *run) (wrong []string) {
	entered, first := 0, int64(0)
	for e := range r.events(r.Later) {
		if e.Kind != record.Entered {
			continue
		}
		if entered++; first == 0 {
			first = e.At
		}
	}
	if entered == 0 {
		return []string{r.Later + " let nobody in"}
	}
	r.note("%s let %d visitors in, the first %.1f s after its start", r.Later, entered, time.Duration(first-r.marks[0]).Seconds())
	if r.grown > takesPart {
		wrong = append(wrong, fmt.Sprintf("%s had its part of the requests after %.1f s, want %v", r.Later, r.grown.Seconds(), takesPart))
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
	r.note("%d requests, %d of them without an answer or with a 5xx", r.loaded.Requests, r.loaded.Errors)
	return r.lost(0)
}

// checkInFlight is for nodes that are killed: what they were answering is lost, and
// nothing else.
func checkInFlight(r *run) []string {
	broken := 0
	for _, n := range r.front.count(statFailed) {
		broken += n
	}
	r.note("%d requests, %d without an answer or with a 5xx, of which %d were at a node when it was killed", r.loaded.Requests, r.loaded.Errors, broken)
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
