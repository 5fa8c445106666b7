package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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
	flag.Parse()
	if !isGiven("test.parallel") {
		_ = flag.Set("test.parallel", waitTogether()) // at worst it takes longer
	}
	os.Exit(m.Run())
}

// waitTogether is how many parallel tests run at a time, whatever the number of cores: what they
// do is wait, and those that only make test-all runs send many requests as well.
func waitTogether() string {
	if testing.Short() {
		return "6"
	}
	return "4"
}

// isGiven reports whether a flag is on the command line.
func isGiven(name string) (is bool) {
	flag.Visit(func(f *flag.Flag) { is = is || f.Name == name })
	return is
}

// running is one node that runs: in a process of its own, which can be killed and gets
// signals, or, for all else, in the one of the test.
type running struct {
	t      *testing.T
	name   string
	site   string
	http   string
	admin  string
	mesh   string
	args   []string // besides addresses
	shell  []string // a command that is given the program and its arguments, and becomes it; nil: none
	log    string   // the file that it logs to; "": it is kept in memory
	served bool     // in this process

	ahead time.Duration // of its clock, where it is served in this process
	runner
}

// runner is what runs a node: a *rig.Process or an *inProcess.
type runner interface {
	Ended() <-chan struct{}
	Running() bool
	Log() string
	Code() int // once it has ended
	StopWithin(limit time.Duration) error
	Kill() error
	Signal(s syscall.Signal) error
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

// startNode starts a node in a process of its own and returns at once.
func startNode(t *testing.T, name, site string, args ...string) *running {
	t.Helper()
	return startNodeAt(t, name, site, freeAddress(t), args...)
}

// startNodeAt is startNode with the address for visitors.
func startNodeAt(t *testing.T, name, site, address string, args ...string) *running {
	t.Helper()
	p := newRunning(t, name, site, address, args...)
	p.start()
	p.endWithTest()
	return p
}

// newRunning returns a node that has still to be started.
func newRunning(t *testing.T, name, site, address string, args ...string) *running {
	t.Helper()
	return &running{
		t: t, name: name, site: site, args: args,
		http: address, admin: freeAddress(t), mesh: freeAddress(t),
	}
}

// endWithTest has the node end when the test does, and its log be shown if that fails.
func (p *running) endWithTest() {
	p.t.Cleanup(func() {
		switch {
		case p.runner == nil:
			return
		case p.served:
			p.stop()
		default:
			p.kill()
		}
		if p.t.Failed() {
			p.t.Logf("log of %s:\n%s", p.name, p.Log())
		}
	})
}

func (p *running) start() {
	p.t.Helper()
	args := append([]string{"run", "--name", p.name, "--site", p.site, "--listen", p.http, "--admin", p.admin}, p.args...)
	if p.served {
		p.serve(args[1:])
		return
	}
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	line := append(append(slices.Clone(p.shell), self), args...)
	started, err := rig.Start(p.t.Context(), rig.Command{Name: line[0], Args: line[1:], Env: []string{asCommand + "=1"}, Log: p.log})
	if err != nil {
		p.t.Fatal(err)
	}
	p.runner = started
}

// kill ends the process with SIGKILL, as a crash does.
func (p *running) kill() {
	p.t.Helper()
	if err := p.Kill(); err != nil {
		p.t.Error(err)
	}
}

// stop ends the process as an operator does, and returns its exit code.
func (p *running) stop() int {
	p.t.Helper()
	if err := p.StopWithin(40 * time.Second); err != nil {
		p.t.Error(err)
	}
	return p.Code()
}

// status asks the node what it sees.
func (p *running) status() (node.Status, error) {
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
func (p *running) await(what string, limit time.Duration, wanted func(node.Status) bool) {
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

// startMesh starts one node per site named, each in a process of its own, and waits until all
// see all.
func startMesh(t *testing.T, origin string, sites []string, args ...string) []*running {
	t.Helper()
	return meshOf(t, origin, sites, nobody, args...)
}

// serveMesh is startMesh in this process.
func serveMesh(t *testing.T, origin string, sites []string, args ...string) []*running {
	t.Helper()
	return meshOf(t, origin, sites, but(), args...)
}

// nobody is served in this process.
func nobody(int) bool { return false }

// but has all nodes served in this process but those.
func but(alone ...int) func(int) bool {
	return func(i int) bool { return !slices.Contains(alone, i) }
}

// meshOf is startMesh, with those nodes in this process for which served says so.
func meshOf(t *testing.T, origin string, sites []string, served func(i int) bool, args ...string) []*running {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.key")
	keygen(t, secret)
	var nodes []*running
	var names []string
	for i, site := range sites {
		names = append(names, fmt.Sprintf("%s%d", site, i+1))
	}
	for i, site := range sites {
		p := &running{
			t: t, name: names[i], site: site, served: served(i),
			http: freeAddress(t), admin: freeAddress(t), mesh: freeAddress(t),
		}
		p.args = append([]string{
			"--origin", origin, "--secret-file", secret, "--mesh", p.mesh,
			"--bootstrap-nodes", strings.Join(names, ","), "--data-dir", filepath.Join(dir, p.name),
		}, args...)
		if i > 0 {
			p.args = append(p.args, "--join", nodes[0].mesh)
		}
		p.start()
		p.endWithTest()
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
