// Command explore searches small meshes for a history that breaks the limit, and prints the
// shortest that it has found.
//
// There are three searches. One goes through everything that can happen to the ledgers of two
// or three nodes, within a budget of operator's acts, stops and time; see package small. One goes
// through everything that can happen while nodes make a mesh, within a budget of stops and lost
// disks; see package boot. One replays whole nodes through operator's acts at exact moments, with
// deviations of network, disk and machine; see package replay.
//
//	go run ./bench/explore
//	go run ./bench/explore -leave-out fresh-mint
//	go run ./bench/explore -replay "abc/123: raise@2, m leave@1, t kill@1"
//	go run ./bench/explore -replay "rate abc/123: raise@2, leave@1"
//	go run ./bench/explore -replay "boot 2/12: a1: lose the disk, and start; a1: a round passes"
//
// The exit code is 0 if nothing was found, 1 if something was, and 2 if the flags make no
// sense. With -replay it says the same of that history.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/explore/boot"
	"github.com/ropeline/ropeline/bench/explore/replay"
	"github.com/ropeline/ropeline/node/ticket"
)

type options struct {
	replay   string
	leaveOut string
	only     string
	length   time.Duration
	states   int
	most     int
	seed     uint64
	workers  int
}

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

func command(args []string, out, errOut io.Writer) int {
	var o options
	f := flag.NewFlagSet("explore", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.StringVar(&o.replay, "replay", "", "run this `history` alone, and print what happens in it")
	f.StringVar(&o.leaveOut, "leave-out", "", "run without these `rules`, separated by commas: "+strings.Join(ticket.RuleNames(), ", "))
	f.StringVar(&o.only, "only", "", "run one `search` alone: ledgers, bootstrap or nodes")
	f.DurationVar(&o.length, "for", 10*time.Minute, "how long whole nodes are searched")
	f.IntVar(&o.states, "states", 1_000_000, "how many states are looked at in each small world, at most")
	f.IntVar(&o.most, "most", 10, "how many findings are enough; 0: as many as there are")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the order in which histories of whole nodes come, and of those that are drawn")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "how many run at once")
	if err := f.Parse(args); err != nil {
		return 2
	}
	rules, err := ticket.ParseRules(o.leaveOut)
	if err == nil && (f.NArg() > 0 || o.workers < 1 || o.most < 0 || !slices.Contains([]string{"", "ledgers", "bootstrap", "nodes"}, o.only)) {
		err = errors.New("want flags only, at least one worker, and ledgers, bootstrap or nodes for -only")
	}
	if err != nil {
		fmt.Fprintln(errOut, "explore:", err)
		return 2
	}
	if o.replay != "" {
		return again(o.replay, rules, out, errOut)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	found, err := explore(ctx, o, rules, out)
	switch {
	case err != nil:
		fmt.Fprintln(errOut, "explore:", err)
		return 1
	case found > 0:
		return 1
	}
	return 0
}

// explore runs the searches and returns how much they found.
func explore(ctx context.Context, o options, rules ticket.Rules, out io.Writer) (found int, err error) {
	for _, search := range []struct {
		name string
		run  func(context.Context, options, ticket.Rules, io.Writer) (int, error)
	}{{"ledgers", ledgers}, {"bootstrap", bootstraps}, {"nodes", nodes}} {
		if o.only != "" && o.only != search.name || o.most > 0 && found >= o.most {
			continue
		}
		more, err := search.run(ctx, o, rules, out)
		if found += more; err != nil {
			return found, err
		}
	}
	return found, nil
}

// again runs one history.
func again(text string, rules ticket.Rules, out, errOut io.Writer) int {
	if boot.IsHistory(text) {
		return againBoot(text, out, errOut)
	}
	h, err := replay.Parse(text)
	if err != nil {
		fmt.Fprintln(errOut, "explore:", err)
		return 2
	}
	r, err := replay.Run(h, rules, func(format string, a ...any) { fmt.Fprintf(out, format+"\n", a...) })
	switch {
	case err != nil:
		fmt.Fprintln(errOut, "explore:", err)
		return 1
	case r.Broken != "":
		return 1
	}
	fmt.Fprintf(out, "no promise was broken; %d were inside at most\n", r.Peak)
	return 0
}

// againBoot runs one history of a mesh that comes to be.
func againBoot(text string, out, errOut io.Writer) int {
	broken, err := boot.Replay(text, 0)
	switch {
	case err != nil:
		fmt.Fprintln(errOut, "explore:", err)
		return 2
	case broken != "":
		fmt.Fprintln(out, "BROKEN:", broken)
		return 1
	}
	fmt.Fprintln(out, "no promise was broken")
	return 0
}
