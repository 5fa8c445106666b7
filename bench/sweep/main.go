// Command sweep runs each policy through many schedules in which the moment of a crowd, of a
// cut and of its end are drawn at random, and reports the worst that it finds.
//
// A crowd that comes at one chosen moment says little about a policy: what a cut costs
// depends on whether the crowd comes before the cut, before or after others notice it, or
// as it heals. Who is inside is what the simulator counts by itself, and is compared with
// the limit that the room is given; what nodes say of themselves is not asked.
//
//	go run ./bench/sweep -n 10000 -page docs/policies.md
//	go run ./bench/sweep -policy counter -seed 17 -n 1
//
// The exit code is 1 if escrow, even or counter went further over a limit than bounds allow.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/docpage"
	"github.com/ropeline/ropeline/node/room"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// policies are those that are swept, in the order of the table.
func policies() []room.Policy {
	return []room.Policy{room.Escrow, room.Even, room.Counter, room.Curve}
}

type options struct {
	n       int
	seed    uint64
	policy  string
	page    string
	workers int
	all     bool
}

func command(args []string, out, errOut io.Writer) int {
	var o options
	f := flag.NewFlagSet("sweep", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.IntVar(&o.n, "n", 1000, "how many schedules for each policy")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the first schedule; the next one has the next number")
	f.StringVar(&o.policy, "policy", "", "only this `policy`; empty: all of them")
	f.StringVar(&o.page, "page", "", "the `file` to write the table into; empty: print it")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "how many schedules run at once")
	f.BoolVar(&o.all, "v", false, "print each schedule that went over a limit")
	if err := f.Parse(args); err != nil {
		return 2
	}
	which := policies()
	if o.policy != "" {
		which = slices.DeleteFunc(which, func(p room.Policy) bool { return string(p) != o.policy })
	}
	if len(which) == 0 || f.NArg() > 0 || o.n < 1 || o.workers < 1 {
		fmt.Fprintln(errOut, "sweep: want flags only, a policy that divides a limit, and at least one schedule and one worker")
		return 2
	}
	debug.SetGCPercent(800) // a run makes much garbage and keeps little
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	bad := 0
	var sums []*summary
	for _, p := range which {
		start := time.Now()
		sum, err := sweep(ctx, o, p, out)
		if err != nil {
			fmt.Fprintln(errOut, "sweep:", err)
			return 1
		}
		fmt.Fprintf(errOut, "%s: %d schedules in %v, %d beyond bounds\n", p, sum.runs, time.Since(start).Round(time.Second), sum.broken)
		sums = append(sums, sum)
		bad += sum.broken
	}
	if err := docpage.Write(out, o.page, "make sweep", table(sums)); err != nil {
		fmt.Fprintln(errOut, "sweep:", err)
		return 1
	}
	if bad > 0 {
		return 1
	}
	return 0
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
