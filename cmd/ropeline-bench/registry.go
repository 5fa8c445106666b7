package main

import (
	"github.com/ropeline/ropeline/bench/accuracy"
	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/suite"
)

// registry returns all measurements, in the order of the list.
func registry() []measurement.Entry {
	return append(suite.Entries(), accuracy.Entry())
}
