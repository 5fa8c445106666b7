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

// open opens the record, if there shall be one.
func (*faults) open() error { return nil }

// apply puts the faults that a node has by itself into its configuration.
func (*faults) apply(*node.Config) {}

// rooms returns rooms whose grants are on record. now is the node's clock.
func (*faults) rooms(rooms httpfront.Rooms, _ func() time.Time) httpfront.Rooms { return rooms }

// links returns links to other nodes with what is given over them on record.
func (*faults) links(mesh node.Mesh) node.Mesh { return mesh }
