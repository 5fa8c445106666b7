package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// child is a process that the demonstration started. Whatever it prints goes to
// a file.
type child struct {
	name string
	log  string // path of the file
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // how it ended; read it after done
}

// startChild starts exe with args. ended is called once the process has ended,
// however that came.
func startChild(name, exe string, args []string, log string, ended func(*child)) (*child, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &child{name: name, log: log, cmd: exec.Command(exe, args...), done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = f, f
	c.cmd.SysProcAttr = childAttributes()
	started := make(chan error)
	go func() {
		// The kernel ends the child together with the thread that started it,
		// so the thread has to stay for as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
		}
		_ = f.Close() // the child has its own; nothing of ours is lost
		close(c.done)
		if err == nil {
			ended(c)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return c, nil
}

// alive reports whether the process runs.
func (c *child) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// killed reports whether the process was ended by SIGKILL, which only somebody
// from outside does. It must have ended.
func (c *child) killed() bool {
	exit, ok := errors.AsType[*exec.ExitError](c.err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// stop asks the process to end, and makes it end after grace. It returns when
// the process is gone.
func (c *child) stop(grace time.Duration) {
	if !c.alive() {
		return
	}
	// That it has ended meanwhile is the only way in which these fail.
	_ = signalChild(c.cmd.Process, syscall.SIGTERM)
	select {
	case <-c.done:
		return
	case <-time.After(grace):
	}
	_ = signalChild(c.cmd.Process, syscall.SIGKILL)
	<-c.done
}

// failure says how the process ended and shows the last of what it printed.
func (c *child) failure() error {
	how := "ended by itself"
	if c.err != nil {
		how = c.err.Error()
	}
	text, err := lastLines(c.log, 12)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %s (and its log cannot be read: %w)", c.name, how, err)
	case text == "":
		return fmt.Errorf("%s: %s, without a word", c.name, how)
	}
	return fmt.Errorf("%s: %s; it said last:\n%s", c.name, how, text)
}

// lastLines returns up to n lines from the end of a file.
func lastLines(path string, n int) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	const most = 16 << 10
	if info, err := f.Stat(); err == nil && info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return "", err
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return "", err
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))), nil
}
