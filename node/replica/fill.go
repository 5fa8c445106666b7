package replica

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// refill is how long an unanswered pull of a joiner is waited for: up to slowest where answers come later than that.
	refill  = time.Second
	slowest = 8 * time.Second
	// alone is how long a site in which nobody is ready waits for all to
	// answer before one of them goes ahead, and forsaken how long before each
	// goes by itself, unless it is new and somebody is ready.
	alone    = 2 * time.Second
	forsaken = 10 * time.Second
)

// filling is the way of a joiner to its site's state.
type filling struct {
	done     bool
	since    time.Time            // when peers were first named; zero: not yet
	asked    time.Time            // when the last pulls were sent
	patience time.Duration        // how long these are waited for
	answered map[crdt.NodeID]bool // who has given all it had, and whether it was ready then; nil once done
	met      bool                 // somebody was seen who is ready
	heard    time.Time            // when the first piece of the last-writer map came; zero: none has

	strangers map[crdt.NodeID]*frame // the other way round: pulls of joiners that are not known yet
}

func (f *filling) begin(now time.Time) {
	if f.since.IsZero() {
		f.since = now
		f.answered = make(map[crdt.NodeID]bool)
	}
}

// Ready reports whether this node holds the state of its site and of the mesh: a ready member
// has given it all it had, or there is nobody to ask. Once ready, a replica stays so.
func (r *Replica) Ready() bool { return r.fill.done }

// checkReady settles the cases in which no ready member of the site can fill us: nobody
// else is there, or all start at once. Then each asks all others and is ready
// when all have answered. Should some not answer, the one with the lowest id
// of those that are heard goes first and fills the rest. What operators have set they may
// not know at all, if the site is new; so a ready member of another site has to answer, too.
func (r *Replica) checkReady(now time.Time) {
	if r.fill.done || r.fill.since.IsZero() {
		return
	}
	if r.fill.done = r.isFilled(now); r.fill.done {
		r.fill.answered = nil
	}
}

func (r *Replica) isFilled(now time.Time) bool {
	lowest, missing, some := true, false, false // some: a mate is ready
	for _, l := range r.mates() {
		wasReady, answered := r.fill.answered[l.peer.ID]
		switch {
		case wasReady:
			return true
		case l.peer.Ready || l.ready:
			missing, lowest, some = true, false, true
		case !answered:
			missing = true
		}
		silent := now.Sub(l.heard) > heardFor
		lowest = lowest && (silent || r.cfg.Self.Node.Compare(l.peer.ID) < 0)
	}
	waited := now.Sub(r.fill.since)
	late := waited >= forsaken && !(some && r.isNew())
	here := !missing || lowest && waited >= alone || late
	r.fill.met = r.fill.met || some || len(r.farReady()) > 0
	return here && (r.filledFromAfar() || waited >= forsaken && !r.isNew()) && !r.awaitsMesh()
}

// awaitsMesh reports whether this node has come to a mesh in which nobody knows it: it is new, has seen others who
// are ready, or has been told something, and none of them has given it all. It would not be waited for, and keep what
// others delete while it is out of reach.
func (r *Replica) awaitsMesh() bool {
	if !r.isNew() || !r.fill.met && r.lww.Len() == 0 {
		return false
	}
	for _, ready := range r.fill.answered {
		if ready {
			return false
		}
	}
	return true
}

// isNew reports whether this node has never been ready, as far as its disk tells: then it knows
// nothing of what operators have set, and goes on without that under no circumstances.
func (r *Replica) isNew() bool { return r.Written() == 0 }

// filledFromAfar reports whether a ready member of another site has given us all it had, or none
// is there.
func (r *Replica) filledFromAfar() bool {
	far := r.farReady()
	return len(far) == 0 || slices.ContainsFunc(far, func(p Peer) bool { return r.fill.answered[p.ID] })
}

// farReady returns the members of other sites that can fill us.
func (r *Replica) farReady() (all []Peer) {
	for _, p := range r.peers {
		if p.Ready && p.Site != r.cfg.Site {
			all = append(all, p)
		}
	}
	return all
}

