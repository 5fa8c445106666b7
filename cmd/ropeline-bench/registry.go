package main

import (
	"github.com/ropeline/ropeline/bench/accuracy"
	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/story"
	"github.com/ropeline/ropeline/bench/suite"
	"github.com/ropeline/ropeline/bench/sweep"
)

// registry returns all measurements, in the order of the list.
func registry() []measurement.Entry {
	all := append(suite.Entries(), accuracy.Entry())
	all = append(append(all, story.Entries()...), sweep.Entry())
	all = append(append(all, promises()...), searches()...)
	return append(append(all, onLinux()...), goEntries()...)
}
