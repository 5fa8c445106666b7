package record

import "golang.org/x/sys/unix"

// Now returns nanoseconds of CLOCK_MONOTONIC, the same for all processes.
func Now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("record: no monotonic clock: " + err.Error())
	}
	return t.Nano()
}
