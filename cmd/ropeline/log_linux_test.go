package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestALogThatNobodyReads has a node log to a pipe that is full: neither visitors nor operators
// wait for it, nor does the end.
func TestALogThatNobodyReads(t *testing.T) {
	t.Parallel()
	p := newRunning(t, "one", "a", freeAddress(t), "--origin", startOrigin(t), "--data-dir", t.TempDir(), "--access-log", "-")
	p.log = filepath.Join(t.TempDir(), "log")
	if err := syscall.Mkfifo(p.log, 0o600); err != nil {
		t.Fatal(err)
	}
	p.start() // with both ends of the pipe open at the test, which does not read
	p.endWithTest()
	t.Cleanup(func() { os.Remove(p.log) }) // nothing comes out of it any more, which is not to be waited for
	p.await("is ready", 20*time.Second, ready)
	end, err := os.OpenFile(p.log, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	await(t, "the pipe is full", func() bool {
		for range 100 { // lines of 100 bytes and more, into 64 KiB; a node that finds no time to write them drops some
			get(t, p.http, nil)
		}
		// How many bytes fill it depends on how many lines are written at once: a page of it takes whole writes.
		pipe := []unix.PollFd{{Fd: int32(end.Fd()), Events: unix.POLLOUT}}
		_, err := unix.Poll(pipe, 0)
		return err == nil && pipe[0].Revents == 0
	})
	for range 3 {
		p.Signal(syscall.SIGHUP) // which has it log
		get(t, p.http, nil)
		p.await("is ready", 5*time.Second, ready)
	}
	begun := time.Now()
	if code := p.stop(); code != 0 {
		t.Errorf("ended with %d after %v", code, time.Since(begun))
	}
}

// TestALogWhoseReaderIsGone: it is no end of the node, and what is lost is counted.
func TestALogWhoseReaderIsGone(t *testing.T) {
	t.Parallel()
	p := newRunning(t, "one", "a", freeAddress(t), "--origin", startOrigin(t), "--data-dir", t.TempDir(), "--access-log", "-")
	p.shell = []string{"bash", "-c", `exec "$0" "$@" > >(head -n 1 > /dev/null) 2>&1`} // who reads it ends after a line
	p.start()
	p.endWithTest()
	p.await("is ready", 20*time.Second, ready)
	await(t, "lines of both logs are counted as lost", func() bool {
		get(t, p.http, nil)
		p.Signal(syscall.SIGHUP)
		_, got := p.metrics()
		return got["ropeline_log_dropped_lines_total"] > 0 && got["ropeline_access_log_dropped_lines_total"] > 0
	})
	if code := p.stop(); code != 0 {
		t.Errorf("ended with %d", code)
	}
}
