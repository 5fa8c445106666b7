package rig

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// processClock returns the processor time of a process, by the kernel's clock of it
// (MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of its posix-timers.h).
func processClock(pid int) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

func threadClock() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
