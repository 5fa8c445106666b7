// Package traffic measures what the nodes of a mesh say to each other, by sites, nodes, rooms
// and what goes on in them. Messages are counted in meshes of virtual time; what QUIC and gossip
// add, in real meshes on loopback.
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
	payload  = "payload-B/s"
	all      = "B/s"
	relay    = "relay-B/s"
)

// subject is a measurement of many meshes.
type subject struct {
	name, question, method string
	quick                  []string
	units                  []measurement.Unit
	meshes                 func() []shape
	atOnce                 int // so many are measured
	measure                func(ctx context.Context, s shape, seed uint64) (measurement.Values, error)
}

// Entries are the measurements.
func Entries() (entries []measurement.Entry) {
	unit := func(name, meaning string, exact bool) measurement.Unit {
		return measurement.Unit{Name: name, Meaning: meaning, Better: "lower", Exact: exact}
	}
	for _, k := range []subject{
		{
			name: "traffic", quick: []string{"only=1 × 3 nodes, 1 rooms"}, meshes: simulated, atOnce: runtime.GOMAXPROCS(0), measure: inVirtualTime,
			question: "What do nodes say to each other, by sites, rooms and visitors?",
			method:   "Payloads of messages are counted in meshes of virtual time. Meshes with a star are of replicas alone.",
			units: []measurement.Unit{
				unit(messages, "messages that one node sends, on average", true), unit(near, "of all bytes, those to nodes of its site", true), unit(far, "and those to other sites", true),
				unit(all, "bytes that one node sends, on average", true), unit(relay, "bytes of counts that the node sends which speaks for its site", true),
			},
		},
		{
			name: "traffic-links", quick: []string{"only=1 × 3 nodes, 100 rooms", "for=8s"}, meshes: wires, atOnce: 1, measure: overLinks,
			question: "What do nodes send with all that QUIC and gossip add?",
			method:   "Real meshes with real links on loopback, all in this process; bytes of UDP are counted.",
			units: []measurement.Unit{
				unit(messages, "messages that one node sends, on average", false), unit(payload, "bytes in them", false), unit(all, "bytes of UDP payload that one node sends, on average", false),
			},
		},
	} {
		entries = append(entries, measurement.Entry{
			Name: k.name, Page: "measurements.md", Question: k.question, Method: k.method, Units: k.units, Quick: k.quick,
			New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
				seed := o.Uint64("seed", 1, "of all chances")
				lasts := o.Duration("for", 0, "count for so long, and begin after as long; 0: as each mesh wants")
				only := o.String("only", "", "only meshes whose name has this text, such as \"1 × 3 nodes\"")
				return func(ctx context.Context, r *measurement.Run) error {
					if r.Docs != "" && (*only != "" || *lasts > 0) {
						return errors.New("--docs does not go with the options only and for: the page would have a part of the meshes, or of their time")
					}
					some := slices.DeleteFunc(k.meshes(), func(s shape) bool { return !strings.Contains(s.String(), *only) })
					if len(some) == 0 {
						return fmt.Errorf("no mesh is called %q", *only)
					}
					for i := range some {
						if *lasts > 0 {
							some[i].Before, some[i].Span = *lasts, *lasts
						}
					}
					return k.run(ctx, r, some, *seed)
				}
			},
		})
	}
	return entries
}

// run measures meshes, the largest of which, which are last, come first.
func (k *subject) run(ctx context.Context, r *measurement.Run, meshes []shape, seed uint64) error {
	values, errs := make([]measurement.Values, len(meshes)), make([]error, len(meshes))
	slots := make(chan struct{}, k.atOnce)
	var wg sync.WaitGroup
	for i, s := range slices.Backward(meshes) {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if values[i], errs[i] = k.measure(ctx, s, seed); errs[i] == nil {
				r.Tell("%s: %.0f B/s", s, values[i][all])
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("%s: %w", meshes[i], err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, s := range meshes {
		r.Add(s.row(), values[i])
	}
	return nil
}

func inVirtualTime(_ context.Context, s shape, seed uint64) (measurement.Values, error) {
	got, err := simulate(s, seed)
	v := measurement.Values{messages: got.Mean.all().Messages, near: got.Mean.Near.Bytes, far: got.Mean.Far.Bytes, all: got.Mean.all().Bytes}
	if s.Sites > 1 {
		v[relay] = got.Relay.Counts.Bytes
	}
	return v, err
}

func overLinks(ctx context.Context, s shape, _ uint64) (measurement.Values, error) {
	got, err := measureWire(ctx, s)
	v := measurement.Values{all: got.UDP}
	if s.Rooms > 0 {
		v[messages], v[payload] = got.Payload.Messages, got.Payload.Bytes
	}
	return v, err
}
