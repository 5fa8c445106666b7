package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node"
)

// asCommand, set in the environment, makes the test binary the command itself:
// so the processes of a test run the code under test, with the race detector
// if the test has it.
const asCommand = "ROPELINE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is one node that runs as a process of its own.
type process struct {
	t     *testing.T
	name  string
	site  string
	http  string
	admin string
	mesh  string
	args  []string // besides addresses
	*rig.Process
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

// inTestAll leaves a test out of those that a change waits for: it takes many seconds.
func inTestAll(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a while; make test-all runs it")
	}
}

// startNode starts a node and returns at once.
func startNode(t *testing.T, name, site string, args ...string) *process {
	t.Helper()
	return startNodeAt(t, name, site, freeAddress(t), args...)
}

// startNodeAt is startNode with the address for visitors.
func startNodeAt(t *testing.T, name, site, address string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, site: site, args: args,
		http: address, admin: freeAddress(t), mesh: freeAddress(t)}
	p.start()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", p.name, p.Log())
		}
	})
	return p
}

func (p *process) start() {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	args := append([]string{"run", "--name", p.name, "--site", p.site, "--listen", p.http, "--admin", p.admin}, p.args...)
	p.Process, err = rig.Start(p.t.Context(), rig.Command{Name: self, Args: args, Env: []string{asCommand + "=1"}})
	if err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the process with SIGKILL, as a crash does.
func (p *process) kill() {
	p.t.Helper()
	if err := p.Kill(); err != nil {
		p.t.Error(err)
	}
}

// stop ends the process as an operator does, and returns its exit code.
func (p *process) stop() int {
	p.t.Helper()
	if err := p.StopWithin(40 * time.Second); err != nil {
		p.t.Error(err)
	}
	return p.Code()
}

// status asks the node what it sees.
func (p *process) status() (node.Status, error) {
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get("http://" + p.admin + "/status")
	if err != nil {
		return node.Status{}, err
	}
	defer resp.Body.Close()
	var s node.Status
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// await polls until the node's status is as wanted.
func (p *process) await(what string, limit time.Duration, wanted func(node.Status) bool) {
	p.t.Helper()
	var last node.Status
	var err error
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(25 * time.Millisecond) {
		select {
		case <-p.Ended():
			p.t.Fatalf("%s ended while the test waited until it %s", p.name, what)
		default:
		}
		if last, err = p.status(); err == nil && wanted(last) {
			return
		}
	}
	p.t.Fatalf("%s: not so within %v: it %s; last status %+v, error %v", p.name, limit, what, last, err)
}

func ready(s node.Status) bool { return s.Ready }

// sees returns a condition: that many peers in that state.
func sees(n int, state string) func(node.Status) bool {
	return func(s node.Status) bool {
		count := 0
		for _, p := range s.Peers {
			if p.State == state {
				count++
			}
		}
		return count == n
	}
}

// startMesh starts one node per site named, and waits until all see all.
func startMesh(t *testing.T, origin string, sites []string, args ...string) []*process {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.key")
	keygen(t, secret)
	var nodes []*process
	var names []string
	for i, site := range sites {
		names = append(names, fmt.Sprintf("%s%d", site, i+1))
	}
	for i, site := range sites {
		name := fmt.Sprintf("%s%d", site, i+1)
		p := &process{t: t, name: name, site: site,
			http: freeAddress(t), admin: freeAddress(t), mesh: freeAddress(t)}
		p.args = append([]string{"--origin", origin, "--secret-file", secret, "--mesh", p.mesh,
			"--bootstrap-nodes", strings.Join(names, ","), "--data-dir", filepath.Join(dir, name)}, args...)
		if i > 0 {
			p.args = append(p.args, "--join", nodes[0].mesh)
		}
		p.start()
		t.Cleanup(func() {
			p.kill()
			if t.Failed() {
				t.Logf("log of %s:\n%s", p.name, p.Log())
			}
		})
		nodes = append(nodes, p)
	}
	for _, p := range nodes {
		p.await("is ready and sees all others", 30*time.Second, func(s node.Status) bool {
			return s.Ready && sees(len(nodes)-1, "alive")(s)
		})
	}
	return nodes
}

func keygen(t *testing.T, path string) {
	t.Helper()
	cmd := newRootCommand()
	cmd.SetArgs([]string{"keygen", "--out", path})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := rig.Free()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// startOrigin serves a site that says how it was asked.
func startOrigin(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, "<!doctype html><html lang=en><title>The shop</title><h1 id=shop>Welcome to the shop</h1></html>")
	})}
	done := make(chan struct{})
	go func() {
		srv.Serve(l)
		close(done)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}
