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
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

func command(args []string, out, errOut io.Writer) int {
	var s set
	f := flag.NewFlagSet("schedules", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.IntVar(&s.n, "n", 1000, "how many schedules to run; with -knock-out, of each rule")
	f.Uint64Var(&s.seed, "seed", 1, "seed of the first one; the next one has the next number")
	leaveOut := f.String("leave-out", "", "run without these `rules`, separated by commas: "+strings.Join(ticket.RuleNames(), ", "))
	knockOut := f.Bool("knock-out", false, "leave out each rule in turn, and print what catches it")
	f.StringVar(&s.story, "story", "", "run this `story` alone, or "+everyStory+" of them, -n times each: "+strings.Join(storyNames(), "; "))
	f.BoolVar(&s.verbose, "v", false, "print what happens in each schedule, step by step")
	f.IntVar(&s.workers, "workers", runtime.GOMAXPROCS(0), "how many schedules run at once")
	if err := f.Parse(args); err != nil {
		return 2
	}
	rules, err := ticket.ParseRules(*leaveOut)
	if err == nil && (f.NArg() > 0 || s.n < 1 || s.workers < 1) {
		err = fmt.Errorf("want flags only, and at least one schedule and one worker")
	}
	if _, known := stories()[s.story]; err == nil && s.story != "" && s.story != everyStory && !known {
		err = fmt.Errorf("no story %q; want %s, or one of %s", s.story, everyStory, strings.Join(storyNames(), "; "))
	}
	if err != nil {
		fmt.Fprintln(errOut, "schedules:", err)
		return 2
	}
	s.rules = rules
	debug.SetGCPercent(1600) // a schedule makes much garbage, keeps little and ends soon
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	kept, err := s.judge(ctx, *knockOut, out, errOut)
	if err != nil {
		fmt.Fprintln(errOut, "schedules:", err)
	}
	if err != nil || !kept {
		return 1
	}
	return 0
}

// progressEvery is after how many schedules a line says how far it is.
const progressEvery = 5000

// judge runs what is asked for, and reports whether that kept all promises.
func (s *set) judge(ctx context.Context, knockOut bool, out, errOut io.Writer) (kept bool, err error) {
	switch {
	case knockOut:
		// Those who fail are what is wanted. What a rule is for that none misses,
		// TestRulesAreNeeded and TestRulesInShort of node/ticket have to show.
		_, err := s.table(ctx, "rule left out", ticket.RuleNames(), func(s *set, name string) {
			if s.rules, err = ticket.ParseRules(name); err != nil {
				panic(err)
			}
		}, out, io.Discard)
		return true, err
	case s.story == everyStory:
		failed, err := s.table(ctx, "story", storyNames(), func(s *set, name string) { s.story = name }, out, errOut)
		return err == nil && slices.Max(failed) == 0, err
	}
	start := time.Now()
	t, err := s.run(ctx, out, func(t *tally) {
		if t.runs%progressEvery == 0 {
			fmt.Fprintf(errOut, "%d of %d after %v\n", t.runs, s.n, time.Since(start).Round(time.Second))
		}
	})
	t.tell(out, time.Since(start))
	return t.failed == 0, err
}
