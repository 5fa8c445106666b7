// Command explore searches small meshes for a history that breaks the limit, and prints a
// short one if there is any.
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
//
// All of it uses as many processors as GOMAXPROCS says, and ends with the first history that breaks
// a promise. The exit code is 0 if nothing was found, 1 if something was, and 2 if the flags make no
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
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/explore/boot"
	"github.com/ropeline/ropeline/bench/explore/replay"
	"github.com/ropeline/ropeline/bench/explore/small"
	"github.com/ropeline/ropeline/node/ticket"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

func command(args []string, out, errOut io.Writer) int {
	f := flag.NewFlagSet("explore", flag.ContinueOnError)
	f.SetOutput(errOut)
	again := f.String("replay", "", "run this `history` of whole nodes alone, and print what happens in it")
	leaveOut := f.String("leave-out", "", "run without these `rules`, separated by commas: "+strings.Join(ticket.RuleNames(), ", "))
	only := f.String("only", "", "run one `search` alone: ledgers, bootstrap or nodes")
	states := f.Int("states", 1_000_000, "how many states are looked at in each small world, at most")
	length := f.Duration("for", 10*time.Minute, "how long whole nodes are searched")
	seed := f.Uint64("seed", 1, "seed of the order in which histories of whole nodes come, and of those that are drawn")
	if err := f.Parse(args); err != nil {
		return 2
	}
	rules, err := ticket.ParseRules(*leaveOut)
	if err == nil && (f.NArg() > 0 || !slices.Contains([]string{"", "ledgers", "bootstrap", "nodes"}, *only)) {
		err = errors.New("want flags only, and ledgers, bootstrap or nodes for -only")
	}
	var history replay.History
	if err == nil && *again != "" {
		history, err = replay.Parse(*again)
	}
	if err != nil {
		fmt.Fprintln(errOut, "explore:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	searches := map[string]func() (bool, error){
		"ledgers":   func() (bool, error) { return exhaust(ctx, small.Worlds(rules), *states, out), nil },
		"bootstrap": func() (bool, error) { return exhaust(ctx, boot.Worlds(), *states, out), nil },
		"nodes":     func() (bool, error) { return nodes(ctx, replay.Search{LeaveOut: rules, Seed: *seed}, *length, out) },
		"replay":    func() (bool, error) { return rerun(history, rules, out) },
	}
	names := []string{"ledgers", "bootstrap", "nodes"}
	if *again != "" {
		names = []string{"replay"}
	} else if *only != "" {
		names = []string{*only}
	}
	for _, name := range names {
		switch found, err := searches[name](); {
		case err != nil:
			fmt.Fprintln(errOut, "explore:", err)
			return 1
		case found:
			return 1
		}
	}
	return 0
}
