package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"
)

// settledAfter is how long a node runs before it gives back what only its start needed: its
// first visitors, and the nodes that it joins, come before that.
const settledAfter = 20 * time.Second

// giveBack gives memory back that only the start of the process needed, once: garbage of
// the start, and pages of the program that are not used any more. An idle node is half as
// large by that.
func giveBack(ctx context.Context, log *slog.Logger) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(settledAfter):
	}
	debug.FreeOSMemory()
	if err := dropProgram(); err != nil {
		log.Debug("pages of the program stay resident", "error", err)
	}
}
