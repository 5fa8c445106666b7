package rig

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// launch starts cmd in a network namespace, and calls wait beside it, which returns when it has ended.
func launch(cmd *exec.Cmd, namespace string, wait func()) error {
	// A group of its own, so that Ctrl-C reaches only us and we end all in order; and an end of its own if we
	// are gone without having been able to.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The kernel ends the program together with the thread that started it, so the thread stays for as long.
		runtime.LockOSThread()
		var err error
		if namespace == "" {
			defer runtime.UnlockOSThread()
			err = cmd.Start()
		} else { // it has left our namespace, and ends with this goroutine
			err = enterAnd(namespace, cmd.Start)
		}
		started <- err
		if err == nil {
			wait()
		}
	}()
	return <-started
}

// EndTogether has cmd end with all that it starts when its context is done.
func EndTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return signal(cmd.Process, syscall.SIGTERM) }
}

// signal sends a signal to a program and all that it has started.
func signal(p *os.Process, s syscall.Signal) error { return syscall.Kill(-p.Pid, s) }

// processClock returns the processor time of a process, by the kernel's clock of it
// (MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of its posix-timers.h).
func processClock(pid int) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// OwnThread is the processor time that the calling thread has used; 0 where it is not known. Lock the goroutine to it
// first.
func OwnThread() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
