//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropeline/ropeline/bench/loopback"
	"github.com/ropeline/ropeline/transport"
)

// ofNodes is the processor that nodes have.
const ofNodes = "0"

// settings are those of all nodes: a room whose visitors are let in at once, and one in which all
// of them wait.
const settings = `
total-active-users: 10000000
new-users-per-minute: 10000000
session-duration: 1m
max-connections-per-address: 100000
max-requests-per-connection: 1048576
rooms:
  - room: open
    path: /open
    cookie-suffix: open
  - room: closed
    path: /closed
    cookie-suffix: closed
    queue-all: true
    refresh-interval: 3s
`

// group is all processes, in meshes of the same size.
type group struct {
	dir   string
	nodes []*process
}

// process is one node.
type process struct {
	http, admin, mesh string
	cmd               *exec.Cmd
	log               bytes.Buffer
	done              chan error
}

// startGroup starts all processes and waits until every mesh is whole. What it returns has to be
// stopped, after an error too.
func startGroup(ctx context.Context, binary string, size int, site string) (*group, error) {
	g := &group{}
	var err error
	if g.dir, err = os.MkdirTemp("", "scaling"); err != nil {
		return g, err
	}
	file := filepath.Join(g.dir, "ropeline.yaml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		return g, err
	}
	secret := filepath.Join(g.dir, "secret.key")
	if err := os.WriteFile(secret, []byte(transport.NewSecret().Text()+"\n"), 0o600); err != nil {
		return g, err
	}
	for i := range processes {
		// The first of each mesh makes it, and is waited for.
		first := i / size * size
		args := []string{"run", "--bootstrap-nodes", fmt.Sprint("node-", first), "--config", file, "--secret-file", secret, "--origin", site, "--log-level", "warn"}
		if first != i {
			args = append(args, "--join", g.nodes[first].mesh)
		}
		p, err := startProcess(binary, filepath.Join(g.dir, fmt.Sprint("node-", i)), args)
		if err != nil {
			return g, err
		}
		g.nodes = append(g.nodes, p)
		if i%size == 0 {
			if err := p.await(ctx, 0); err != nil { // who joins shall find somebody
				return g, err
			}
		}
	}
	for _, p := range g.nodes {
		if err := p.await(ctx, size-1); err != nil {
			return g, err
		}
	}
	return g, sleep(ctx, 5*time.Second) // rights and counters have settled
}

func startProcess(binary, dir string, args []string) (*process, error) {
	p := &process{done: make(chan error, 1)}
	for _, at := range []*string{&p.http, &p.admin, &p.mesh} {
		var err error
		if *at, err = loopback.Free(); err != nil {
			return nil, err
		}
	}
	args = append(args, "--name", filepath.Base(dir), "--data-dir", dir, "--listen", p.http, "--admin", p.admin, "--mesh", p.mesh)
	p.cmd = exec.Command("taskset", append([]string{"-c", ofNodes, binary}, args...)...)
	p.cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.done <- p.cmd.Wait() }()
	return p, nil
}

// await waits until a node takes requests and sees that many others.
func (p *process) await(ctx context.Context, others int) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		select {
		case err := <-p.done:
			p.done <- err
			return fmt.Errorf("a node ended: %v\n%s", err, p.log.String())
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
		resp, err := http.Get("http://" + p.admin + "/status")
		if err != nil {
			continue
		}
		var s struct {
			Ready bool
			Peers []struct{ State string }
		}
		err = json.NewDecoder(resp.Body).Decode(&s)
		resp.Body.Close()
		alive := 0
		for _, o := range s.Peers {
			if o.State == "alive" {
				alive++
			}
		}
		if err == nil && s.Ready && alive == others {
			return nil
		}
	}
	return fmt.Errorf("a node does not see %d others within a minute", others)
}

// used returns the processor time that all nodes take while f runs, and how long that is.
func (g *group) used(ctx context.Context, f func(context.Context) error) (used, span time.Duration, err error) {
	before, err := g.cpu()
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := f(ctx); err != nil {
		return 0, 0, err
	}
	after, err := g.cpu()
	return after - before, time.Since(start), err
}

// cpu returns the processor time that all nodes have taken so far, of all their threads, as the
// scheduler has it in nanoseconds.
func (g *group) cpu() (total time.Duration, err error) {
	for _, p := range g.nodes {
		// The clock of another process: the kernel's MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED).
		var t unix.Timespec
		if err := unix.ClockGettime(int32(^p.cmd.Process.Pid<<3|2), &t); err != nil {
			return 0, fmt.Errorf("processor time of a node: %w\n%s", err, p.log.String())
		}
		total += time.Duration(t.Nano())
	}
	return total, nil
}

func (g *group) stop() error {
	for _, p := range g.nodes {
		_ = p.cmd.Process.Kill()
	}
	for _, p := range g.nodes {
		<-p.done
	}
	return os.RemoveAll(g.dir)
}
