//go:build linux

package faults

import (
	"cmp"
	"fmt"
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
	Tickets      int           // given
	Duplicates   int           // numbers given to two visitors
	Limit        int           // total_active_users; the greatest that an operator has set
	Peak         int           // by tickets, in true time, without borrowed sessions
	PeakResting  int           // places of passes, and those that rest for the guard after one
	PeakTaken    int           // the same, of sessions, which last longer than the pass tells
	PeakBorrowed int           // borrowed sessions at one time
	Over         time.Duration // for how long there were more than the limits in force
	RateLimit    int           // new_users_per_minute, the greatest
	RatePeak     int           // new visitors in any 60 s
	Transfers    int           // of rights, from node to node
	Pause        time.Duration // without any new visitor

	// What is wrong, in words. Strict holds what only a policy promises that
	// does not let the limit be passed.
	Broken, Strict []string
}

// judge reads the records of a run of a room. The limits are those that operators have
// set, never what nodes say of theirs.
func judge(sources []record.Source, room roomArgs, limits check.Limits) (*findings, error) {
	f := new(findings)
	for _, l := range limits {
		f.Limit, f.RateLimit = max(f.Limit, l.Active), max(f.RateLimit, l.PerMinute)
	}
	var tickets check.Tickets
	var numbers check.Numbers
	var moves check.Moves
	active, rate := check.Active{Limits: limits}, check.Rate{Limits: limits}
	resting, taken := check.Taken{Guard: guard}, check.Taken{Guard: guard, Session: room.extends()}
	var last int64
	for e, err := range record.NewMerge(sources).All() {
		if err != nil {
			return nil, err
		}
		if e.Kind == record.Entered {
			if last > 0 {
				f.Pause = max(f.Pause, time.Duration(e.At-last))
			}
			last = max(last, e.At)
		}
		numbers.Add(e, tickets.Add(e))
		moves.Add(e)
		active.Add(e)
		resting.Add(e)
		taken.Add(e)
		rate.Add(e)
	}
	f.Tickets, f.Duplicates, f.Transfers = tickets.Given, tickets.Doubles, moves.Count
	f.Peak, f.PeakBorrowed, f.Over, f.RatePeak = active.Peak, active.PeakBorrowed, active.Over, rate.Peak
	f.PeakResting, f.PeakTaken = resting.Peak, taken.Peak
	f.Broken = append(append(tickets.Duplicates, moves.Wrong...), numbers.Wrong()...)
	if f.Tickets == 0 {
		f.Broken = append(f.Broken, "no ticket was given at all")
	}
	if f.PeakBorrowed > 0 && room.onPartition != partitionOpen {
		f.Broken = append(f.Broken, fmt.Sprintf("%d sessions were borrowed at one time, in a room that does not allow it", f.PeakBorrowed))
	}
	if active.Beyond > 0 {
		f.Strict = append(f.Strict, fmt.Sprintf("%d active at one time, %v in all above the limit of %d", active.Allowed+active.Beyond, f.Over.Round(time.Millisecond), active.Allowed))
	}
	if rate.Beyond > 0 {
		f.Strict = append(f.Strict, fmt.Sprintf("%d new within 60 s, the limit is %d", rate.Allowed+rate.Beyond, rate.Allowed))
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
	taken, limit := r.found.PeakTaken, r.Room.active
	r.note("%d places of %d taken, %d of them by passes and the guard after these", taken, limit, r.found.PeakResting)
	if taken < limit*97/100 {
		wrong = append(wrong, fmt.Sprintf("of the room of %d never more than %d places were taken", limit, taken))
	}
	if taken > limit {
		wrong = append(wrong, fmt.Sprintf("%d places of a room of %d count as taken: one is given again before the guard is over, or counted for too long", taken, limit))
	}
	return wrong
}
