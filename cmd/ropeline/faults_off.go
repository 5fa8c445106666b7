//go:build !faults || !linux

package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront"
)

// faults is what a build for fault tests does to itself (see docs/faults.md).
// This is not one: nothing can be asked for, and nothing is done.
type faults struct{}

func (*faults) bind(*pflag.FlagSet) {}

// clock returns the process's wall clock; nil means time.Now.
func (*faults) clock() func() time.Time { return nil }

// watch returns rooms whose grants are on record.
func (*faults) watch(rooms httpfront.Rooms) (httpfront.Rooms, error) {
	return rooms, nil
}
