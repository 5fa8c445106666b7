//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ropeline/ropeline/bench/loopback"
)

// process is a real node that founds a mesh, on loopback.
type process struct {
	listen, admin string
	dir           string
	cmd           *exec.Cmd
	ended         chan error
	log           lockedBuffer
	ready         time.Duration // from the start until it took requests
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

// startNode starts a node with the settings of config, YAML, beside those that it needs to
// be a node of a mesh, and waits until it takes requests.
func startNode(ctx context.Context, binary, config string) (p *process, err error) {
	p = &process{ended: make(chan error, 1)}
	if p.dir, err = os.MkdirTemp("", "ropeline-footprint-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%w\nThe node said:\n%s", err, p.log.String()), p.stop())
		}
	}()
	secret, file := filepath.Join(p.dir, "secret.key"), filepath.Join(p.dir, "ropeline.yaml")
	if out, err := exec.CommandContext(ctx, binary, "keygen", "--out", secret).CombinedOutput(); err != nil {
		return p, fmt.Errorf("keygen: %w: %s", err, out)
	}
	if err = os.WriteFile(file, []byte(config), 0o600); err != nil {
		return p, err
	}
	var ports [3]string
	for i := range ports {
		if ports[i], err = loopback.Free(); err != nil {
			return p, err
		}
	}
	p.listen, p.admin = ports[0], ports[1]
	p.cmd = exec.Command(binary, "run", "--config", file, "--listen", p.listen, "--admin", p.admin,
		"--name", "n1", "--mesh", ports[2], "--bootstrap-nodes", "n1", "--secret-file", secret, "--data-dir", filepath.Join(p.dir, "data"))
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	began := time.Now()
	if err = p.cmd.Start(); err != nil {
		return p, err
	}
	go func() { p.ended <- p.cmd.Wait() }()
	err = p.await(ctx)
	p.ready = time.Since(began)
	return p, err
}

// await waits until the node is ready.
func (p *process) await(ctx context.Context) error {
	for range 1200 {
		if resp, err := http.Get("http://" + p.admin + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := p.pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("the node is not ready after two minutes")
}

// pause waits for d, unless the node ends.
func (p *process) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-p.ended:
		p.ended <- err
		return fmt.Errorf("the node has ended: %w\n%s", err, p.log.String())
	case <-time.After(d):
		return nil
	}
}

// stop ends the node and removes its directory.
func (p *process) stop() error {
	var errs []error
	if p.cmd != nil && p.cmd.Process != nil {
		p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(time.Minute):
			errs = append(errs, errors.New("the node did not end within a minute"), p.cmd.Process.Kill())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}

// resident is memory that the kernel counts as resident, in bytes.
type resident struct {
	total int64 // VmRSS
	anon  int64 // of it, what is the process's alone: heap, stacks, tables of the runtime
	file  int64 // of it, pages of files: of the program, and of its store
}

// memory returns what the node has resident.
func (p *process) memory() (r resident, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return r, err
	}
	for key, to := range map[string]*int64{"VmRSS:": &r.total, "RssAnon:": &r.anon, "RssFile:": &r.file} {
		_, rest, ok := strings.Cut(string(text), key)
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 || fields[1] != "kB" {
			return r, fmt.Errorf("/proc/…/status does not tell %s", key)
		}
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return r, err
		}
		*to = kib << 10
	}
	return r, nil
}

// heap returns what the Go runtime of the node says of its heap: what is kept, what of it
// may not be used any more included, in bytes.
func (p *process) heap() (int64, error) {
	text, err := p.get("/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "go_memstats_heap_alloc_bytes "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
			return int64(f), err
		}
	}
	return 0, errors.New("/metrics does not tell the heap")
}

// inside returns how many visitors the node counts as active and as waiting, in all rooms.
func (p *process) inside() (active, waiting int, err error) {
	text, err := p.get("/status")
	if err != nil {
		return 0, 0, err
	}
	var s struct {
		Rooms []struct {
			Active  int `json:"active"`
			Waiting int `json:"waiting"`
		} `json:"rooms"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return 0, 0, err
	}
	for _, r := range s.Rooms {
		active += r.Active
		waiting += r.Waiting
	}
	return active, waiting, nil
}

func (p *process) get(path string) ([]byte, error) {
	resp, err := http.Get("http://" + p.admin + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, resp.Status)
	}
	return io.ReadAll(resp.Body)
}
