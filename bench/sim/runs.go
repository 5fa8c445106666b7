package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
)

var errEnough = errors.New("sim: enough")

// RunAll runs configurations, so many at once, until all have run, one could not be run,
// or each says to stop. Results come in the order in which runs end; one goroutine at a
// time calls each, or draws the next configuration.
func RunAll(ctx context.Context, workers int, all iter.Seq[Config], each func(Config, *Result) (more bool)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next, end := iter.Pull(all)
	defer end()
	var mu sync.Mutex // guards next, each and their order
	var wg sync.WaitGroup
	one := func() (more bool) {
		mu.Lock()
		cfg, ok := next()
		mu.Unlock()
		if !ok || ctx.Err() != nil {
			return false
		}
		r, err := Run(ctx, cfg)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			stop(fmt.Errorf("seed %d: %w", cfg.Seed, err))
		case !each(cfg, r):
			stop(errEnough)
		}
		return ctx.Err() == nil
	}
	for range workers {
		wg.Go(func() {
			for one() {
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

// Kinds returns which promises were broken, each once.
func (r *Result) Kinds() (all []string) {
	for _, v := range r.Violations {
		if !slices.Contains(all, v.Kind) {
			all = append(all, v.Kind)
		}
	}
	return all
}
