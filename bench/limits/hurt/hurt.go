//go:build linux

// Package hurt has clients come to a mesh of real ropeline processes, three sites of two
// nodes, with a rate limit over all of them, and hurts it meanwhile. The site behind the mesh
// counts what reaches it. As root it cuts real links.
package hurt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// Entry is the measurement.
func Entry() measurement.Entry {
	return measurement.Entry{
		Name: "limit-faults", Page: "rate-limits-measured.md",
		Question: "What passes a rate limit of a mesh that is hurt?",
		Method:   "Six real processes in three sites, a limit over the mesh, one client that comes far too often and others that keep to it; the site counts what reaches it.",
		Units: []measurement.Unit{
			{Name: "broken", Meaning: "what else came of it than has to", Better: "lower", Exact: true},
			{Name: "limit", Meaning: "requests in a period that the limit allows"},
			{Name: "before", Meaning: "the most of who comes too often that reached the site in a period before the fault"},
			{Name: "meanwhile", Meaning: "the same from its beginning to a period after its end"},
			{Name: "after", Meaning: "the same after that"},
			{Name: "may", Meaning: "how many may before and after: the limit, and what comes until all have heard of a request"},
			{Name: "may-meanwhile", Meaning: "how many may meanwhile: the limit for each part of the mesh that counts for itself"},
			{Name: "honest", Meaning: "requests of others, who keep to the limit"},
			{Name: "honest-limited", Meaning: "of these, limited", Better: "lower", Exact: true},
		},
		Bounds: []measurement.Bound{{Row: "all", Unit: "broken", Most: measurement.NoneAtAll, Text: "what did not hold"}},
		Quick:  []string{"run=every node killed", "period=6s"},
		New: func(f *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			var o options
			only := f.String("run", "", "only faults whose names contain this text")
			f.StringVar(&o.binary, "faulty", "", "ropeline, built with the tag faults (default: built now)")
			f.BoolVar(&o.loopback, "loopback", false, "cut by proxies, even where real links could be")
			f.DurationVar(&o.period, "period", 10*time.Second, "period of the limit in which faults are tried")
			return func(ctx context.Context, r *measurement.Run) error { return measure(ctx, o, *only, r) }
		},
	}
}

// errBroken says that a promise was broken; which one stands below the table.
var errBroken = errors.New("not everything held")

func measure(ctx context.Context, o options, only string, run *measurement.Run) (err error) {
	if o.dir, err = os.MkdirTemp("", "ropeline-hurt-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	if o.binary == "" {
		if o.binary, err = rig.Built(ctx, rig.Ropeline, "faults"); err != nil {
			return err
		}
	}
	o.out = run.Log
	sum := 0
	for _, f := range faults(o.period) {
		if !strings.Contains(f.name, only) {
			continue
		}
		r, err := execute(ctx, f, o)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		run.Tell("%s: %v", f.name, r.values())
		run.Add(r.name(), r.values())
		for _, why := range r.broken() {
			run.Note("**%s is broken**: %s", f.name, why)
			sum++
		}
	}
	run.Add("all", measurement.Values{"broken": float64(sum)})
	if sum > 0 {
		return errBroken
	}
	return nil
}
