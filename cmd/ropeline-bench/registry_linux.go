package main

import (
	"github.com/ropeline/ropeline/bench/faults"
	"github.com/ropeline/ropeline/bench/footprint"
	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/scaling"
)

// onLinux returns the measurements that read what only Linux tells, or run programs that are built for it.
func onLinux() []measurement.Entry {
	return append(faults.Entries(), footprint.Entry(), scaling.Entry())
}
