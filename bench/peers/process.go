package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Core is the number of a processor, from 0.
type Core int

// The cores of a measurement: what is measured has one to itself.
const (
	OfServer Core = 0
	OfLoad   Core = 1 // the load, and the site
)

// Command is a program to start. Name is required.
type Command struct {
	Core Core     // where it stays, with all its threads and children
	Env  []string // more variables, NAME=VALUE
	Name string   // a program in the path, or where it is
	Args []string
}

// Process is a program that runs.
type Process struct {
	cmd  *exec.Cmd
	name string
	log  output
	done chan struct{} // closed when it has ended
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

// endsWithin is how long a program may take to end before it is killed.
const endsWithin = 10 * time.Second

// Start starts a program. It ends when ctx does, or by [Process.Stop].
func Start(ctx context.Context, c Command) (*Process, error) {
	path, err := Find(c.Name)
	if err != nil {
		return nil, err
	}
	p := &Process{name: filepath.Base(c.Name), done: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, "taskset", append([]string{"-c", strconv.Itoa(int(c.Core)), path}, c.Args...)...)
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	// A master that is killed would leave its workers behind.
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = endsWithin
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	go func() { // ends with the process, which Stop waits for
		_ = p.cmd.Wait() // some say by their code which signal ended them
		close(p.done)
	}()
	return p, nil
}

// Stop ends the program, and returns when it has ended.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	late := time.NewTimer(endsWithin)
	defer late.Stop()
	select {
	case <-p.done:
		return nil
	case <-late.C:
	}
	err := p.cmd.Process.Kill()
	<-p.done
	return errors.Join(fmt.Errorf("%s did not end within %v", p.name, endsWithin), err)
}

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// Pid is the number of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log is what the program has said so far.
func (p *Process) Log() string { return p.log.String() }

// startsWithin is how long a program may take until it answers.
const startsWithin = 15 * time.Second

// Await returns when url is answered, and with anything else than 503: then the program that serves it is ready. The error has what
// the program said.
func (p *Process) Await(ctx context.Context, url string) error {
	return p.AwaitFunc(ctx, "answers at "+url, func(ctx context.Context) bool { return answers(ctx, url) })
}

// AwaitFunc returns when ready reports true. what says in the error what did not come about, and the error has what
// the program said.
func (p *Process) AwaitFunc(ctx context.Context, what string, ready func(context.Context) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startsWithin, fmt.Errorf("nobody %s within %v", what, startsWithin))
	defer cancel()
	for !ready(ctx) {
		select {
		case <-p.done:
			return fmt.Errorf("%s has ended: %v\n%s", p.name, p.cmd.ProcessState, p.Log())
		case <-ctx.Done():
			return fmt.Errorf("%s: %w\n%s", p.name, context.Cause(ctx), p.Log())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode != http.StatusServiceUnavailable
}
