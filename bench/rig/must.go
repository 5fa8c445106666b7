package rig

import (
	"context"
	"time"
)

// failure is what [Must] panics with.
type failure struct{ error }

// Try calls do, and returns the error with which [Must] has ended it. So what is done step by step, and is over with
// the first step that fails, reads like that.
func Try(do func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.error
		default:
			panic(p)
		}
	}()
	do()
	return nil
}

// Must ends what [Try] has called on this goroutine if err is one.
func Must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Got is Must for a step that brings a value, which it returns.
func Got[T any](value T, err error) T {
	Must(err)
	return value
}

// Sleep waits for d. It is an error if ctx ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Until looks again and again whether something is so, and reports whether it came to be within a limit. It ends what [Try]
// has called if ctx ends before.
func Until(ctx context.Context, limit, every time.Duration, is func() bool) bool {
	for deadline := time.Now().Add(limit); !is(); Must(Sleep(ctx, every)) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
