package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// startShell starts a shell script as the process of a node.
func startShell(t *testing.T, script string) *rig.Process {
	t.Helper()
	p, err := rig.Start(t.Context(), rig.Command{Name: "sh", Args: []string{"-c", script}, Log: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() }) // most have ended
	return p
}

func TestPlanDemoMesh(t *testing.T) {
	m, err := planDemoMesh("dir", "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	sites := map[string]bool{}
	for _, n := range m.nodes {
		for _, a := range []string{n.http, n.admin, "udp " + n.mesh} {
			if seen[a] {
				t.Errorf("%s is given out twice", a)
			}
			seen[a] = true
		}
		sites[n.site] = true
	}
	if len(m.nodes) != 3 || len(sites) != 2 {
		t.Errorf("got %d nodes in %d sites, want 3 in 2", len(m.nodes), len(sites))
	}
}

func TestPlanDemoMeshWhereTheAddressIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	m, err := planDemoMesh("dir", taken, false)
	if err != nil || m.nodes[0].http == taken {
		t.Errorf("got %+v, %v, want another address", m, err)
	}
	if _, err := planDemoMesh("dir", taken, true); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("got %v for an address that was asked for, want an error that says what to do", err)
	}
}

// The flags are those that run takes.
func TestDemoArgumentsAreTaken(t *testing.T) {
	m, err := planDemoMesh("dir", "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range m.nodes {
		args := m.arguments(n, "http://127.0.0.1:1", demoRoom{active: 20, perMinute: 120, session: 15 * time.Second, refresh: 2 * time.Second, method: room.FIFO})
		cmd, rest, err := newRootCommand().Find(args)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.ParseFlags(rest); err != nil || cmd.Name() != "run" {
			t.Errorf("%s %q: %v", cmd.Name(), args, err)
		}
		joins := 0
		for _, a := range args {
			if a == "--join" {
				joins++
			}
		}
		if joins != i {
			t.Errorf("node %d joins %d others, want those before it", i, joins)
		}
	}
}

// fakeNodes gives every node of m a process that runs and an admin address that
// answers with what status returns.
func fakeNodes(t *testing.T, status func(n *demoNode) node.Status) *demoMesh {
	t.Helper()
	m, err := planDemoMesh(t.TempDir(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range m.nodes {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/status" {
				t.Errorf("asked for %s", r.URL.Path)
			}
			_ = json.NewEncoder(w).Encode(status(n))
		}))
		t.Cleanup(server.Close)
		n.admin = server.Listener.Addr().String()
		n.process = startShell(t, "exec sleep 1000")
	}
	return m
}

// readyStatus is what a node says that has a room and sees two others.
func readyStatus(n *demoNode) node.Status {
	return node.Status{
		Name: n.name, Ready: true,
		Peers: []node.PeerStatus{{Name: "a", State: "alive"}, {Name: "b", State: "alive"}},
		Rooms: []node.RoomStatus{{
			Name: "shop", Active: 13, TotalActiveUsers: 20, Waiting: 7, AdmittedPerMinute: 31,
			Sites: []node.SiteStatus{{Site: "north", Active: 13, Waiting: 7}},
		}},
	}
}

func TestDemoMeshAwaitsAll(t *testing.T) {
	var asked atomic.Int64
	m := fakeNodes(t, func(n *demoNode) node.Status {
		s := readyStatus(n)
		switch asked.Add(1) {
		case 1:
			s.Ready, s.Reason = false, "warming up"
		case 2:
			s.Peers[1].State = "failed"
		}
		return s
	})
	if err := m.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 5 {
		t.Errorf("asked %d times, want 3 nodes and two more tries for the first", n)
	}
}

func TestDemoMeshSaysWhoIsNotReady(t *testing.T) {
	m := fakeNodes(t, func(n *demoNode) node.Status {
		s := readyStatus(n)
		if n.name == "north-2" {
			s.Ready, s.Reason = false, "still filling"
		}
		return s
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := m.awaitReady(ctx)
	if err == nil || !strings.Contains(err.Error(), "north-2") || !strings.Contains(err.Error(), "still filling") {
		t.Errorf("got %v, want the node and its reason", err)
	}
}

func TestDemoMeshSaysWhoDiedAtTheStart(t *testing.T) {
	m := fakeNodes(t, func(*demoNode) node.Status { return node.Status{} })
	dead := m.nodes[2]
	dead.process = startShell(t, "echo port in use; exit 1")
	<-dead.process.Ended()
	m.ended <- dead
	if err := m.awaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "south-1") || !strings.Contains(err.Error(), "port in use") {
		t.Errorf("got %v, want the node and its last words", err)
	}
}

func TestDemoShow(t *testing.T) {
	m := fakeNodes(t, readyStatus)
	if err := m.nodes[0].process.Kill(); err != nil { // the others are asked instead
		t.Fatal(err)
	}
	var out bytes.Buffer
	o := demoOptions{room: demoRoom{active: 20}}
	introduce(&out, m, o)
	ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
	defer cancel()
	if err := newDemoShow(m, o, &out).run(ctx); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"http://" + m.nodes[0].http + "/", "Nobody else is there",
		"13/20 active, 7 waiting, 31 in/min  north 13+7",
		"at most 13 of 20 places were taken and 7 visitors waited",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant %q in it", out.String(), want)
		}
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("a line has %d columns, which 80 wrap: %s", n, line)
		}
	}
	if strings.Contains(out.String(), "simulated visitors") {
		t.Errorf("told of a crowd that is not there:\n%s", out.String())
	}
}

