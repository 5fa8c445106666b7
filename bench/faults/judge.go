//go:build linux

package faults

import (
	"fmt"
	"time"

	"github.com/ropeline/ropeline/bench/faults/check"
	"github.com/ropeline/ropeline/bench/faults/record"
)

// findings is what the records of a run say, and what visitors saw.
type findings struct {
	Tickets      int           `json:"tickets"`          // given
	Duplicates   int           `json:"duplicates"`       // numbers given to two visitors
	Limit        int           `json:"limit"`            // total_active_users; the greatest that an operator has set
	Peak         int           `json:"peak_active"`      // by tickets, in true time, without borrowed sessions
	PeakResting  int           `json:"peak_resting"`     // places of passes, and those that rest for the guard after one
	PeakTaken    int           `json:"peak_taken"`       // the same, of sessions, which last longer than the pass tells
	PeakBorrowed int           `json:"peak_borrowed"`    // borrowed sessions at one time
	Beyond       int           `json:"beyond_limit_by"`  // the most that somebody came in, or went on by another right, beyond the limits in force
	Over         time.Duration `json:"over_ns"`          // for how long there were more
	RateLimit    int           `json:"rate_limit"`       // new_users_per_minute, the same
	RatePeak     int           `json:"peak_rate"`        // new visitors in any 60 s
	Transfers    int           `json:"transfers"`        // of rights, from node to node
	Histories    int           `json:"histories"`        // spans searched for an order that explains them
	Calls        int           `json:"history_calls"`    // in all of them
	Pause        time.Duration `json:"longest_pause_ns"` // without any new visitor
	Late         int           `json:"events_late"`      // events whose place in time had to be guessed

	// What is wrong, in words. Strict holds what only a policy promises that
	// does not let the limit be passed.
	Broken []string `json:"broken,omitempty"`
	Strict []string `json:"beyond_limit,omitempty"`

	crowded []string // what histories say of places: where the limit was passed that is said already
}

// judge reads the records of a run of a room. Histories are taken of the span after
// each mark. The limits are those that operators have set, never what nodes say of theirs.
func judge(sources []record.Source, room roomArgs, limits check.Limits, marks []int64) (*findings, error) {
	f := new(findings)
	for _, l := range limits {
		f.Limit, f.RateLimit = max(f.Limit, l.Active), max(f.RateLimit, l.PerMinute)
	}
	var tickets check.Tickets
	var moves check.Moves
	active, rate := check.Active{Limits: limits}, check.Rate{Limits: limits}
	resting, taken := check.Taken{Guard: guard}, check.Taken{Guard: guard, Session: room.extends()}
	histories := newSpans(f, marks, room.session)
	var last int64
	merge := record.NewMerge(sources)
	for e, err := range merge.All() {
		if err != nil {
			return nil, err
		}
		first := tickets.Add(e)
		if e.Kind == record.Entered {
			if last > 0 {
				f.Pause = max(f.Pause, time.Duration(e.At-last))
			}
			last = max(last, e.At)
		}
		moves.Add(e)
		active.Add(e)
		resting.Add(e)
		taken.Add(e)
		rate.Add(e)
		histories.add(e, first)
	}
	histories.finish()
	f.Tickets, f.Duplicates, f.Late = tickets.Given, tickets.Doubles, merge.Late
	f.Peak, f.PeakBorrowed, f.Over, f.RatePeak = active.Peak, active.PeakBorrowed, active.Over, rate.Peak
	f.PeakResting, f.PeakTaken = resting.Peak, taken.Peak
	f.Transfers = moves.Count
	f.Broken = append(append(f.Broken, tickets.Duplicates...), moves.Wrong...)
	if f.Tickets == 0 {
		f.Broken = append(f.Broken, "no ticket was given at all")
	}
	if f.PeakBorrowed > 0 && room.onPartition != partitionOpen {
		f.Broken = append(f.Broken, fmt.Sprintf("%d sessions were borrowed at one time, in a room that does not allow it", f.PeakBorrowed))
	}
	if f.Beyond = active.Beyond; f.Beyond > 0 {
		f.Strict = append(f.Strict, fmt.Sprintf("%d active at one time, %v in all above the limit of %d", active.Allowed+f.Beyond, f.Over.Round(time.Millisecond), active.Allowed))
	} else {
		f.Strict = append(f.Strict, f.crowded...)
	}
	if rate.Beyond > 0 {
		f.Strict = append(f.Strict, fmt.Sprintf("%d new within 60 s, the limit is %d", rate.Allowed+rate.Beyond, rate.Allowed))
	}
	return f, nil
}
