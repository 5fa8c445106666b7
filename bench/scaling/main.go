//go:build linux

// Command scaling measures what a decision costs in processor time, by how many nodes a site
// has. There are twelve processes at any time, each of which gets as many requests as any other:
// twelve meshes of one node, six of two, and so on to one of twelve. So what differs is the mesh
// and not how busy the machine is, nor how cold its caches are. What nodes take while nobody asks
// is measured before and after, in the same meshes. It writes a table into a page of the
// documentation, between two marks, and a picture. It needs taskset, of Debian's package
// util-linux, and two processors: nodes have one, the load and the site the other.
//
//	taskset -c 1 go run ./bench/scaling -binary ./ropeline -page docs/measurements.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/ropeline/ropeline/bench/docpage"
	"github.com/ropeline/ropeline/bench/machine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "scaling: %v\n", err)
		os.Exit(1)
	}
}

// processes is how many nodes there are at any time.
const processes = 12

// warm is for how long each kind asks before it is measured: all who wait have polled once.
var warm = map[string]time.Duration{inside: time.Second, waiting: spare * time.Second, fresh: time.Second}

// sizes are those of sites that are measured; they divide processes.
var sizes = []int{1, 2, 3, 6, 12}

// config says how long what is measured.
type config struct {
	binary string
	rounds int
	rate   float64 // requests per node and second
	lasts  time.Duration
}

func run(ctx context.Context, args []string) error {
	cfg := config{}
	fs := flag.NewFlagSet("scaling", flag.ContinueOnError)
	fs.StringVar(&cfg.binary, "binary", "./ropeline", "the `program` to run")
	fs.IntVar(&cfg.rounds, "rounds", 5, "how often each is measured")
	fs.Float64Var(&cfg.rate, "rate", 300, "requests per node and second")
	fs.DurationVar(&cfg.lasts, "lasts", 3*time.Second, "how long each time")
	page := fs.String("page", "", "the `file` to write the table into, and all figures beside it; empty: print it")
	picture := fs.String("plot", "", "the `file` to draw into, an SVG; empty: draw nothing")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		return fmt.Errorf("taskset is missing: %w", err)
	}
	site, err := startSite()
	if err != nil {
		return err
	}
	defer site.stop()
	var found figures
	for round := range cfg.rounds {
		for i := range sizes {
			size := sizes[(i+round)%len(sizes)] // not always the same one first
			fmt.Fprintf(os.Stderr, "round %d of %d: sites of %d\n", round+1, cfg.rounds, size)
			f, err := measure(ctx, cfg, size, site.url)
			if err != nil {
				return fmt.Errorf("sites of %d nodes: %w", size, err)
			}
			found.add(size, f)
		}
	}
	if *picture != "" {
		if err := found.draw(*picture); err != nil {
			return err
		}
	}
	return docpage.WriteResult(os.Stdout, *page, "scaling", found.table(cfg),
		docpage.Result{Maker: "make scaling", Made: time.Now(), Machine: machine.Of(ctx, nil), Figures: found.of})
}

// figure is what was measured of one size in one round, in processor time.
type figure struct {
	Idle     time.Duration            `json:"idle_ns_per_s"` // of one node for a second, while nobody asks
	Decision map[string]time.Duration `json:"decision_ns"`   // of all nodes for one decision of each kind, without that
	Asked    map[string]float64       `json:"asked_per_s"`   // requests per node and second
}

// measure starts as many meshes as there are processes for, and asks them.
func measure(ctx context.Context, cfg config, size int, site string) (f figure, err error) {
	g, err := startGroup(ctx, cfg.binary, size, site)
	defer func() { err = errors.Join(err, g.stop()) }()
	if err != nil {
		return f, err
	}
	f = figure{Decision: map[string]time.Duration{}, Asked: map[string]float64{}}
	visitors, err := newCrowd(ctx, cfg, g)
	if err != nil {
		return f, err
	}
	defer visitors.close()
	quiet := []time.Duration{}
	rest := func() error {
		used, span, err := g.used(ctx, func(ctx context.Context) error { return sleep(ctx, cfg.lasts) })
		quiet = append(quiet, time.Duration(float64(used)/span.Seconds()/processes))
		return err
	}
	if err := rest(); err != nil {
		return f, err
	}
	spent := map[string][2]float64{} // time, and decisions
	for _, kind := range kinds {
		if err := visitors.ask(ctx, kind, warm[kind]); err != nil {
			return f, err
		}
		visitors.answered.Store(0)
		visitors.turned.Store(0)
		used, span, err := g.used(ctx, func(ctx context.Context) error { return visitors.ask(ctx, kind, cfg.lasts) })
		if err != nil {
			return f, fmt.Errorf("%s: %w", kind, err)
		}
		n := float64(visitors.answered.Load())
		if turned := visitors.turned.Load(); float64(turned) > 0.05*n {
			return f, fmt.Errorf("%s: %d were answered otherwise, and %.0f as they should be: the machine is too busy", kind, turned, n)
		}
		f.Asked[kind] = n / processes / span.Seconds()
		spent[kind] = [2]float64{float64(used), n}
		f.Decision[kind] = span // until it is known what nodes take by themselves
	}
	if err := rest(); err != nil {
		return f, err
	}
	f.Idle = (quiet[0] + quiet[1]) / 2
	for kind, s := range spent {
		idle := float64(f.Idle) * processes * f.Decision[kind].Seconds()
		f.Decision[kind] = time.Duration((s[0] - idle) / s[1])
	}
	return f, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
