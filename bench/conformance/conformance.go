//go:build unix

// Package conformance puts real proxies in front of a site, each with the configuration
// that the documentation shows, has each ask a real node for verdicts, and visits the
// site through it.
package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
)

// options are those of a run.
type options struct {
	binary   string // ropeline
	caddy    string // the program
	examples string // where the configurations are
	open     bool   // the examples are to let everybody in where no node answers
}

// Entry is the measurement. Proxies that are not here are skipped, and the page needs a column for each.
func Entry() measurement.Entry {
	e := measurement.Entry{
		Name: "conformance", Page: "verdicts.md",
		Question: "What do visitors see, and what reaches the site, through each proxy that asks for verdicts?",
		Method:   "Real proxies, each with the configuration that the documentation shows, ask a real node about each request; visitors come through them in every state that a room can have.",
		Units: []measurement.Unit{
			{Name: "cases", Meaning: "what was tried through a proxy", Better: "higher", Exact: true},
			{Name: "broken", Meaning: "cases in which something else came of it than has to", Better: "lower", Exact: true},
		},
		Needs: []string{measurement.Ropeline},
		New: func(*pflag.FlagSet) func(context.Context, *measurement.Run) error {
			o := options{examples: "docs/examples"}
			return func(ctx context.Context, r *measurement.Run) error {
				o.binary, o.caddy = r.Binary, cmp.Or(r.Caddy, "caddy")
				columns, err := runAll(ctx, o, r)
				if err != nil {
					fmt.Fprint(r.Out, measurement.Aligned(table(columns)))
					return err
				}
				for _, c := range columns {
					r.Add(rowOf(c.of), measurement.Values{"cases": float64(len(rows())), "broken": float64(c.broken())})
				}
				return r.Table(table(columns))
			}
		},
	}
	for _, fe := range frontEnds() {
		e.Bounds = append(e.Bounds, measurement.Bound{Row: rowOf(fe), Unit: "broken", Most: measurement.NoneAtAll})
	}
	return e
}

func rowOf(fe frontEnd) string { return measurement.Row("proxy", fe.name) }

// runAll runs all cases with all proxies that are here, these beside each other: what takes long is
// waiting.
func runAll(ctx context.Context, o options, r *measurement.Run) (columns []column, err error) {
	all := frontEnds()
	seen, errs := make([]column, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, fe := range all {
		wg.Go(func() { seen[i], errs[i] = runFrontEnd(ctx, o, fe) })
	}
	wg.Wait()
	for i := range all {
		if errors.Is(errs[i], errNotHere) {
			r.Tell("skipped: %v", errs[i])
			continue
		}
		columns, err = append(columns, seen[i]), errors.Join(err, errs[i])
	}
	return columns, err
}

// runFrontEnd runs all cases with one proxy.
func runFrontEnd(ctx context.Context, o options, fe frontEnd) (column, error) {
	seen := column{fe, map[string]string{}}
	whole, open := cases(), openCases()
	if fe.closed {
		whole, open = append(whole, open...), nil
	}
	err := runCases(ctx, o, fe, whole, seen)
	if len(open) > 0 && !errors.Is(err, errNotHere) {
		o.open = true
		err = errors.Join(err, runCases(ctx, o, fe, open, seen))
	}
	return seen, err
}

// runCases runs some of the cases with a proxy of their own, and puts down what visitors saw.
func runCases(ctx context.Context, o options, fe frontEnd, some []testCase, column column) error {
	s, err := startStack(ctx, o, fe, some)
	if err != nil {
		return fmt.Errorf("%s: %w", fe.name, err)
	}
	defer s.close()
	var errs []error
	for _, c := range some {
		seen, err := s.do(ctx, fe, c)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s, %s: %w", fe.name, c.what, err))
			seen = broken
		}
		column.seen[c.id] = seen
	}
	return errors.Join(errs...)
}
