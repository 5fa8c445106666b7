//go:build !faults || !linux

package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/node"
)

// faults is what a build for fault tests does to itself (see docs/faults.md).
// This is not one: nothing can be asked for, and nothing is done.
type faults struct{}

func (*faults) bind(*pflag.FlagSet) {}

// apply puts the faults that a node has by itself into its configuration.
func (*faults) apply(*node.Config) {}

// watch returns rooms whose grants are on record.
func (*faults) watch(rooms httpfront.Rooms, _ func() time.Time) (httpfront.Rooms, error) {
	return rooms, nil
}
