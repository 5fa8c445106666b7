//go:build linux

// Command tickets holds the decisions about new visitors that three nodes of a site take with
// tickets beside those of a central room, which asks Redis with one call for each: in one
// run, by turns, on the same two processors. It writes a table into a page of the
// documentation, between two marks. It needs redis-server, of Debian's package redis-server;
// without it, only the nodes are measured, and the table says so.
//
//	taskset -c 0,1 go run ./bench/tickets -page docs/measurements.md
//
// The load is in the process of what it loads, and shares its processors: for the nodes
// because that is where requests meet them, for Redis because its clients do. What the load
// takes by itself is measured with decisions that do nothing.
package tickets

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/ropeline/ropeline/bench/docpage"
	"github.com/ropeline/ropeline/bench/machine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "tickets: %v\n", err)
		os.Exit(1)
	}
}

// options are what a run is to do.
type options struct {
	rounds   int           // how often each is measured
	lasts    time.Duration // how long each time
	session  time.Duration // how long visitors stay inside
	rate     float64       // visitors a second, at the nodes alone; 0: all is measured
	profiles string        // the folder for profiles; "": none are made
}

func run(ctx context.Context, out io.Writer, args []string) (err error) {
	fs := flag.NewFlagSet("tickets", flag.ContinueOnError)
	var o options
	fs.IntVar(&o.rounds, "rounds", 5, "how often each is measured")
	fs.DurationVar(&o.lasts, "lasts", 3*time.Second, "how long each time")
	fs.DurationVar(&o.session, "session", 3*time.Second, "how long visitors stay inside; as many leave as come after that time and half a second")
	fs.Float64Var(&o.rate, "rate", 0, "measure only the nodes, with so many visitors a second")
	fs.StringVar(&o.profiles, "profiles", "", "the `folder` to write profiles of the nodes at -rate into")
	page := fs.String("page", "", "the `file` to write the table into, and all figures beside it; empty: print it")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if o.rounds < 1 || o.lasts <= 0 || o.session <= 0 || o.rate < 0 {
		return errors.New("rounds, lasts and session are at least 1, and rate is not negative")
	}
	if o.rate > 0 {
		return atOneRate(ctx, out, o)
	}
	found, err := measure(ctx, o)
	if err != nil {
		return err
	}
	on := machine.Of(ctx, map[string][]string{"Redis": {"redis-server", "--version"}})
	return docpage.WriteResult(out, *page, "tickets", found.table(), docpage.Result{Maker: "make ticket-bench", Made: time.Now(), Machine: on, Figures: found})
}

// atOneRate has visitors come to the nodes at one rate, in rounds, and tells what came of
// it: for who looks for where time goes.
func atOneRate(ctx context.Context, out io.Writer, o options) (err error) {
	t := trial{options: o}
	defer func() { err = errors.Join(err, t.end()) }()
	if _, err := t.at(ctx, o.rate); err != nil {
		return err
	}
	if o.profiles != "" {
		finish, err := profile(o.profiles)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, finish()) }()
	}
	for range o.rounds {
		s, err := t.at(ctx, o.rate)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, s)
	}
	return nil
}

// profile begins to profile this process into a folder.
func profile(dir string) (finish func() error, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	cpu, err := os.Create(dir + "/cpu.pprof")
	if err != nil {
		return nil, err
	}
	runtime.SetMutexProfileFraction(100)
	runtime.SetBlockProfileRate(int(100 * time.Microsecond))
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		err := cpu.Close()
		for _, name := range []string{"allocs", "mutex", "block"} {
			err = errors.Join(err, lookup(name, dir))
		}
		return err
	}, nil
}

func lookup(name, dir string) error {
	f, err := os.Create(dir + "/" + name + ".pprof")
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup(name).WriteTo(f, 0), f.Close())
}
