package poll

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropeline/ropeline/bench/rig"
)

// WakeInTime has the kernel wake the calling thread when its time has come, and not up to 50 µs later, by
// which it saves wake-ups otherwise.
func WakeInTime() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) } // what it costs not to is told as lateness

// Used is what the calling thread, and the whole process, have had of the CPUs so far.
type Used struct {
	Thread, Process time.Duration // user and system time
	// Waited is how long the thread was ready to run and another one had its CPU. 0 where the kernel does
	// not count it.
	Waited time.Duration
}

// UsedSoFar returns what the calling thread has used. Lock the goroutine to it first.
func UsedSoFar() (u Used) {
	u.Thread, u.Process = rig.OwnThread(), rig.Own()
	text, err := os.ReadFile("/proc/thread-self/schedstat")
	if fields := bytes.Fields(text); err == nil && len(fields) > 1 {
		ns, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		u.Waited = time.Duration(ns)
	}
	return u
}
