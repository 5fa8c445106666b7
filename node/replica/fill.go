package replica

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// refill is how long an unanswered pull of a joiner is waited for.
	refill = time.Second
	// alone is how long a site in which nobody is ready waits for all to
	// answer before one of them goes ahead, and forsaken how long before each
	// goes by itself.
	alone    = 2 * time.Second
	forsaken = 10 * time.Second
)

// filling is the way of a joiner to its site's state.
type filling struct {
	done     bool
	since    time.Time            // when peers were first named; zero: not yet
	asked    time.Time            // when the last pulls were sent
	answered map[crdt.NodeID]bool // who has given all it had, and whether it was ready then
}

func (f *filling) begin(now time.Time) {
	if f.since.IsZero() {
		f.since = now
		f.answered = make(map[crdt.NodeID]bool)
	}
}

// Ready reports whether this node holds its site's state: a ready member of the
// site has given it all it had, or there is nobody to ask. Once ready, a
// replica stays so.
func (r *Replica) Ready() bool { return r.fill.done }

// checkReady settles the cases in which no ready member can fill us: nobody
// else is there, or all start at once. Then each asks all others and is ready
// when all have answered. Should some not answer, the one with the lowest id
// of those that are heard goes first and fills the rest.
func (r *Replica) checkReady(now time.Time) {
	if r.fill.done || r.fill.since.IsZero() {
		return
	}
	mates, lowest, missing := r.mates(), true, false
	for _, l := range mates {
		wasReady, answered := r.fill.answered[l.peer.ID]
		switch {
		case wasReady:
			r.fill.done = true
			return
		case l.peer.Ready || l.ready:
			missing, lowest = true, false
		case !answered:
			missing = true
		}
		silent := now.Sub(l.heard) > heardFor
		lowest = lowest && (silent || r.cfg.Self.Node.Compare(l.peer.ID) < 0)
	}
	waited := now.Sub(r.fill.since)
	r.fill.done = !missing || lowest && waited >= alone || waited >= forsaken
}

// fillPulls asks for the site's state: one ready member, or all when none is.
func (r *Replica) fillPulls(now time.Time) []Message {
	if r.fill.done || r.fill.since.IsZero() || now.Sub(r.fill.asked) < refill {
		return nil
	}
	r.fill.asked = now
	var ready, all []*link
	for _, l := range r.mates() {
		all = append(all, l)
		if l.peer.Ready || l.ready {
			ready = append(ready, l)
		}
	}
	if len(ready) > 0 {
		all = []*link{ready[r.cfg.Rand.IntN(len(ready))]}
	}
	var out []Message
	for _, l := range all {
		out = append(out, r.pullFrom(l, flagFill, now))
	}
	return out
}

// filled takes note of an answer to one of our pulls and goes on asking if it
// was not all. An answer that brought nothing is not followed up at once: the
// next round of pulls does.
func (r *Replica) filled(l *link, f *frame, progress bool, now time.Time) []Message {
	if r.fill.done || r.fill.since.IsZero() {
		return nil
	}
	if f.flags&flagMore != 0 {
		if !progress {
			return nil
		}
		return []Message{r.pullFrom(l, flagFill, now)}
	}
	r.fill.answered[l.peer.ID] = f.flags&flagReady != 0
	r.checkReady(now)
	return nil
}