func TestDemoShowWithANodeKilled(t *testing.T) {
	m := fakeNodes(t, readyStatus)
	m.nodes[1].process = startShell(t, "kill -9 $$")
	<-m.nodes[1].process.Ended()
	m.ended <- m.nodes[1]
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := newDemoShow(m, demoOptions{}, &out).run(ctx); err != nil || !strings.Contains(out.String(), "north-2 was killed") {
		t.Errorf("got %v and\n%s\nwant it to go on", err, out.String())
	}
	m.nodes[2].process = startShell(t, "echo broken; exit 1")
	<-m.nodes[2].process.Ended()
	m.ended <- m.nodes[2]
	if err := newDemoShow(m, demoOptions{}, &out).run(t.Context()); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v, want a node that fails by itself to end the show", err)
	}
}

// demo runs the whole demonstration as a user does, who ends it once it shows
// something or leaves that to it, and returns what it printed. It must leave
// nothing behind.
func demo(t *testing.T, interrupt bool, args ...string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	began := time.Now()
	p, err := rig.Start(t.Context(), rig.Command{
		Name: exe, Args: append([]string{"demo", "--listen", "127.0.0.1:0"}, args...),
		Env: []string{asCommand + "=1", "TMPDIR=" + temp},
	})
	if err != nil {
		t.Fatal(err)
	}
	if interrupt {
		for !strings.Contains(p.Log(), "in/min") && time.Since(began) < time.Minute {
			time.Sleep(50 * time.Millisecond)
		}
		if err := p.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}
	<-p.Ended()
	out := p.Log()
	if p.Code() != 0 {
		t.Errorf("%q: %s\n%s", args, p.State(), out)
	}
	pids := pidsIn(out)
	if len(pids) != 3 {
		t.Errorf("%q: told of processes %v, want three", args, pids)
	}
	for _, pid := range pids {
		if !gone(pid) {
			t.Errorf("%q: process %d is still there", args, pid)
		}
	}
	left, err := os.ReadDir(temp)
	if err != nil || len(left) != 0 {
		t.Errorf("%q: left %v behind, %v", args, left, err)
	}
	return out
}

// gone reports whether a process has ended, whoever has to be told of it.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestDemo(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	out := demo(t, false, "--for", "8s", "--crowd", "30")
	t.Logf("%s", out)
	var active, waited, visitors, had, admitted int
	_, after, _ := strings.Cut(out, "After ")
	_, err := fmt.Sscanf(after[strings.Index(after, ":")+1:], " at most %d of 20 places were taken and %d visitors waited", &active, &waited)
	if err != nil || active < 10 || waited < 1 {
		t.Errorf("at most %d active and %d waiting, want a full room: %v", active, waited, err)
	}
	_, after, _ = strings.Cut(out, "\nOf ")
	_, err = fmt.Sscanf(after, "%d simulated visitors %d had to wait and %d were let in", &visitors, &had, &admitted)
	if err != nil || visitors < 30 || had < 1 || admitted < 10 {
		t.Errorf("of %d visitors %d waited and %d came in, want a crowd: %v", visitors, had, admitted, err)
	}
	if !strings.Contains(out, "\n0 sessions were lost, and 0 of ") {
		t.Error("sessions were lost, or requests failed")
	}
	out = demo(t, true, "--crowd", "0")
	if !strings.Contains(out, "Nobody else is there") || strings.Contains(out, "requests failed") {
		t.Errorf("got\n%s", out)
	}
}

// pidsIn returns the processes that the demonstration said it started.
func pidsIn(out string) (pids []int) {
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 5 && strings.HasSuffix(f[4], "/status") {
			if pid, err := strconv.Atoi(f[2]); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
