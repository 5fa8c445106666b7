package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Core is a processor of the machine. The zero value is any of them.
type Core int

// The cores of a measurement: what is measured has one to itself.
const (
	Anywhere Core = iota
	OfServer      // the first one
	OfLoad        // the second: the load, and the site
)

// Number is the number of the processor, from 0, as the kernel has it; -1 for any.
func (c Core) Number() int { return int(c) - 1 }

// Command is a program to start. Name is required.
type Command struct {
	Core Core     // where it stays, with all its threads and children
	Env  []string // more variables, NAME=VALUE
	Name string   // a program in the path, or where it is
	Args []string

	Log       string   // the file that what it says goes to; empty: it is kept in memory
	Reader    []string // a program that Log goes through, and its arguments: it reads what this one says; nil: there is none
	Namespace string   // of its network, by name; empty: ours
}

// Process is a program that was started.
type Process struct {
	cmd  *exec.Cmd
	name string
	path string        // of its log; empty: log has it
	log  output        // what it has said
	done chan struct{} // closed when it has ended

	Reader *Process // of what it says, which ends with that; nil: there is none
}

// never is one that was not started: it has ended, and has said nothing.
func never() *Process {
	p := &Process{done: make(chan struct{})}
	close(p.done)
	return p
}

// output keeps what a process says.
type output struct {
	mu  sync.Mutex // guards the following
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Start starts a program. It ends when ctx does, or by [Process.Stop] or [Process.Kill].
func Start(ctx context.Context, c Command) (*Process, error) {
	path, err := Find(c.Name)
	if err != nil {
		return nil, err
	}
	p := &Process{name: filepath.Base(c.Name), path: c.Log, done: make(chan struct{})}
	line := append([]string{path}, c.Args...)
	if c.Core != Anywhere {
		line = append([]string{"taskset", "-c", strconv.Itoa(c.Core.Number())}, line...)
	}
	p.cmd = exec.CommandContext(ctx, line[0], line[1:]...)
	p.cmd.Env = append(os.Environ(), c.Env...)
	said, err := p.listen(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	p.cmd.Stdout, p.cmd.Stderr = said, said
	// A master that is killed would leave its workers behind.
	p.cmd.Cancel = func() error { return signal(p.cmd.Process, syscall.SIGTERM) }
	p.cmd.WaitDelay = endsWithin
	err = launch(p.cmd, c.Namespace, func() {
		_ = p.cmd.Wait() // State has how it ended
		closeFile(said)
		if p.Reader != nil { // all that was said is in the log then
			_ = p.Reader.Resume()
			<-p.Reader.done
		}
		close(p.done)
	})
	if err != nil {
		closeFile(said) // which ends the reader
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	if p.Reader != nil { // so that it comes to the end of what is said: the program has its own
		closeFile(said)
	}
	return p, nil
}

// listen returns where what a program says goes, and starts who reads it.
func (p *Process) listen(ctx context.Context, c Command) (io.Writer, error) {
	switch {
	case c.Reader != nil:
		from, to, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer from.Close() // the reader has its own
		p.Reader, err = startReader(ctx, c, from)
		if err != nil {
			return nil, errors.Join(err, to.Close())
		}
		return to, nil
	case c.Log != "":
		return os.Create(c.Log)
	default:
		return &p.log, nil
	}
}

// startReader starts the program that what another one says goes through.
func startReader(ctx context.Context, c Command, from *os.File) (*Process, error) {
	file, err := os.Create(c.Log)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the reader has its own
	r := &Process{name: c.Reader[0], done: make(chan struct{})}
	r.cmd = exec.CommandContext(ctx, c.Reader[0], c.Reader[1:]...)
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = from, file, &r.log
	return r, launch(r.cmd, "", func() {
		_ = r.cmd.Wait() // State has how it ended
		close(r.done)
	})
}

// closeFile closes what is a file. A program has its own.
func closeFile(w io.Writer) {
	if f, ok := w.(*os.File); ok {
		_ = f.Close() // again, perhaps
	}
}

// endsWithin is how long a program may take to end before it is killed.
const endsWithin = time.Minute

// Stop ends the program as an operator does, and returns when it has ended. That it does not within
// a minute is an error; it is killed then.
func (p *Process) Stop() error { return p.StopWithin(endsWithin) }

// StopWithin is Stop with another limit.
func (p *Process) StopWithin(limit time.Duration) error {
	if err := errors.Join(p.Signal(syscall.SIGTERM), p.Resume()); err != nil {
		return err
	}
	if p.EndedWithin(limit) {
		return nil
	}
	return errors.Join(fmt.Errorf("%s did not end within %v", p.name, limit), p.Kill())
}

// Kill ends the program as a crash does, with all that it has started, and returns when it has ended.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	<-p.done
	return err
}

// Pause stops the program in its tracks, as a machine that is suspended.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Signal sends a signal to the program and what it has started; that it has ended is no error.
func (p *Process) Signal(s syscall.Signal) error {
	if !p.Running() {
		return nil
	}
	if err := signal(p.cmd.Process, s); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %v to %s: %w", s, p.name, err)
	}
	return nil
}

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// EndedWithin waits for at most d and reports whether the program has ended.
func (p *Process) EndedWithin(d time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(d):
		return false
	}
}

// Running reports whether the program has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// State says how the program has ended: "exit status 1". It must have ended.
func (p *Process) State() string { return p.cmd.ProcessState.String() }

// Code returns how the program has ended: its exit code, or -1 for a signal. It must have ended.
func (p *Process) Code() int { return p.cmd.ProcessState.ExitCode() }

// Killed reports whether the program was ended by SIGKILL. It must have ended.
func (p *Process) Killed() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Pid is the number of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log is what the program has said so far.
func (p *Process) Log() string {
	if p.path == "" {
		return p.log.String()
	}
	text, err := os.ReadFile(p.path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Tail returns the last lines of the log.
func (p *Process) Tail(lines int) string {
	all := bytes.Split(bytes.TrimSpace([]byte(p.Log())), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// startsWithin is how long a program may take until it is ready. One that ends before is not waited for.
const startsWithin = 2 * time.Minute

// Await returns when url is answered, and with anything else than 503: then the program that serves it is ready.
// The error has what the program said.
func (p *Process) Await(ctx context.Context, url string) error {
	return p.AwaitFunc(ctx, "answers at "+url, func(ctx context.Context) bool { return answers(ctx, url) })
}

// AwaitListener returns when somebody listens at address, host:port.
func (p *Process) AwaitListener(ctx context.Context, address string) error {
	return p.AwaitFunc(ctx, "listens at "+address, func(ctx context.Context) bool {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", address)
		return err == nil && c.Close() == nil
	})
}

// AwaitFunc returns when ready reports true. what says in the error what did not come about, and the error has what
// the program said.
func (p *Process) AwaitFunc(ctx context.Context, what string, ready func(context.Context) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startsWithin, fmt.Errorf("nobody %s within %v", what, startsWithin))
	defer cancel()
	for !ready(ctx) {
		if err := p.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// Sleep waits for d. It is an error if the program or ctx ends before.
func (p *Process) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-p.done:
		return fmt.Errorf("%s has ended: %v; it said last:\n%s", p.name, p.cmd.ProcessState, p.Tail(tail))
	case <-ctx.Done():
		return fmt.Errorf("%s: %w; it said last:\n%s", p.name, context.Cause(ctx), p.Tail(tail))
	}
}

const tail = 20 // lines in an error

func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	return err == nil && resp.Body.Close() == nil && resp.StatusCode != http.StatusServiceUnavailable
}
