package rate

import (
	"context"
	"errors"
	"runtime"
)

// Run sends what cfg says, and returns what came of it. Where ctx ends before, or a connection cannot be opened, it
// returns that error and what was measured until then.
//
// The thread that it runs on is its own, and ends with it.
func Run(ctx context.Context, cfg Config) (result Result, err error) {
	if len(cfg.Requests) == 0 {
		return result, errors.New("rate: no request")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// It stays locked, so that the thread with its timers is not used for anything else after.
		runtime.LockOSThread()
		result, err = run(ctx, cfg.withDefaults())
	}()
	<-done
	return result, err
}

// run runs on the calling thread.
func run(ctx context.Context, cfg Config) (Result, error) {
	wakeInTime()
	l, err := newLoop(cfg)
	if err != nil {
		return Result{}, err
	}
	defer l.close()
	if err := l.connect(ctx); err != nil {
		return Result{}, err
	}
	for l.begins(); ; {
		if done, err := l.step(ctx); done || err != nil {
			return l.result(), err
		}
	}
}
