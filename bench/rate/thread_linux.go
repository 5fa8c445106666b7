package rate

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropeline/ropeline/bench/rig"
)

// wakeInTime has the kernel wake the calling thread when its time has come, and not up to 50 µs later, by
// which it saves wake-ups otherwise.
func wakeInTime() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) } // what it costs not to is told as lateness

// used is what the calling thread has had of the CPUs so far.
type used struct {
	thread time.Duration // user and system time
	// waited is how long the thread was ready to run and another one had its CPU. 0 where the kernel does
	// not count it.
	waited time.Duration
}

// usedSoFar returns what the calling thread has used. Lock the goroutine to it first.
func usedSoFar() (u used) {
	u.thread = rig.OwnThread()
	text, err := os.ReadFile("/proc/thread-self/schedstat")
	if fields := bytes.Fields(text); err == nil && len(fields) > 1 {
		ns, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		u.waited = time.Duration(ns)
	}
	return u
}
