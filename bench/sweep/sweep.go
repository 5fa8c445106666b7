// Package sweep runs each policy through many schedules in which the moment of a crowd, of a
// cut and of its end are drawn at random, and reports the worst that it finds.
//
// A crowd that comes at one chosen moment says little about a policy: what a cut costs
// depends on whether the crowd comes before the cut, before or after others notice it, or
// as it heals. Who is inside is what the simulator counts by itself, and is compared with
// the limit that the room is given; what nodes say of themselves is not asked.
package sweep

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/node/room"
)

// policies are those that are swept, in the order of the table.
func policies() []room.Policy {
	return []room.Policy{room.Escrow, room.Even, room.Counter, room.Curve}
}

type options struct {
	n       int
	seed    uint64
	policy  string
	workers int
}

// Entry is the measurement.
func Entry() measurement.Entry {
	e := measurement.Entry{
		Name: "sweep", Page: "policies.md",
		Question: "How far over a limit does each policy go at the worst moment of a crowd and a cut?",
		Method:   "Simulations in which the mesh, the crowd, cuts and their ends are drawn at random; the worst of each policy is a command line in the page.",
		Units: []measurement.Unit{
			{Name: "over-%", Meaning: "most that were inside beyond the limit", Better: "lower", Exact: true},
			{Name: "rate-over-%", Meaning: "most that came in within a minute beyond the limit", Better: "lower", Exact: true},
			{Name: "idle-%", Meaning: "median of what lay idle while somebody waited", Better: "lower", Exact: true},
			{Name: "beyond", Meaning: "schedules in which the policy went further over a limit than it may", Better: "lower", Exact: true},
		},
		Quick: []string{"n=50"},
		New: func(f *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			var o options
			f.IntVar(&o.n, "n", 10000, "how many schedules for each policy")
			f.Uint64Var(&o.seed, "seed", 1, "seed of the first schedule; the next one has the next number")
			f.StringVar(&o.policy, "policy", "", "only this policy; empty: all of them")
			f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "how many schedules run at once")
			return func(ctx context.Context, r *measurement.Run) error { return run(ctx, o, r) }
		},
	}
	for _, p := range policies() {
		if p != room.Curve { // which lets several nodes use the same place by design
			e.Bounds = append(e.Bounds, measurement.Bound{Row: rowOf(p), Unit: "beyond", Most: measurement.NoneAtAll, Text: "schedules in which " + string(p) + " goes further over a limit than it may"})
		}
	}
	return e
}

func rowOf(p room.Policy) string { return measurement.Row("policy", string(p)) }

func run(ctx context.Context, o options, r *measurement.Run) error {
	which := policies()
	if o.policy != "" {
		which = slices.DeleteFunc(which, func(p room.Policy) bool { return string(p) != o.policy })
	}
	if len(which) == 0 || o.n < 1 || o.workers < 1 {
		return fmt.Errorf("want a policy that divides a limit (escrow, even, counter or curve), and at least one schedule and one worker; got %q, %d and %d", o.policy, o.n, o.workers)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // a run makes much garbage and keeps little
	var sums []*summary
	for _, p := range which {
		start := time.Now()
		sum, err := sweep(ctx, o, p, r.Tell)
		if err != nil {
			return err
		}
		r.Tell("%s: %d schedules in %v, %d beyond bounds", p, sum.runs, time.Since(start).Round(time.Second), sum.broken)
		r.Add(rowOf(p), measurement.Values{"over-%": sum.active.pct, "rate-over-%": sum.rate.pct, "idle-%": sum.idle(), "beyond": float64(sum.broken)})
		sums = append(sums, sum)
	}
	return r.Table(table(sums))
}

// table is what the page shows: for each policy the worst that was found, then how to see it.
func table(sums []*summary) string {
	var b strings.Builder
	b.WriteString("| policy | schedules | over the limit in | worst, % | visitors over | over the rate in | worst, % | visitors over | most over for each node | fails beyond | median idle, % |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, s := range sums {
		fmt.Fprintf(&b, "| `%s` | %d | %d | %.1f | %s | %d | %.1f | %s | %.1f | %s | %.1f |\n", s.policy, s.runs,
			s.active.times, s.active.pct, s.active.text(), s.rate.times, s.rate.pct, s.rate.text(), s.perNode.over, boundText(s.policy), s.idle())
	}
	b.WriteString("\nThe worst of each, as commands:\n\n```\n")
	for _, s := range sums {
		var lines []string // one run may be the worst in more than one way
		for _, line := range []string{s.active.line, s.rate.line, s.perNode.line} {
			if line != "" && !slices.Contains(lines, line) {
				lines = append(lines, line)
				b.WriteString(line + "\n")
			}
		}
	}
	b.WriteString("```\n")
	return b.String()
}
