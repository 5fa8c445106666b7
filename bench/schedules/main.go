// Command schedules runs whole meshes of shipped nodes through many random
// schedules of trouble, and demands that the limit holds in all of them.
//
// Each schedule follows from one number: sites, nodes, limits, visitors, a network
// that delays, loses, doubles and overtakes, clocks that differ, crashes, disks that
// are lost, full, slow or failing, pauses, cuts, nodes that join and leave, limits
// that change at two nodes at once, and just before whoever mints leaves, is killed or
// lost, policies that are switched, old passes and lost answers. Then all is healed and
// everybody goes home. What must hold is what [sim.Result] calls violations: it goes by the
// limits that operators set.
//
//	go run ./bench/schedules -n 100000
//	go run ./bench/schedules -seed 17 -n 1 -v
//	go run ./bench/schedules -knock-out
//	go run ./bench/schedules -story all
//
// Some of them are stories (-story): one change of who mints soon after a limit was
// changed, in a mesh that is calm but for that. In half of them the rate is the limit.
//
// A rule can be left out (-leave-out), or each in turn (-knock-out), to see that
// schedules notice. A few rules matter so seldom that tests of node/ticket have to show
// what they are for. The exit code is 0 if nothing failed, or with -knock-out if all
// could be run; 1 if not; 2 if the flags make no sense.
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
	"strings"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

type options struct {
	n        int
	seed     uint64
	leaveOut string
	knockOut bool
	story    string
	verbose  bool
	workers  int
}

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

func command(args []string, out, errOut io.Writer) int {
	var o options
	f := flag.NewFlagSet("schedules", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.IntVar(&o.n, "n", 1000, "how many schedules to run; with -knock-out, at most so many per rule")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the first one; the next one has the next number")
	f.StringVar(&o.leaveOut, "leave-out", "", "run without these `rules`, separated by commas: "+strings.Join(ticket.RuleNames(), ", "))
	f.BoolVar(&o.knockOut, "knock-out", false, "leave out each rule in turn, and print what catches it")
	f.StringVar(&o.story, "story", "", "run this `story` alone, or "+everyStory+" of them, -n times each: "+strings.Join(storyNames(), "; "))
	f.BoolVar(&o.verbose, "v", false, "print what happens in each schedule, step by step")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "how many schedules run at once")
	if err := f.Parse(args); err != nil {
		return 2
	}
	rules, err := ticket.ParseRules(o.leaveOut)
	if err == nil && (f.NArg() > 0 || o.n < 1 || o.workers < 1) {
		err = fmt.Errorf("want flags only, and at least one schedule and one worker")
	}
	if _, known := stories()[o.story]; err == nil && o.story != "" && o.story != everyStory && !known {
		err = fmt.Errorf("no story %q; want %s, or one of %s", o.story, everyStory, strings.Join(storyNames(), "; "))
	}
	if err != nil {
		fmt.Fprintln(errOut, "schedules:", err)
		return 2
	}
	debug.SetGCPercent(1600) // a schedule makes much garbage, keeps little and ends soon
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if o.knockOut {
		return knockOut(ctx, o, out, errOut)
	}
	if o.story == everyStory {
		return tellAll(ctx, o, rules, out, errOut)
	}
	start := time.Now()
	total := newTally()
	err = runAll(ctx, o, rules, errOut, func(r outcome) bool {
		total.add(r)
		r.tell(out)
		return true
	})
	total.tell(out, time.Since(start), o.workers)
	if err != nil {
		fmt.Fprintln(errOut, "schedules:", err)
	}
	if err != nil || total.failed > 0 {
		return 1
	}
	return 0
}
