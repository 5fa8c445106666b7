//go:build !linux

package node

import "time"

var started = time.Now()

// threadTime is the time of day where it is not known what a thread has taken of a processor.
func threadTime() time.Duration { return time.Since(started) }
