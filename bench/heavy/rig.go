//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// rig is a node in front of an origin.
type rig struct {
	node, origin *process
	addr         string // where visitors connect
	dir          string
}

// process is one of the two.
type process struct {
	cmd  *exec.Cmd
	log  lockedBuffer
	done chan error
}

type lockedBuffer struct {
	mu  sync.Mutex // guards the following
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newRig starts both and waits until the node takes requests.
func newRig(ctx context.Context, binary string) (r *rig, err error) {
	r = &rig{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.stop())
		}
	}()
	if r.dir, err = os.MkdirTemp("", "ropeline-heavy-"); err != nil {
		return r, err
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	r.origin = &process{}
	out, in := io.Pipe()
	if err = r.origin.start(ctx, exec.CommandContext(ctx, self, "-origin"), in); err != nil {
		return r, err
	}
	site, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return r, fmt.Errorf("the origin: %w", err)
	}
	var ports [2]string
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			return r, err
		}
	}
	r.addr = ports[0]
	r.node = &process{}
	err = r.node.start(ctx, exec.CommandContext(ctx, binary, "run", "--origin", strings.TrimSpace(site), "--listen", ports[0], "--admin", ports[1],
		"--data-dir", r.dir, "--total-active-users", "1000000", "--new-users-per-minute", "1000000"), nil)
	if err != nil {
		return r, err
	}
	return r, r.await(ctx, "http://"+ports[1]+"/readyz")
}

// start starts cmd. Its standard output goes to out, if that is set.
func (p *process) start(_ context.Context, cmd *exec.Cmd, out io.Writer) error {
	p.cmd, p.done = cmd, make(chan error, 1)
	cmd.Stdout, cmd.Stderr = out, &p.log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() { p.done <- cmd.Wait() }()
	return nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (r *rig) await(ctx context.Context, url string) error {
	for range 600 {
		resp, err := http.Get(url)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-r.node.done:
			return fmt.Errorf("the node has ended: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("the node is not ready after 30 s")
}

// stop ends both processes.
func (r *rig) stop() error {
	var errs []error
	for _, p := range []*process{r.node, r.origin} {
		if p == nil || p.cmd == nil || p.cmd.Process == nil {
			continue
		}
		p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(40 * time.Second):
			errs = append(errs, fmt.Errorf("%s did not end within 40 s", p.cmd.Path), p.cmd.Process.Kill())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}

// resident returns the node's resident memory in bytes.
func (r *rig) resident() (int64, error) { return r.status("VmRSS:") }

// forgetPeak makes peak begin anew; see proc(5), clear_refs.
func (r *rig) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", r.node.cmd.Process.Pid), []byte("5"), 0)
}

// peak returns the most bytes that the node had resident since forgetPeak.
func (r *rig) peak() (int64, error) { return r.status("VmHWM:") }

func (r *rig) status(key string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.node.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(text), key)
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 || fields[1] != "kB" {
		return 0, fmt.Errorf("/proc/…/status does not tell %s", key)
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	return n << 10, err
}

// processor returns how long the node has had a processor.
func (r *rig) processor() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.node.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name of the program is in brackets and may hold anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("/proc/…/stat has too few fields")
	}
	var ticks int64 // of a hundredth of a second, user and system
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
