package limit

import "math"

// What nodes tell each other, as it comes out of a table and goes into another one.

// Fresh is what only this node knows of a key.
type Fresh struct {
	Key   Key
	Slot  uint16
	Count uint32
}

// TakeFresh yields what was counted since the last call.
func (t *Table) TakeFresh(yield func(Fresh)) {
	for _, place := range t.dirty {
		e := t.at(place)
		if e == nil || e.flags&isQueued == 0 {
			continue // another key has the place by now
		}
		e.flags &^= isQueued
		if n := e.unsent; n > 0 {
			e.unsent = 0
			yield(Fresh{e.key, uint16(e.slot), n})
		}
	}
	t.dirty = t.dirty[:0]
}

// Begun is a key that has come to be limited.
type Begun struct {
	Key   Key
	Slot  uint16
	Until Millis
}

// TakeBegun yields the keys that have come to be limited since the last call, and are.
func (t *Table) TakeBegun(now Millis, yield func(Begun)) {
	for _, place := range t.begun {
		e := t.at(place)
		if e == nil || e.flags&isBegun == 0 {
			continue
		}
		e.flags &^= isBegun
		if e.limited(now) {
			yield(Begun{e.key, uint16(e.slot), e.until(now)})
		}
	}
	t.begun = t.begun[:0]
}

// Add counts what others have let pass, a while ago perhaps. Of what is forward others
// are to hear from this node.
func (t *Table) Add(k Key, r *Terms, n uint32, at, now Millis, forward bool) {
	e, place := t.find(k)
	if e == nil {
		e, place = t.place(k, r, now)
	}
	w := e.window(r.Period, now)
	w.add(n, r.Period, at)
	e.keep(w)
	if forward {
		t.counted(e, place, n)
	}
	if e.limited(now) {
		return
	}
	e.last = uint32(now)
	// Who is exactly at the limit has not gone beyond it, and is not to pay for that
	// with a timeout. Until few enough came, no timeout is needed.
	var more uint32
	if r.Timeout == 0 {
		more = 1
	}
	if w.Over(r.Requests, more, r.Period, now) {
		t.begin(e, place, r, now)
	}
}

// State is what a node knows of a key.
type State struct {
	Key    Key
	Window Window
	Until  Millis // when it is no longer limited; 0: it is not
}

// StateOf returns what is known of a key. An owner answers the nodes of its site with it, so
// it includes what other sites are still to hear: part of that is what the asking node has
// just told, and would lose again.
func (t *Table) StateOf(k Key, r *Terms, now Millis) (s State, ok bool) {
	e, _ := t.find(k)
	if e == nil {
		return State{}, false
	}
	return e.state(r.Period, now), true
}

func (e *entry) state(period, now Millis) State {
	s := State{Key: e.key, Window: e.window(period, now)}
	if e.limited(now) {
		s.Until = e.until(now)
	}
	return s
}

// Release forgets what others are to hear of some keys, as lost says: where nobody is there
// to hear it, and of those that the node owned and does not own any more. The new owner is told of it as part of what is known of the key:
// those who counted it tell that as well, and as a difference it would count twice.
func (t *Table) Release(lost func(Fresh) bool) {
	t.each(func(e *entry) {
		if e.unsent > 0 && lost(Fresh{e.key, uint16(e.slot), e.unsent}) {
			e.unsent = 0
		}
	})
}

// Learn takes over what another node knows of a key, if that is more. Each request is in
// it once at most, and so is each that only this node knows of: neither can make more of
// the requests than there were. Of a key that this node owns, what others are to hear is
// known to those who told of it, and may be in s as well; it is not added then. It reports whether
// s was more.
func (t *Table) Learn(s State, r *Terms, now Millis, owned bool) (more bool) {
	e, _ := t.find(s.Key)
	if e == nil {
		e, _ = t.place(s.Key, r, now)
	}
	mine, w := e.window(r.Period, now), s.Window
	w.Roll(r.Period, now)
	if !owned {
		n := min(e.unsent, mine.Current)
		w.Current, w.Previous = sum(w.Current, n), sum(w.Previous, e.unsent-n)
	}
	if more = w.Estimate(r.Period, now) > mine.Estimate(r.Period, now); more {
		mine = w
	}
	e.keep(mine)
	if until := s.Until; now < until && (!e.limited(now) || e.until(now) < until) {
		e.limit(until)
	}
	return more
}

