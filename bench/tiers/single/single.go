// Package single leaves tests of one goroutine out of runs with the race detector, and those whose workers
// each have a simulation of their own (TestRunsShareNothing looks at that): nothing races there,
// and they take up to ten times as long. Their packages are in MIXED of the Makefile, by which they run
// without it. TestOneGoroutineStartsNone holds both.
package single

import "testing"

// Goroutine skips with the race detector a test of one goroutine, or of workers that share nothing.
func Goroutine(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("one goroutine: it runs without the race detector")
	}
}

// Mostly skips, in short, a test with the race detector in which nearly all is done by one goroutine,
// and takes long with it: make test-all runs it with the race detector, too.
func Mostly(t testing.TB) {
	t.Helper()
	if race && testing.Short() {
		t.Skip("one goroutine does nearly all: make test-all runs it with the race detector")
	}
}
