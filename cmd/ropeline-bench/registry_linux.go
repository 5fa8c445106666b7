package main

import (
	"context"

	"github.com/ropeline/ropeline/bench/heavy"
	"github.com/ropeline/ropeline/bench/measurement"
)

// onLinux returns the measurements that read what only Linux tells.
func onLinux() []measurement.Entry {
	return []measurement.Entry{heavy.Entry()}
}

// servers are those that measurements start by "serve NAME", besides those of [serve].
var servers = map[string]func(context.Context) error{heavy.Origin: heavy.ServeOrigin}
