//go:build linux

package faults

import (
	"fmt"
	"strings"
	"time"
)

// result is what all runs of a scenario came to: counts are summed, and of peaks the highest is kept.
type result struct {
	scenario
	faults           int // how often something was done to the mesh
	took             time.Duration
	found            findings
	order            float64 // visitors in the wrong order, as load.Report has it
	sessions, places int     // that visitors lost
	seen             []string
	broken           []string
	failed           error // why a run could not be finished
}

// add takes in a run. err is why it could not be finished; the run may be nil then.
func (x *result) add(r *run, err error) {
	if x.failed == nil {
		x.failed = err
	}
	if r == nil {
		return
	}
	x.faults += len(r.marks)
	x.seen, x.broken = append(x.seen, r.seen...), append(x.broken, r.broken()...)
	x.order = max(x.order, r.loaded.OrderError)
	x.sessions, x.places = x.sessions+r.loaded.SessionsLost, x.places+r.loaded.PlacesLost
	if g := r.found; g != nil {
		f := &x.found
		f.Limit, f.RateLimit = g.Limit, g.RateLimit
		f.Tickets, f.Duplicates, f.Transfers = f.Tickets+g.Tickets, f.Duplicates+g.Duplicates, f.Transfers+g.Transfers
		f.Peak, f.PeakBorrowed, f.RatePeak, f.Pause = max(f.Peak, g.Peak), max(f.PeakBorrowed, g.PeakBorrowed), max(f.RatePeak, g.RatePeak), max(f.Pause, g.Pause)
	}
}

func (x *result) bad() bool { return x.failed != nil || len(x.broken) > 0 }

func (x *result) verdict() string {
	switch {
	case x.Skip != "":
		return "skipped: " + x.Skip
	case x.failed != nil:
		return "failed: " + strings.Join(append(x.broken, x.failed.Error()), "; ")
	case len(x.broken) > 0:
		return "broken: " + strings.Join(x.broken, "; ")
	}
	return "held"
}

const tableHead = "| | fault | injected how | faults | what was seen | verdict |\n|---|---|---|---|---|---|\n"

// row returns the line of a markdown table.
func (x *result) row() string {
	parts := x.seen
	if f := x.found; f.Limit > 0 {
		borrowed := ""
		if f.PeakBorrowed > 0 {
			borrowed = fmt.Sprintf("%d borrowed; ", f.PeakBorrowed)
		}
		parts = append([]string{fmt.Sprintf("%d tickets, %d twice; active %d of %d; new in 60 s %d of %d; longest pause %.1f s; %d transfers; %sorder error %.3f; %d sessions and %d places lost",
			f.Tickets, f.Duplicates, f.Peak, f.Limit, f.RatePeak, f.RateLimit, f.Pause.Seconds(), f.Transfers, borrowed, x.order, x.sessions, x.places)}, parts...)
	}
	if parts == nil {
		parts = []string{"–"}
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %s | %s |\n", x.Name, cell(x.Fault), cell(x.Injected), x.faults, cell(strings.Join(parts, "; ")), cell(x.verdict()))
}

// cell keeps a text on one line of a table.
func cell(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 600 {
		s = string(r[:600]) + " …"
	}
	return strings.ReplaceAll(s, "|", "\\|")
}
