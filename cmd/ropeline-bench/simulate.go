package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/bench/sim/input"
	"github.com/ropeline/ropeline/cmd/cli"
)

// simulateOptions is what the flags of the command say beyond the run itself.
type simulateOptions struct {
	cfg      sim.Config
	trace    string
	arrivals string
	scale    float64
	begin    time.Duration
	faults   []string
	command  string // that does the same again
}

func newSimulateCommand() *cobra.Command {
	var o simulateOptions
	cmd := &cobra.Command{
		Use:   "simulate --arrivals SHAPE | --trace FILE",
		Short: "Run a whole mesh in virtual time and measure how it keeps its limits",
		Long: `Runs whole meshes of nodes, the same code that "ropeline run" runs, in virtual
time, with made-up visitors, network, clocks and failures. An observer that sees
everything compares what the mesh does with what it should have done.

Visitors come from a file (--trace: requests per minute) or from a shape
(--arrivals):
  uniform:10000/30m       10000 visitors evenly over 30 minutes
  flash:10000/30m,at=5m,in=1m,part=0.8
                          of them 80 % in the minute from 5m on

What goes wrong is said by --fault, as often as needed:
  partition:site=2,from=30m,for=10m     crash:node=1.2,at=45m,for=1m
  skew:node=3.1,by=3s                   pause:node=1.1,at=10m,for=30s
  link:site=1,peer=2,from=5m,for=5m,by=200ms,loss=0.1
  disk-full:node=1.2,from=5m,for=1m     disk-slow:site=1,from=5m,for=1m,by=300ms
  limits:node=2.1,at=10m,active=500,rate=300
  wipe and leave as crash, disk-fail as disk-full. hand-over:node=1.2,at=20m leaves
  for good, join:node=1.2,at=5m comes later than the others, and declare:node=1.2,at=9m
  says that what a wipe has made of that node is dead. remake:node=1.2,at=9m,for=10s has
  the room deleted there, and made again 10 s later. Sites and nodes count from 1; node
  1.2 is the second of site 1.

What came of it is printed as a JSON object, with the command that makes the same run
again. docs/simulator.md explains every figure.`,
		Example: `  ropeline-bench simulate --arrivals uniform:10000/30m --total-active-users 200 --new-users-per-minute 200 --stay 1m
  ropeline-bench simulate --trace worldcup98-0707.csv --scale 0.003 --sites 5 --nodes 3 --rotate 20m \
    --total-active-users 1000 --new-users-per-minute 500 --fault partition:site=2,from=2h,for=12m
  ropeline-bench simulate --arrivals uniform:6000/20m --sites 2 --nodes 3 --total-active-users 300 --new-users-per-minute 300 \
    --fault disk-full:node=1.1,from=5m,for=2m --fault wipe:node=2.2,at=8m,for=30s --fault declare:node=2.2,at=10m`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd.Flags()); err != nil {
				return cli.UsageError{Err: err}
			}
			return runSimulate(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	simulateFlags(cmd.Flags(), &o)
	cmd.Flags().SortFlags = false
	return cmd
}

// complete reads what the flags name, fills in what follows from them together,
// and refuses what cannot be run.
func (o *simulateOptions) complete(flags *pflag.FlagSet) error {
	if !flags.Changed("seed") {
		o.cfg.Seed = uint64(rand.Uint32()) // short, to be typed again
	}
	o.command = sameAgain(flags, o.cfg.Seed)
	var missing []string
	for _, name := range []string{"total-active-users", "new-users-per-minute"} {
		if !flags.Changed(name) {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s missing: a room without limits is none", strings.Join(missing, " and "))
	}
	traffic, err := o.traffic()
	if err != nil {
		return err
	}
	o.cfg.Arrivals = traffic
	for _, text := range o.faults {
		f, err := parseFault(text)
		if err != nil {
			return fmt.Errorf("--fault %q: %w", text, err)
		}
		o.cfg.Faults = append(o.cfg.Faults, f)
	}
	if err := o.cfg.Check(); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), sim.ErrConfig.Error()+": ", ""))
	}
	return nil
}

// traffic returns who comes when.
func (o *simulateOptions) traffic() (*input.Traffic, error) {
	var traffic *input.Traffic
	var err error
	switch {
	case (o.trace == "") == (o.arrivals == ""):
		return nil, errors.New("who comes? Give one of --trace FILE and --arrivals SHAPE, such as --arrivals uniform:10000/30m")
	case o.trace != "":
		traffic, err = openTrace(o.trace)
	default:
		traffic, err = input.ParseShape(o.arrivals)
		if err != nil {
			err = fmt.Errorf("--arrivals: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	if o.begin > 0 {
		if traffic, err = traffic.From(o.begin); err != nil {
			return nil, fmt.Errorf("--begin: %w", err)
		}
	}
	if o.scale != 1 {
		if traffic, err = traffic.Scaled(o.scale); err != nil {
			return nil, fmt.Errorf("--scale: %w", err)
		}
	}
	return traffic, nil
}

func openTrace(path string) (*input.Traffic, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	defer f.Close()
	traffic, err := input.ReadTrace(f, path)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	return traffic, nil
}

// memoryToUse is up to where a simulation trades memory for time.
const memoryToUse = 3 << 30

// collectSeldom has garbage collected when there is four times as much of it as
// of what is used: a simulation makes much of it and ends soon. Beyond
// memoryToUse it is collected as often as it takes. Who sets GOGC or GOMEMLIMIT
// is left to it.
func collectSeldom() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(memoryToUse)
	}
}

// runSimulate runs what o says. Only the result goes to out: it follows from the
// command alone, to the byte.
func runSimulate(ctx context.Context, o simulateOptions, out, errOut io.Writer) error {
	collectSeldom()
	r, err := sim.Run(ctx, o.cfg)
	if err != nil {
		return fmt.Errorf("simulate: %w\nThe same again: %s", err, o.command)
	}
	told := json.NewEncoder(out)
	told.SetEscapeHTML(false)
	told.SetIndent("", "  ")
	if err := told.Encode(simulated{o.command, r}); err != nil {
		return err
	}
	return o.judge(r, errOut)
}

// simulated is what is printed of a run.
type simulated struct {
	Command string `json:"command"` // that makes the same run again
	*sim.Result
}

// mostViolations bounds what is printed: a thousand broken promises are seldom
// more telling than the first.
const mostViolations = 10

// judge fails if the mesh broke a promise.
func (o *simulateOptions) judge(r *sim.Result, errOut io.Writer) error {
	if len(r.Violations) == 0 {
		return nil
	}
	for i, v := range r.Violations {
		if i == mostViolations {
			fmt.Fprintf(errOut, "… and %d more\n", len(r.Violations)-i)
			break
		}
		fmt.Fprintln(errOut, v)
	}
	return fmt.Errorf("%d promises were broken\nThe same again: %s", len(r.Violations), o.command)
}
