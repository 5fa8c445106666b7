//go:build !faults || !linux

package main

import (
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront/server"
)

// faults is what a build for fault tests does to itself (see docs/faults.md).
// This is not one: nothing can be asked for, and nothing is done.
type faults struct{}

func (*faults) bind(*pflag.FlagSet) {}

// open opens the record, if there shall be one.
func (*faults) open() error { return nil }

// seams returns where the faults stand in a node.
func (*faults) seams() (none server.Seams) { return none }
