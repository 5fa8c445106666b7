package replay

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// Result is what came of a history.
type Result struct {
	Broken  string // which promise, and how; "": none
	Refused int    // the last step, from 1, that a node refused; 0: none
	Unmet   int    // the last step, from 1, whose moment never came; 0: none
	Peak    int64  // the most that were inside at once
	Met     int    // deviations of which there was an occasion

	// Points are the messages, writes and cuts of the run with which something could have
	// gone wrong, without saying what. Those of messages have a Kind, those of cuts are named.
	Points []Twist
}

// Of how many like it a message or write is among the points.
const (
	firstMessages = 2
	firstWrites   = 8
)

func (r *Result) see(t Twist) {
	if t.Kind != 0 && t.Nth > firstMessages || t.Kind == 0 && t.Nth > firstWrites {
		return
	}
	r.Points = append(r.Points, t)
}

func (r *Result) cuts(nodes, steps int) {
	for n := range nodes {
		for s := range steps {
			r.Points = append(r.Points, Twist{What: Cut, From: n, Nth: s + 1})
		}
	}
}

func (r *Result) twisted() { r.Met++ }

// Deviations returns what could go wrong with a point.
func Deviations(point Twist) (all []Twist) {
	what := []Deviation{Lost, Twice, Late}
	switch {
	case point.What == Cut:
		what = []Deviation{Cut}
	case point.Kind == 0:
		what = []Deviation{Before, After}
	}
	for _, d := range what {
		point.What = d
		all = append(all, point)
	}
	return all
}

const (
	warmUp    = 7 * time.Second  // until the mesh has settled and the crowd is inside
	aftermath = 14 * time.Second // of the last act: sessions end, locks are over, and others come
	homeward  = 8 * time.Second  // until all have gone home
	settling  = 24 * time.Second // after that, until everything has to add up

	// How much longer the last two take where the rate is the limit, and the last where a disk was
	// lost: rights to let somebody in count for a minute, and nothing is minted before that. So it
	// is where a room was deleted and made again.
	cooling = 70 * time.Second
)

// Run runs a history of nodes without some rules. What happens is told to trace, which
// may be nil.
func Run(h History, leaveOut ticket.Rules, trace func(format string, args ...any)) (Result, error) {
	w := newWorld(h, leaveOut, trace)
	w.run(4 * time.Second)
	w.open()
	w.run(warmUp - 4*time.Second)
	w.begin()
	for w.waits && !w.over() {
		w.run(100 * time.Millisecond)
	}
	w.run(aftermath)
	if w.h.Rate || w.rooms > firstRoom {
		w.run(cooling)
	}
	w.heal()
	return w.result, w.err
}

// heal has all come back that can, and all visitors go home. Then everything has to add up.
func (w *world) heal() {
	if w.over() {
		return
	}
	for _, m := range w.nodes {
		w.startAgain(m)
	}
	w.homing = true
	w.run(homeward)
	w.bury()
	why := "nothing was looked at"
	end := w.now + settling
	if w.h.Rate || w.rooms > firstRoom || slices.ContainsFunc(w.nodes, func(m *machine) bool { return m.gone && !m.left }) {
		end += cooling
	}
	for w.now < end && why != "" && !w.over() {
		w.run(time.Second)
		why = w.judge.settled()
	}
	if why != "" && !w.over() {
		w.broken("when all is well again: " + why)
	}
}
