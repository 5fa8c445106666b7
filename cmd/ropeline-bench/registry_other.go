//go:build !linux

package main

import (
	"github.com/ropeline/ropeline/bench/measurement"
)

func onLinux() []measurement.Entry { return nil }
