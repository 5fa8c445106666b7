//go:build linux

// Package scaling measures what a decision costs in processor time, by how many nodes a site
// has. There are twelve processes at any time, each of which gets as many requests as any other:
// twelve meshes of one node, six of two, and so on to one of twelve. So what differs is the mesh
// and not how busy the machine is, nor how cold its caches are. What nodes take while nobody asks
// is measured before and after, in the same meshes.
package scaling

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
)

// Entry is the measurement.
func Entry() measurement.Entry {
	e := measurement.Entry{
		Name: "scaling", Page: "measurements.md",
		Question: "Does a decision cost more where a site has more nodes?",
		Method: fmt.Sprintf("%d nodes on one core, the load and the site on the other: as many meshes of one node, half as many of two, and so on to one. Each node gets as many requests as any other. "+
			"Processor time of all nodes for each decision, without what they take while nobody asks.", processes),
		Units: []measurement.Unit{
			{Name: "cpu-sec/decision", Meaning: "processor time of all nodes for one decision", Better: "lower"},
			{Name: "of-one-node", Meaning: "the same by that of sites of one node in the same round", Better: "lower"},
			{Name: "idle-sec/s", Meaning: "processor time of a node while nobody asks", Better: "lower"},
		},
		Needs: []string{measurement.Ropeline, "taskset"}, Cores: []int{1}, Quick: []string{"rounds=1", "for=1s", "rate=100"},
		New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			var cfg config
			o.IntVar(&cfg.rounds, "rounds", 6, "how often each is measured; an interval takes six")
			o.Float64Var(&cfg.rate, "rate", 300, "requests per node and second")
			o.DurationVar(&cfg.lasts, "for", 3*time.Second, "how long each time")
			return func(ctx context.Context, r *measurement.Run) error {
				cfg.binary = r.Binary
				return run(ctx, cfg, r)
			}
		},
	}
	for _, kind := range kinds {
		for _, size := range sizes[1:] {
			e.Bounds = append(e.Bounds, measurement.Bound{Row: rowOf(size, kind), Unit: "of-one-node", Most: 1.1})
		}
	}
	return e
}

func rowOf(size int, kind string) string {
	return measurement.Row("nodes", fmt.Sprint(size), "kind", kind)
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

func run(ctx context.Context, cfg config, r *measurement.Run) error {
	site, err := startSite()
	if err != nil {
		return err
	}
	defer site.stop()
	var found figures
	for round := range cfg.rounds {
		for i := range sizes {
			size := sizes[(i+round)%len(sizes)] // not always the same one first
			r.Tell("round %d of %d: sites of %d", round+1, cfg.rounds, size)
			f, err := measure(ctx, cfg, size, site.url)
			if err != nil {
				return fmt.Errorf("sites of %d nodes: %w", size, err)
			}
			found.add(size, f)
		}
	}
	for round := range cfg.rounds {
		for _, size := range sizes {
			for _, kind := range kinds {
				f := found.of[size][round]
				r.Add(rowOf(size, kind), measurement.Values{"cpu-sec/decision": f.Decision[kind].Seconds(), "idle-sec/s": f.Idle.Seconds(),
					"of-one-node": float64(f.Decision[kind]) / float64(max(1, found.of[1][round].Decision[kind]))})
			}
		}
	}
	if r.Docs != "" {
		if err := found.draw(filepath.Join(r.Docs, "img")); err != nil {
			return err
		}
	}
	return r.TableWithResults(ctx, found.table(cfg))
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
