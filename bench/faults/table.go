//go:build linux

package faults

import (
	"fmt"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/load"
)

// result is one line of the table, and all that is known of it.
type result struct {
	Name     string      `json:"name"`
	Fault    string      `json:"fault"`
	Injected string      `json:"injected"`
	Policy   string      `json:"policy"`
	Runs     int         `json:"runs"`
	Faults   int         `json:"faults"` // how often something was done to the mesh
	Seconds  float64     `json:"seconds"`
	Seed     uint64      `json:"seed"`
	Found    *findings   `json:"found,omitempty"`
	Load     load.Report `json:"load"`
	Seen     []string    `json:"seen,omitempty"`
	Verdict  string      `json:"verdict"` // held, broken, failed or skipped
	Why      []string    `json:"why,omitempty"`
}

// resultOf puts down what a run came to. err is why it could not be finished.
func resultOf(s scenario, r *run, err error, o options, took time.Duration) result {
	res := result{Name: s.Name, Fault: s.Fault, Injected: s.Injected, Policy: o.policy, Runs: 1, Seed: o.seed, Seconds: took.Seconds(), Verdict: "held"}
	if s.Skip != "" {
		res.Verdict, res.Why, res.Runs = "skipped", []string{s.Skip}, 0
		return res
	}
	if r != nil {
		res.Faults, res.Found, res.Load, res.Seen = len(r.marks), r.found, r.loaded, r.seen
		if res.Why = r.broken(); len(res.Why) > 0 {
			res.Verdict = "broken"
		}
	}
	if err != nil {
		res.Verdict, res.Why = "failed", append(res.Why, err.Error())
	}
	return res
}

// add takes in another run of the same scenario: counts are summed, of peaks the
// highest is kept, and of verdicts the worst.
func (r *result) add(other result) {
	r.Runs += other.Runs
	r.Faults += other.Faults
	r.Seconds += other.Seconds
	r.Seen = append(r.Seen, other.Seen...)
	r.Why = append(r.Why, other.Why...)
	if r.Verdict == "held" {
		r.Verdict = other.Verdict
	}
	if f, g := r.Found, other.Found; f != nil && g != nil {
		f.Tickets, f.Duplicates, f.Late = f.Tickets+g.Tickets, f.Duplicates+g.Duplicates, f.Late+g.Late
		f.Transfers, f.Histories, f.Calls = f.Transfers+g.Transfers, f.Histories+g.Histories, f.Calls+g.Calls
		f.Peak, f.PeakBorrowed, f.RatePeak = max(f.Peak, g.Peak), max(f.PeakBorrowed, g.PeakBorrowed), max(f.RatePeak, g.RatePeak)
		f.Beyond, f.PeakResting, f.PeakTaken = max(f.Beyond, g.Beyond), max(f.PeakResting, g.PeakResting), max(f.PeakTaken, g.PeakTaken)
		f.Over, f.Pause = f.Over+g.Over, max(f.Pause, g.Pause)
	}
	r.Load.OrderError = max(r.Load.OrderError, other.Load.OrderError)
	r.Load.SessionsLost += other.Load.SessionsLost
	r.Load.PlacesLost += other.Load.PlacesLost
}

// row returns the line of a markdown table.
func (r result) row() string {
	seen := "–"
	if f := r.Found; f != nil {
		parts := []string{
			fmt.Sprintf("%d tickets, %d twice", f.Tickets, f.Duplicates),
			fmt.Sprintf("active %d of %d", f.Peak, f.Limit),
			fmt.Sprintf("new in 60 s %d of %d", f.RatePeak, f.RateLimit),
		}
		parts = append(parts, fmt.Sprintf("longest pause %.1f s", f.Pause.Seconds()), fmt.Sprintf("%d transfers", f.Transfers))
		if f.PeakBorrowed > 0 {
			parts = append(parts, fmt.Sprintf("%d borrowed", f.PeakBorrowed))
		}
		parts = append(parts, fmt.Sprintf("order error %.3f", r.Load.OrderError),
			fmt.Sprintf("%d sessions and %d places lost", r.Load.SessionsLost, r.Load.PlacesLost),
			fmt.Sprintf("%d calls in %d histories", f.Calls, f.Histories))
		seen = strings.Join(append(parts, r.Seen...), "; ")
	}
	verdict := r.Verdict
	if len(r.Why) > 0 {
		verdict += ": " + strings.Join(r.Why, "; ")
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %s | %s |\n", r.Name, cell(r.Fault), cell(r.Injected), r.Faults, cell(seen), cell(verdict))
}

// cell keeps a text on one line of a table.
func cell(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 600 {
		s = string(r[:600]) + " …"
	}
	return strings.ReplaceAll(s, "|", "\\|")
}

const tableHead = "| | fault | injected how | faults | what was seen | verdict |\n|---|---|---|---|---|---|\n"

// table returns results as markdown.
func table(results []result) string {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, r := range results {
		b.WriteString(r.row())
	}
	return b.String()
}
