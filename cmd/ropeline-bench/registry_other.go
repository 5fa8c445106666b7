//go:build !linux

package main

import (
	"context"

	"github.com/ropeline/ropeline/bench/measurement"
)

func onLinux() []measurement.Entry { return nil }

var servers map[string]func(context.Context) error
