//go:build !linux

package main

import (
	"github.com/spf13/cobra"

	"github.com/ropeline/ropeline/bench/measurement"
)

func onLinux() []measurement.Entry { return nil }

func commandsOnLinux() []*cobra.Command { return nil }
