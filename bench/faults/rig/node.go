//go:build linux

package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/node"
)

// Node is one node of a mesh. It may be started many times.
type Node struct {
	Name, Site string
	Place      Place
	Data       string   // its data directory
	Args       []string // for its next starts, besides what the mesh gives
	Disk       *Disk    // Data is on it; nil: on that of the machine

	mesh   *Mesh
	origin string
	starts int
	child  *child
	client http.Client
}

// child is one start of a node.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // how it ended; read it after done
	log  string
}

// Start starts the node and returns at once.
func (n *Node) Start() error {
	if n.Running() {
		return fmt.Errorf("start %s: it runs", n.Name)
	}
	n.starts++
	stem := fmt.Sprintf("%s-%03d", n.Name, n.starts)
	src := record.Source{Node: n.Name, Path: filepath.Join(n.mesh.dir, stem+".rec")}
	args := append([]string{
		"run", "--origin", n.origin, "--name", n.Name, "--site", n.Site,
		"--max-connections-per-address", "100000", // the crowd has one
		"--listen", n.Place.HTTP, "--admin", n.Place.Admin, "--mesh", n.Place.Mesh,
		"--secret-file", n.mesh.secret, "--data-dir", n.Data, "--fault-record", src.Path,
		"--bootstrap-nodes", strings.Join(n.mesh.names, ","),
	}, n.mesh.args...)
	if n.Place.Advertise != "" {
		args = append(args, "--advertise", n.Place.Advertise)
	}
	for _, seed := range n.mesh.seeds(n) {
		args = append(args, "--join", seed)
	}
	c, err := startChild(n.Place.Namespace, n.mesh.binary, append(args, n.Args...), filepath.Join(n.mesh.dir, stem+".log"))
	if err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}
	n.child = c
	n.mesh.sources = append(n.mesh.sources, src)
	return nil
}

func startChild(namespace, binary string, args []string, log string) (*child, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(binary, args...), done: make(chan struct{}), log: log}
	c.cmd.Stdout, c.cmd.Stderr = f, f
	// A group of its own, so that Ctrl-C reaches only us; and an end of its own
	// if we are gone without having been able to end it.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The kernel ends the child together with the thread that started it,
		// so the thread stays for as long. It is never unlocked: it may have
		// left our namespace.
		runtime.LockOSThread()
		start := c.cmd.Start
		var err error
		if namespace != "" {
			err = enterAnd(namespace, start)
		} else {
			err = start()
		}
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
		}
		_ = f.Close() // the child had its own
		close(c.done)
	}()
	return c, <-started
}

// Running reports whether the process has not ended.
func (n *Node) Running() bool {
	if n.child == nil {
		return false
	}
	select {
	case <-n.child.done:
		return false
	default:
		return true
	}
}

// signal sends a signal to the process; that it has ended is no error.
func (n *Node) signal(s syscall.Signal) error {
	if !n.Running() {
		return nil
	}
	if err := n.child.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s to %s: %w", s, n.Name, err)
	}
	return nil
}

// Kill ends the process as a crash does, and waits for that.
func (n *Node) Kill() error {
	if n.child == nil {
		return nil
	}
	err := n.signal(syscall.SIGKILL)
	<-n.child.done
	return err
}

// Pause stops the process in its tracks, as a machine that is suspended.
func (n *Node) Pause() error { return n.signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (n *Node) Resume() error { return n.signal(syscall.SIGCONT) }

// Stop ends the process as an operator does; after grace it is killed.
func (n *Node) Stop(grace time.Duration) error {
	if err := errors.Join(n.signal(syscall.SIGTERM), n.Resume()); err != nil {
		return err
	}
	if n.Ended(grace) {
		return nil
	}
	return errors.Join(fmt.Errorf("%s did not end within %v of SIGTERM", n.Name, grace), n.Kill())
}

// Ended waits for at most d and reports whether the process has ended.
func (n *Node) Ended(d time.Duration) bool {
	if n.child == nil {
		return true
	}
	select {
	case <-n.child.done:
		return true
	case <-time.After(d):
		return false
	}
}

// Code returns how the last start has ended: an exit code, or -1 for a signal.
func (n *Node) Code() int { return n.child.cmd.ProcessState.ExitCode() }

// Wipe loses the data directory of a node that does not run.
func (n *Node) Wipe() error {
	entries, err := os.ReadDir(n.Data)
	for _, e := range entries { // one by one: the directory itself may be a disk
		err = errors.Join(err, os.RemoveAll(filepath.Join(n.Data, e.Name())))
	}
	return err
}

// Copy copies the data directory as it is now to a new one.
func (n *Node) Copy(to string) error { return os.CopyFS(to, os.DirFS(n.Data)) }

// Log returns what the last start has printed.
func (n *Node) Log() string {
	if n.child == nil {
		return ""
	}
	text, err := os.ReadFile(n.child.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Tail returns the last lines of the log.
func (n *Node) Tail(lines int) string {
	all := bytes.Split(bytes.TrimSpace([]byte(n.Log())), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// Status asks the node what it sees.
func (n *Node) Status(ctx context.Context) (s node.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Place.Admin+"/status", nil)
	if err != nil {
		return s, err
	}
	resp, err := n.client.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("status of %s: %s", n.Name, resp.Status)
	}
	return s, json.NewDecoder(resp.Body).Decode(&s)
}
