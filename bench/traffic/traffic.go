// Package traffic measures what the nodes of a mesh say to each other, by sites, nodes, rooms
// and what goes on in them. Messages are counted in meshes of virtual time; what QUIC and gossip
// add, a benchmark of package node measures.
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

// Units of what one node sends, on average.
const (
	messages = "messages/s"
	near     = "near-B/s"
	far      = "far-B/s"
	all      = "B/s"
	relay    = "relay-B/s"
)

// Entry is the measurement.
func Entry() measurement.Entry {
	unit := func(name, meaning string) measurement.Unit {
		return measurement.Unit{Name: name, Meaning: meaning, Better: "lower", Exact: true}
	}
	return measurement.Entry{
		Name: "traffic", Page: "measurements.md",
		Question: "What do nodes say to each other, by sites, rooms and visitors?",
		Method:   "Payloads of messages are counted in meshes of virtual time.",
		Units: []measurement.Unit{
			unit(messages, "messages that one node sends, on average"), unit(near, "of all bytes, those to nodes of its site"), unit(far, "and those to other sites"),
			unit(all, "bytes that one node sends, on average"), unit(relay, "bytes of counts that the node sends which speaks for its site"),
		},
		Quick: []string{"only=1 × 3 nodes, 1 rooms"},
		New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			seed := o.Uint64("seed", 1, "of all chances")
			only := o.String("only", "", "only meshes whose name has this text, such as \"1 × 3 nodes\"")
			return func(ctx context.Context, r *measurement.Run) error {
				if r.Docs != "" && *only != "" {
					return errors.New("--docs does not go with the option only: the page would have a part of the meshes")
				}
				some := slices.DeleteFunc(simulated(), func(s shape) bool { return !strings.Contains(s.String(), *only) })
				if len(some) == 0 {
					return fmt.Errorf("no mesh is called %q", *only)
				}
				return run(ctx, r, some, *seed)
			}
		},
	}
}

// run measures meshes, as many at once as there are processors. The largest, which are last, come first.
func run(ctx context.Context, r *measurement.Run, meshes []shape, seed uint64) error {
	results, errs := make([]result, len(meshes)), make([]error, len(meshes))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, s := range slices.Backward(meshes) {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if results[i], errs[i] = simulate(s, seed); errs[i] == nil {
				r.Tell("%s: %.0f B/s", s, results[i].Mean.Near+results[i].Mean.Far)
			} else {
				errs[i] = fmt.Errorf("%s: %w", s, errs[i])
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, s := range meshes {
		if errs[i] == nil {
			r.Add(s.row(), results[i].values(s))
		}
	}
	return errors.Join(errs...)
}

// values are those of a mesh's row.
func (r result) values(s shape) measurement.Values {
	v := measurement.Values{messages: r.Mean.Messages, near: r.Mean.Near, far: r.Mean.Far, all: r.Mean.Near + r.Mean.Far}
	if s.Sites > 1 {
		v[relay] = r.Relay.Counts
	}
	return v
}
