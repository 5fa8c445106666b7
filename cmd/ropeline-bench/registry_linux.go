package main

import (
	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/bench/faults"
	"github.com/ropeline/ropeline/bench/floods"
	"github.com/ropeline/ropeline/bench/footprint"
	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/scaling"
)

// onLinux returns the measurements that read what only Linux tells, or run programs that are built for it.
func onLinux() []measurement.Entry {
	return append(faults.Entries(), floods.Entry(), footprint.Entry(), scaling.Entry())
}

// commandsOnLinux returns the commands that some of these are made with.
func commandsOnLinux() []*cobra.Command { return []*cobra.Command{newFloodCommand()} }
