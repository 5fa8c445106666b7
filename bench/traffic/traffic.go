// Command traffic measures what the nodes of a mesh say to each other, by sites, nodes, rooms
// and what goes on in them, beside a model that predicts it. Messages are counted in meshes of
// virtual time; what QUIC and gossip add, in real meshes on loopback. It writes a table into a
// page of the documentation, between two marks.
//
//	go run ./bench/traffic -page docs/measurements.md
//	go run ./bench/traffic -page docs/measurements.md -links
//	go run ./bench/traffic -page docs/measurements.md -model
package traffic

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/docpage"
	"github.com/ropeline/ropeline/bench/machine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "traffic: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("traffic", flag.ContinueOnError)
	page := fs.String("page", "", "the `file` to write the tables into, and all figures beside it; empty: print them")
	seed := fs.Uint64("seed", 1, "of all chances in virtual time")
	links := fs.Bool("links", false, "measure real meshes on loopback, instead")
	alone := fs.Bool("model", false, "measure nothing: say what the model says of hundreds of sites")
	small := fs.Bool("small", false, "leave out meshes that take minutes")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var b strings.Builder
	if *alone {
		writeModel(&b, hundreds())
		return docpage.Write(os.Stdout, *page, "make traffic-model", b.String())
	}
	if *links {
		measured, err := measureWires(ctx, wires(*small))
		if err != nil {
			return err
		}
		writeWires(&b, wires(*small), measured)
		return write(ctx, *page, "traffic-links", b.String(), beside(wires(*small), measured, func(s shape) any { return predictWire(s) }))
	}
	measured, err := simulate(ctx, shapes(*small), *seed)
	if err != nil {
		return err
	}
	writeSimulated(&b, shapes(*small), measured)
	return write(ctx, *page, "traffic", b.String(), beside(shapes(*small), measured, func(s shape) any { return predict(s) }))
}

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

// write writes a table into a page, and the figures beside it.
func write(ctx context.Context, page, target, table string, figures any) error {
	return docpage.WriteResult(os.Stdout, page, target, table, docpage.Result{Maker: "make " + target, Made: time.Now(), Machine: machine.Of(ctx, nil), Figures: figures})
}

// measureWires measures real meshes, one after the other, and tells of each.
func measureWires(ctx context.Context, all []shape) ([]wire, error) {
	results := make([]wire, len(all))
	for i, s := range all {
		var err error
		if results[i], err = measureWire(ctx, s); err != nil {
			return nil, fmt.Errorf("%s, real links: %w", s, err)
		}
		fmt.Fprintf(os.Stderr, "%s, real links: %.0f B/s\n", s, results[i].UDP)
	}
	return results, nil
}

// simulate measures all shapes, as many at a time as there are cores and the largest, which are
// last, first, and tells of each.
func simulate(ctx context.Context, all []shape, seed uint64) ([]result, error) {
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
			fmt.Fprintf(os.Stderr, "%s: %.0f B/s\n", s, results[i].Mean.bytes())
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
