// Command traffic measures what the nodes of a mesh say to each other, by sites, nodes, rooms
// and what goes on in them, beside a model that predicts it. Messages are counted in meshes of
// virtual time; what QUIC and gossip add, in real meshes on loopback. It writes tables into a
// page of the documentation, between two marks.
//
//	go run ./bench/traffic -page docs/measurements.md
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"

	"github.com/ropeline/ropeline/bench/docpage"
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
	page := fs.String("page", "", "the `file` to write the tables into; empty: print them")
	seed := fs.Uint64("seed", 1, "of all chances in virtual time")
	small := fs.Bool("small", false, "leave out meshes that take minutes")
	if err := fs.Parse(args); err != nil {
		return err
	}
	simulated, err := simulate(ctx, shapes(*small), *seed)
	if err != nil {
		return err
	}
	var real []wire
	for _, s := range wires(*small) {
		fmt.Fprintf(os.Stderr, "%s over real links\n", s)
		w, err := measureWire(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		real = append(real, w)
	}
	var b strings.Builder
	writeSimulated(&b, shapes(*small), simulated)
	writeWires(&b, wires(*small), real)
	return docpage.Write(os.Stdout, *page, "make traffic", b.String())
}

// simulate measures all shapes, as many at a time as there are cores.
func simulate(ctx context.Context, all []shape, seed uint64) ([]result, error) {
	results, errs := make([]result, len(all)), make([]error, len(all))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, s := range all {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			fmt.Fprintf(os.Stderr, "%s in virtual time\n", s)
			results[i], errs[i] = measure(s, seed)
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
