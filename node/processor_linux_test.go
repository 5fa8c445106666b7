package node

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns how long this thread has kept a processor busy: unlike the time of day
// it leaves out what other programs take. Its caller keeps to one thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic("node: no use of the processor is known: " + err.Error())
	}
	return time.Duration(t.Nano())
}
