//go:build linux

// Command faults runs meshes of real ropeline processes, hurts them while
// visitors ask, and checks from what every node has put on record that no ticket
// was given twice and no limit passed. docs/faults.md says how and what was seen.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/ropeline/ropeline/bench/docpage"
	"github.com/ropeline/ropeline/bench/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// errBroken says that a promise was broken; which one stands in the table.
var errBroken = errors.New("not everything held")

func command(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("faults", flag.ContinueOnError)
	o := options{out: out}
	var (
		list     = fs.Bool("list", false, "list the scenarios and end")
		which    = fs.String("run", "", "run the scenarios whose whole name this `expression` matches, such as F5 or F3.?")
		all      = fs.Bool("all", false, "run every scenario")
		soak     = fs.Duration("soak", 0, "mix all faults for so long")
		long     = fs.Duration("long", 20*time.Second, "how long cuts and pauses last that outlast every lease")
		jsonFile = fs.String("json", "", "write all figures to this `file`")
		page     = fs.String("page", "", "write the table into this markdown `file`")
		maker    = fs.String("maker", "make faults", "where in the page: between the marks of this `command`")
	)
	fs.StringVar(&o.binary, "binary", "", "ropeline, built with the tag faults (default: built now)")
	fs.StringVar(&o.dir, "dir", "", "`directory` for data, logs and records (default: a temporary one)")
	fs.StringVar(&o.policy, "policy", "escrow", "policy of the room")
	fs.Uint64Var(&o.seed, "seed", 1, "visitors, losses and the order of faults follow from it")
	fs.IntVar(&o.trials, "trials", 0, "repeat faults that can be at least so often")
	fs.BoolVar(&o.loopback, "loopback", false, "cut by proxies only, even where real links could be")
	fs.BoolVar(&o.keep, "keep", false, "keep data, logs and records of runs that held, too")
	if err := fs.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(scenarios(*long), *which, *all)
	if err != nil {
		return err
	}
	if *soak > 0 {
		chosen = append(chosen, soakScenario(*soak))
	}
	if *list || len(chosen) == 0 {
		for _, s := range append(scenarios(*long), soakScenario(time.Hour)) {
			fmt.Fprintf(out, "%-5s %s: %s%s\n", s.Name, s.Fault, s.Injected, map[bool]string{true: " (skipped)"}[s.Skip != ""])
		}
		return nil
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "ropeline-faults-"); err != nil {
			return err
		}
		defer func() { _ = os.Remove(o.dir) }() // stays if a run left something
	}
	if o.binary == "" {
		if o.binary, err = rig.Built(ctx, rig.Ropeline, "faults"); err != nil {
			return err
		}
		defer func() { _ = os.Remove(o.binary) }()
	}
	results, err := runAll(ctx, chosen, o)
	fmt.Fprint(out, "\n", table(results))
	if *jsonFile != "" {
		err = errors.Join(err, writeJSON(*jsonFile, results))
	}
	if *page != "" {
		err = errors.Join(err, docpage.Write(out, *page, *maker, table(results)))
	}
	return err
}

func choose(all []scenario, pattern string, every bool) ([]scenario, error) {
	if every {
		return all, nil
	}
	if pattern == "" {
		return nil, nil
	}
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return nil, err
	}
	var chosen []scenario
	for _, s := range all {
		if re.MatchString(s.Name) {
			chosen = append(chosen, s)
		}
	}
	if chosen == nil {
		return nil, fmt.Errorf("no scenario is called %s; -list names them", pattern)
	}
	return chosen, nil
}

// runAll runs one scenario after the other until ctx ends. What cannot be done
// here is skipped, and says why.
func runAll(ctx context.Context, chosen []scenario, o options) (results []result, err error) {
	for _, s := range chosen {
		res := runOne(ctx, s, o)
		if ctx.Err() != nil {
			return results, context.Cause(ctx)
		}
		results = append(results, res)
		fmt.Fprint(o.out, res.row())
		if res.Verdict == "broken" || res.Verdict == "failed" {
			err = errBroken
		}
	}
	return results, err
}

// runOne runs a scenario as often as it wants.
func runOne(ctx context.Context, s scenario, o options) (all result) {
	trials := 1
	if s.Trials > 0 {
		trials = max(s.Trials, o.trials)
	}
	var outages []*outage
	for trial := range trials {
		began := time.Now()
		var r *run
		var failed error
		if s.Skip == "" {
			r, failed = execute(ctx, s, o, trial)
			if errors.Is(failed, rig.ErrCannot) {
				s.Skip, failed = failed.Error(), nil
			}
		}
		if ctx.Err() != nil {
			return all
		}
		res := resultOf(s, r, failed, o, time.Since(began))
		if trial == 0 {
			all = res
		} else {
			all.add(res)
		}
		if r != nil {
			outages = append(outages, r.outages...)
		}
	}
	if len(outages) > 0 {
		seen, err := flow(outages)
		all.Seen = append(all.Seen, seen)
		if err != nil {
			all.Verdict, all.Why = "broken", append(all.Why, err.Error())
		}
	}
	return all
}
