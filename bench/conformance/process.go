//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// process is a child that runs until it is stopped.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	log  output
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

// startProcess starts a program and returns when something listens on addr.
func startProcess(ctx context.Context, addr, path string, args ...string) (*process, error) {
	p := &process{name: path, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the process, which stop waits for
		p.cmd.Wait()
		close(p.done)
	}()
	if err := p.await(ctx, addr); err != nil {
		p.stop()
		return nil, fmt.Errorf("%s: %w; it says:\n%s", path, err, p.log.String())
	}
	return p, nil
}

// startWithin is how long a program may take until it listens.
const startWithin = 30 * time.Second

func (p *process) await(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startWithin, fmt.Errorf("nothing listens on %s within %v", addr, startWithin))
	defer cancel()
	for {
		var d net.Dialer
		if c, err := d.DialContext(ctx, "tcp", addr); err == nil {
			return c.Close()
		}
		select {
		case <-p.done:
			return fmt.Errorf("it ended: %v", p.cmd.ProcessState)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stop ends the process: kindly, and after a while not.
func (p *process) stop() {
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.kill()
	}
}

// kill ends the process as a crash does.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

func (p *process) signal(s syscall.Signal) { p.cmd.Process.Signal(s) } // it may have ended already