// FillsFrom returns the members whose state this node waits for, in order of id; none once it
// is ready.
func (r *Replica) FillsFrom() (from []crdt.NodeID) {
	if r.fill.done {
		return nil
	}
	for _, l := range r.fillers() {
		from = append(from, l.peer.ID)
	}
	slices.SortFunc(from, crdt.NodeID.Compare)
	return from
}

// fillers returns whom we wait for: the ready members of our site; where there is none, all of
// it that have not answered, and the ready ones of other sites.
func (r *Replica) fillers() (all []*link) {
	var ready []*link
	for _, l := range r.mates() {
		if _, answered := r.fill.answered[l.peer.ID]; !answered {
			all = append(all, l)
		}
		if l.peer.Ready || l.ready {
			ready = append(ready, l)
		}
	}
	if len(ready) > 0 {
		return ready
	}
	if !r.filledFromAfar() {
		for _, p := range r.farReady() {
			all = append(all, r.list(p))
		}
	}
	return all
}

// fillPulls asks for the state: one ready member of the site, or all of it when none is, and
// one ready member of another site.
func (r *Replica) fillPulls(now time.Time) (out []Message) {
	if r.fill.done || r.fill.since.IsZero() || now.Sub(r.fill.asked) < max(refill, r.fill.patience) {
		return nil
	}
	r.fill.asked = now
	var ready []*link // one of whom is enough
	for _, l := range r.fillers() {
		if l.peer.Ready || l.ready {
			ready = append(ready, l)
		} else {
			out = append(out, r.pullFrom(l, flagFill, now))
		}
	}
	if len(ready) > 0 {
		l := ready[r.cfg.Rand.IntN(len(ready))]
		out = append(out, r.pullFrom(l, flagFill, now))
	}
	return out
}

// filled takes note of the answer to our last pull and goes on asking if it
// was not all, and we fill, or keep what has come of the map. An answer that brought nothing is not followed up at
// once: the next round of pulls does.
func (r *Replica) filled(l *link, f *frame, progress bool, now time.Time) []Message {
	l.answered = f.flags&flagMore == 0
	fills, more := !r.fill.done && !r.fill.since.IsZero(), f.flags&flagMore != 0
	if more && progress && (fills || r.transfer.from == l) {
		r.fill.asked = now
		return []Message{r.pullFrom(l, flagFill|flagEcho, now)}
	}
	if more || !fills {
		return nil
	}
	r.fill.answered[l.peer.ID] = f.flags&flagReady != 0
	r.checkReady(now)
	return nil
}

// filledLate takes note of an answer to an earlier pull. What of it has to come together was not taken, so it is not all
// that there is; and it is not followed up: whoever goes on by two answers has both be late for ever.
func (r *Replica) filledLate() {
	r.fill.patience = min(2*max(refill, r.fill.patience), slowest)
}

// Who gives a joiner all there is has it be known before, on its own disk: others forget what was deleted once all have
// it whom they know, and who has on its disk that the joiner came has on it what was deleted earlier, and tells it of
// that, or is waited for by all who forget later, who then know of the joiner as well.

func (r *Replica) knows(id crdt.NodeID) bool { return r.cfg.Knows == nil || r.cfg.Knows(id) }

// Strangers returns, in order of id, the joiners that have asked this node for all there is and were not known. Spreads
// answers them once they are.
func (r *Replica) Strangers() (all []Peer) {
	for id := range r.fill.strangers {
		all = append(all, r.links[id].peer)
	}
	return NewMembers(all)
}

// letIn answers the joiners that are known by now.
func (r *Replica) letIn(out []Message) []Message {
	for _, p := range r.Strangers() {
		if r.knows(p.ID) {
			out = append(out, r.message(p.ID, r.answerTo(r.links[p.ID], r.fill.strangers[p.ID])))
			delete(r.fill.strangers, p.ID)
		}
	}
	return out
}
