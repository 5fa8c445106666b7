//go:build linux

package faults

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/faults/check"
	"github.com/ropeline/ropeline/bench/faults/record"
)

// Figures of package node/ticket, on which this one does not lean: what it is to find
// out must not follow from the code that it judges. A test sees that they are those.
const (
	guard     = 400 * time.Millisecond // how far clocks may be apart, and a place rests after a session
	loanValid = 3 * time.Second        // how long tickets are lent to a site's counter
	takeUp    = time.Second            // how long a ticket waits for its visitor
)

// findings is what the records of a run say.
type findings struct {
	tickets  check.Tickets
	numbers  check.Numbers
	moves    check.Moves
	active   check.Active
	rate     check.Rate
	resting  check.Taken   // places of passes, and those that rest for the guard after one
	taken    check.Taken   // the same, of sessions, which last longer than the pass tells
	greatest check.Limit   // of what operators have set
	pause    time.Duration // without any new visitor
	broken   []string      // what is wrong, in words
	strict   []string      // what only a policy promises that does not let the limit be passed
}

// judge reads the records of a run of a room. The limits are those that operators have
// set, never what nodes say of theirs.
func judge(sources []record.Source, room roomArgs, limits check.Limits) (*findings, error) {
	f := &findings{
		active: check.Active{Limits: limits}, rate: check.Rate{Limits: limits},
		resting: check.Taken{Guard: guard}, taken: check.Taken{Guard: guard, Session: room.extends()},
	}
	for _, l := range limits {
		f.greatest.Active, f.greatest.PerMinute = max(f.greatest.Active, l.Active), max(f.greatest.PerMinute, l.PerMinute)
	}
	var last int64
	for e, err := range record.Merge(sources) {
		if err != nil {
			return nil, err
		}
		if e.Kind == record.Entered {
			if last > 0 {
				f.pause = max(f.pause, time.Duration(e.At-last))
			}
			last = max(last, e.At)
		}
		f.numbers.Add(e, f.tickets.Add(e))
		f.moves.Add(e)
		f.active.Add(e)
		f.resting.Add(e)
		f.taken.Add(e)
		f.rate.Add(e)
	}
	f.broken = slices.Concat(f.tickets.Duplicates, f.moves.Wrong, f.numbers.Wrong())
	if f.tickets.Given == 0 {
		f.broken = append(f.broken, "no ticket was given at all")
	}
	if n := f.active.Borrowed; n > 0 {
		f.broken = append(f.broken, fmt.Sprintf("%d sessions were borrowed, in a room that does not allow it", n))
	}
	if a := &f.active; a.Beyond > 0 {
		f.strict = append(f.strict, fmt.Sprintf("%d active at one time, %v in all above the limit of %d", a.Allowed+a.Beyond, a.Over.Round(time.Millisecond), a.Allowed))
	}
	if r := &f.rate; r.Beyond > 0 {
		f.strict = append(f.strict, fmt.Sprintf("%d new within 60 s, the limit is %d", r.Allowed+r.Beyond, r.Allowed))
	}
	return f, nil
}

// settle waits until the rights that all nodes hold are those that were made,
// neither more nor fewer, and returns what is wrong if they never are. Rights on
// the move are with nobody for a moment, and never with two.
func (r *run) settle() (wrong []string) {
	if !r.strict() {
		return nil
	}
	last := r.limits[len(r.limits)-1]
	limits := [2]int64{int64(last.Active), int64(last.PerMinute)}
	var held, made [2]int64
	if r.until(cmp.Or(r.Settle, 10*time.Second), 50*time.Millisecond, func() bool {
		held, made = [2]int64{}, [2]int64{}
		for _, n := range r.mesh.Nodes {
			if is := r.rights(n); n.Running() && is != nil {
				held[0], held[1] = held[0]+is.Held.Places, held[1]+is.Held.Rate
				made = [2]int64{max(made[0], is.Minted.Places), max(made[1], is.Minted.Rate)}
			}
		}
		return held == limits && made == limits
	}) {
		return nil
	}
	r.note("%d places and %d rate rights are held by the nodes, %d and %d were made, the limits are %d and %d",
		held[0], held[1], made[0], made[1], limits[0], limits[1])
	if r.Loses && held[0] < limits[0] && made == limits {
		return nil
	}
	return r.seen[len(r.seen)-1:]
}

// checkFull: without a fault nobody is thrown out, and the room gets full. A place that
// rests until it may be given again is no free one, so full goes by places that are
// taken. Were these more than there are, the measure would be too kind.
func checkFull(r *run) (wrong []string) {
	if n := r.loaded.SessionsLost; n > 0 {
		wrong = append(wrong, fmt.Sprintf("%d visitors lost their session though nothing happened", n))
	}
	if !r.strict() {
		return wrong
	}
	taken, limit := r.found.taken.Peak, r.Room.active
	r.note("%d places of %d taken, %d of them by passes and the guard after these", taken, limit, r.found.resting.Peak)
	if taken < limit*97/100 {
		wrong = append(wrong, fmt.Sprintf("of the room of %d never more than %d places were taken", limit, taken))
	}
	if taken > limit {
		wrong = append(wrong, fmt.Sprintf("%d places of a room of %d count as taken: one is given again before the guard is over, or counted for too long", taken, limit))
	}
	return wrong
}
