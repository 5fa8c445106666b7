// Package single leaves tests of one goroutine out of runs with the race detector: nothing races there,
// and they take up to ten times as long. Their packages are in MIXED of the Makefile, by which they run
// without it. TestOneGoroutineStartsNone holds both.
package single

import (
	"slices"
	"strings"
	"testing"
)

// Goroutine skips a test with the race detector, unless its name is among those that run with it all
// the same.
func Goroutine(t testing.TB, unless ...string) {
	t.Helper()
	if name, _, _ := strings.Cut(t.Name(), "/"); race && !slices.Contains(unless, name) {
		t.Skip("one goroutine: it runs without the race detector")
	}
}
