package replay

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// Result is what came of a history.
type Result struct {
	Broken  string // which promise, and how; "": none
	Peak    int64  // the most that were inside at once, or were let in within 60 s
	Useless bool   // a node refused an act, a moment never came, or there was no occasion for a deviation

	Twists []string // deviations for which there was one, of the first occasions of each kind
}

const (
	warmUp    = 7 * time.Second  // until the mesh has settled and the crowd is inside
	patience  = 6 * time.Second  // how long the moment of a step is waited for
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
	w.begun = true
	for i := range h.Steps {
		if i > 0 {
			w.await(i)
		}
		if !w.over() {
			w.act(i)
		}
	}
	w.run(w.longer(aftermath))
	if !w.over() {
		w.heal()
	}
	w.result.Useless = w.result.Useless || w.met < len(h.Twists)
	return w.result, w.err
}

// longer returns a time, and more of it where rights have to cool.
func (w *world) longer(d time.Duration) time.Duration {
	if w.h.Rate || w.rooms > firstRoom {
		return d + cooling
	}
	return d
}

// await lets time pass until the moment of a step is there.
func (w *world) await(i int) {
	met := &w.minted
	switch w.h.Steps[i].When {
	case Now:
		return
	case Soon:
		w.run(time.Second)
		return
	case Settled:
		w.run(5 * time.Second)
		return
	case Taken:
		met = &w.taken
	}
	wait := patience
	if w.rooms > firstRoom {
		wait += cooling
	}
	w.runUntil(wait, func() bool { return *met || w.over() })
	w.result.Useless = w.result.Useless || !*met
}

// heal has all come back that can, and all visitors go home. Then everything has to add up.
func (w *world) heal() {
	for _, m := range w.nodes {
		w.startAgain(m)
	}
	w.homing = true
	w.run(homeward)
	w.bury()
	end := w.now + w.longer(settling)
	if slices.ContainsFunc(w.nodes, (*machine).lost) {
		end = w.now + settling + cooling
	}
	for why := "nothing was looked at"; why != "" && !w.over(); {
		w.run(time.Second)
		if why = w.judge.settled(); why != "" && w.now >= end {
			w.broken("when all is well again: " + why)
		}
	}
}