// Report is what an operator is shown of a key.
type Report struct {
	Estimate          float64 // requests within the last period, as this node knows
	Previous, Current int
	Elapsed           Millis // of the period
	Limited           Millis // for how long it is still limited; 0: it is not

	Verdict Verdict // on the next request
}

// Report tells of a key, and changes nothing. counts says whether the next request does.
func (t *Table) Report(k Key, r *Terms, counts bool, now Millis) (rep Report, ok bool) {
	found, _ := t.find(k)
	if found == nil {
		return Report{}, false
	}
	more := uint32(0)
	if counts {
		more = 1
	}
	e := *found
	w := e.window(r.Period, now)
	rep = Report{
		Estimate: w.Estimate(r.Period, now), Previous: int(w.Previous), Current: int(w.Current),
		Elapsed: r.Period - w.left(r.Period, now),
	}
	switch {
	case e.limited(now):
		rep.Limited = e.until(now) - now
		rep.Verdict = e.refusal(now)
	case w.Over(r.Requests, more, r.Period, now):
		rep.Verdict = Verdict{Limited: true, Reset: r.lasts(&w, now).Duration(), Began: true}
	default:
		rep.Verdict = verdict(&w, r, now)
	}
	return rep, true
}

// Tally is how many keys of a rule a table has.
type Tally struct {
	Live    int // asked about within two periods
	Limited int
}

// Sweep looks at so many of the keys, one part after the other, and forgets those whose
// counts do not matter any more. It adds what it finds to tallies, which has an element
// for each slot, and reports whether that was the last part.
func (t *Table) Sweep(keys int, now Millis, tallies []Tally) (done bool) {
	from := t.unswept
	to := min(from+max(keys/ways, 1), len(t.sets))
	for i := from; i < to; i++ {
		for way := range t.sets[i] {
			e := &t.sets[i][way]
			switch {
			case e.key == 0:
			case e.limited(now):
				tallies[e.slot].Limited++
				tallies[e.slot].Live++
			case since(e.last, now) < 2*t.periods[e.slot]:
				tallies[e.slot].Live++
			default:
				e.key = 0
			}
		}
		t.settle(i)
	}
	if t.unswept = to; to < len(t.sets) {
		return false
	}
	t.unswept = 0
	return true
}

// Whole reports whether what is known of a key was taken as a whole, as TookWhole has said.
func (t *Table) Whole(k Key) bool {
	e, _ := t.find(k)
	return e != nil && e.flags&isWhole != 0
}

// TookWhole notes that what is known of a key was taken as a whole.
func (t *Table) TookWhole(k Key) {
	if e, _ := t.find(k); e != nil {
		e.flags |= isWhole
	}
}

// Known yields what is known of keys of which there is at least the part fewShare of the
// limit, or which are limited. What others are still to hear is left out: a new owner would
// count it twice. terms has the rules by their slots.
func (t *Table) Known(terms []*Terms, now Millis, yield func(slot uint16, s State)) {
	t.knownOf(0, len(t.sets), terms, now, func(slot uint16, s State, much bool) {
		if much {
			yield(slot, s)
		}
	})
}

// knownOf is Known of all keys in some sets that anything is known of.
func (t *Table) knownOf(from, sets int, terms []*Terms, now Millis, yield func(slot uint16, s State, much bool)) {
	for i := from; i < from+sets; i++ {
		for way := range t.sets[i] {
			e := &t.sets[i][way]
			r := terms[e.slot]
			if e.key == 0 || r == nil {
				continue
			}
			w := e.window(r.Period, now)
			limited, estimate := e.limited(now), w.Estimate(r.Period, now)
			if !limited && estimate == 0 {
				continue
			}
			s := e.state(r.Period, now)
			s.Window.subtract(e.unsent)
			yield(uint16(e.slot), s, limited || estimate >= math.Max(1, fewShare*float64(r.Requests)))
		}
	}
}
