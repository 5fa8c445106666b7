// Package traffic measures what the nodes of a mesh say to each other, by sites, nodes, rooms
// and what goes on in them, beside a model that predicts it. Messages are counted in meshes of
// virtual time; what QUIC and gossip add, in real meshes on loopback.
package traffic

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
)

const page = "measurements.md"

var units = []measurement.Unit{
	{Name: "B/s", Meaning: "what one node sends, on average", Better: "lower"},
	{Name: "model-B/s", Meaning: "what the model says of that", Better: "lower", Exact: true},
}

// Entries are the measurements.
func Entries() []measurement.Entry {
	virtual := slices.Clone(units)
	virtual[0].Exact = true
	return []measurement.Entry{
		{
			Name: "traffic", Page: page, Units: virtual, Quick: []string{"only=1 × 3 nodes, 1 rooms"},
			Question: "What do nodes say to each other, by sites, rooms and visitors?",
			Method:   "Payloads of messages are counted in meshes of virtual time, beside what a model says of them.",
			New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
				seed := o.Uint64("seed", 1, "of all chances")
				choose := choice(o)
				return func(ctx context.Context, r *measurement.Run) error {
					all, err := choose(r, shapes)
					if err != nil {
						return err
					}
					measured, err := simulate(ctx, all, *seed, r)
					if err != nil {
						return err
					}
					for i, s := range all {
						r.Add(rowOf(s), measurement.Values{"B/s": measured[i].Mean.bytes(), "model-B/s": predict(s).Mean.bytes()})
					}
					var b strings.Builder
					writeSimulated(&b, all, measured)
					return r.TableWithFigures(ctx, b.String(), nil, beside(all, measured, func(s shape) any { return predict(s) }))
				}
			},
		},
		{
			Name: "traffic-links", Page: page, Units: units, Quick: []string{"only=1 × 3 nodes, 100 rooms"},
			Question: "What do nodes send with all that QUIC and gossip add?",
			Method:   "Real meshes with real links on loopback, all in this process; bytes of UDP are counted, beside what a model says of them.",
			New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
				choose := choice(o)
				return func(ctx context.Context, r *measurement.Run) error {
					all, err := choose(r, wires)
					if err != nil {
						return err
					}
					measured, err := measureWires(ctx, all, r)
					if err != nil {
						return err
					}
					var b strings.Builder
					writeWires(&b, all, measured)
					return r.TableWithFigures(ctx, b.String(), nil, beside(all, measured, func(s shape) any { return predictWire(s) }))
				}
			},
		},
		{
			Name: "traffic-model", Page: page, Units: units[1:],
			Question: "What would nodes of hundreds of sites send?",
			Method:   "Nothing is measured: it is what the model says that traffic and traffic-links hold against real meshes.",
			New: func(*pflag.FlagSet) func(context.Context, *measurement.Run) error {
				return func(_ context.Context, r *measurement.Run) error {
					for _, s := range hundreds() {
						r.Add(rowOf(s), measurement.Values{"model-B/s": predictWire(s).UDP})
					}
					var b strings.Builder
					writeModel(&b, hundreds())
					return r.Table(b.String())
				}
			},
		},
	}
}

// choice returns which of the meshes are measured, by options.
func choice(o *pflag.FlagSet) func(*measurement.Run, func(small bool) []shape) ([]shape, error) {
	small := o.Bool("small", false, "leave out meshes that take minutes")
	only := o.String("only", "", "only meshes whose name has this text, such as \"1 × 3 nodes\"")
	return func(r *measurement.Run, all func(bool) []shape) ([]shape, error) {
		if r.Docs != "" && *only != "" {
			return nil, errors.New("--docs does not go with the option only: the page would have a part of the meshes")
		}
		some := slices.DeleteFunc(all(*small), func(s shape) bool { return !strings.Contains(s.String(), *only) })
		if len(some) == 0 {
			return nil, fmt.Errorf("no mesh is called %q", *only)
		}
		return some, nil
	}
}

func rowOf(s shape) string { return measurement.Row("mesh", s.String()) }

// figures is what was measured of a mesh, beside what was predicted.
type figures struct {
	Mesh                string
	Measured, Predicted any
}

func beside[T any](all []shape, measured []T, predicted func(shape) any) []figures {
	f := make([]figures, len(all))
	for i, s := range all {
		f[i] = figures{s.String(), measured[i], predicted(s)}
	}
	return f
}

// measureWires measures real meshes, one after the other, and tells of each.
func measureWires(ctx context.Context, all []shape, r *measurement.Run) ([]wire, error) {
	results := make([]wire, len(all))
	for i, s := range all {
		var err error
		if results[i], err = measureWire(ctx, s); err != nil {
			return nil, fmt.Errorf("%s, real links: %w", s, err)
		}
		r.Tell("%s, real links: %.0f B/s", s, results[i].UDP)
		r.Add(rowOf(s), measurement.Values{"B/s": results[i].UDP, "model-B/s": predictWire(s).UDP})
	}
	return results, nil
}

// simulate measures all shapes, as many at a time as there are cores and the largest, which are
// last, first, and tells of each.
func simulate(ctx context.Context, all []shape, seed uint64, r *measurement.Run) ([]result, error) {
	results, errs := make([]result, len(all)), make([]error, len(all))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, s := range slices.Backward(all) {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i], errs[i] = measure(s, seed)
			r.Tell("%s: %.0f B/s", s, results[i].Mean.bytes())
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", all[i], err)
		}
	}
	return results, context.Cause(ctx)
}
