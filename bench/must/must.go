// Package must is for what tests set up, and cannot do without.
package must

import (
	"context"
	"sync"
	"testing"
)

// Do returns v, or panics.
func Do[T any](v T, err error) T {
	OK(err)
	return v
}

// OK panics where there is an error.
func OK(err error) {
	if err != nil {
		panic(err)
	}
}

// Run runs something until the test ends, or until stop is called, which waits for its end. The test fails if that is an error.
func Run(t testing.TB, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
