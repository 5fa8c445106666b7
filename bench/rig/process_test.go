package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestMissingSaysWhoBringsIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	own := filepath.Join(t.TempDir(), "own")
	if err := os.WriteFile(own, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	got := Missing("no-such-program", own, "artifacts/caddy", "/no/such/ngx_http_lua_module.so")
	want := []string{"no-such-program", "caddy (make artifacts/caddy)", "ngx_http_lua_module.so"}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(Missing(own)) != 0 {
		t.Error("a program that is there is missing")
	}
}

func needTaskset(t *testing.T) {
	t.Helper()
	if missing := Missing("taskset", "sleep", "sh"); len(missing) > 0 {
		t.Skip(missing)
	}
}

func TestProcessEndsWithItsContext(t *testing.T) {
	needTaskset(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := Start(ctx, Command{Core: OfServer, Name: "sleep", Args: []string{"60"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Usage(); err != nil {
		t.Error(err)
	}
	cancel()
	<-p.Ended()
	if err := p.Stop(); err != nil {
		t.Errorf("it has ended, and to stop it gives %v", err)
	}
}

func TestAwaitTellsWhatTheProgramSaid(t *testing.T) {
	needTaskset(t)
	p, err := Start(t.Context(), Command{Core: OfServer, Name: "sh", Args: []string{"-c", "echo no such setting >&2; exit 1"}})
	if err != nil {
		t.Fatal(err)
	}
	err = p.AwaitFunc(t.Context(), "comes", func(context.Context) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "no such setting") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("got %v", err)
	}
}

// startShell starts a shell script, whose log is a file.
func startShell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(t.Context(), Command{Name: "sh", Args: []string{"-c", script}, Log: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() }) // most have ended
	return p
}

func TestAFailureIsTold(t *testing.T) {
	p := startShell(t, `for i in 1 2 3 4 5 6 7 8; do echo line $i; done; echo "no such port" >&2; exit 3`)
	<-p.Ended()
	if p.Running() || p.Killed() || p.Code() != 3 || p.State() != "exit status 3" {
		t.Errorf("running %v, killed %v, code %d, %s; want exit code 3", p.Running(), p.Killed(), p.Code(), p.State())
	}
	if got, want := p.Tail(3), "line 7\nline 8\nno such port"; got != want {
		t.Errorf("the last lines are %q, want %q", got, want)
	}
}

func TestStopIsPromptAndMayComeTwice(t *testing.T) {
	p, start := startShell(t, "exec sleep 1000"), time.Now()
	for range 2 {
		if err := p.Stop(); err != nil || p.Running() || p.Killed() || time.Since(start) > 30*time.Second {
			t.Errorf("running %v, killed %v after %v, %v; want a prompt end", p.Running(), p.Killed(), time.Since(start), err)
		}
	}
}

func TestAPausedProcessStops(t *testing.T) {
	p := startShell(t, "exec sleep 1000")
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil || p.Killed() {
		t.Errorf("got %v, killed %v; want it to end of SIGTERM", err, p.Killed())
	}
}

func TestWhatDoesNotStopIsKilledWithItsOwn(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no process groups here")
	}
	p := startShell(t, `trap "" TERM; sleep 1000 & echo $!; wait; wait`)
	var child int
	for child == 0 { // the log is all that it tells
		_, _ = fmt.Sscan(p.Log(), &child)
		runtime.Gosched()
	}
	if err := p.StopWithin(50 * time.Millisecond); err == nil || p.Running() || !p.Killed() {
		t.Errorf("got %v, running %v, killed %v; want an error and it killed", err, p.Running(), p.Killed())
	}
	for dead := false; !dead; runtime.Gosched() {
		dead = gone(child)
	}
}

// gone reports whether a process has ended, whoever has to be told of it.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestWhatCannotStart(t *testing.T) {
	for _, c := range []Command{{Name: filepath.Join(t.TempDir(), "nothing")}, {Name: "sh", Log: "/no/such/directory/log"}, {Name: "sh", Namespace: "no-such-namespace"}} {
		if p, err := Start(t.Context(), c); err == nil {
			t.Errorf("%+v runs as process %d", c, p.Pid())
		}
	}
}

// TestBuiltStaysTheSameFile where nothing has changed: results of tests that use it stay in the cache.
func TestBuiltStaysTheSameFile(t *testing.T) {
	var first os.FileInfo
	for range 2 {
		path, err := Built(t.Context(), Ropeline)
		if err != nil {
			t.Fatal(err)
		}
		is, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && (!os.SameFile(first, is) || !first.ModTime().Equal(is.ModTime())) {
			t.Errorf("%s is another file the second time", path)
		}
		first = is
	}
}

// TestVersionOfWhatDoesNotSay reads it of the file, where that is of Go.
func TestVersionOfWhatDoesNotSay(t *testing.T) {
	for script, want := range map[string]string{"echo shell v7.8.9 h1:abc": "7.8.9", "echo unknown": "", "echo 1.2; exit 1": ""} {
		if got := Version(t.Context(), "sh", "-c", script); got != want {
			t.Errorf("%q is of version %q, want %q", script, got, want)
		}
	}
	own, err := os.Executable() // which is of a module without a version, as what go build makes
	if err != nil {
		t.Fatal(err)
	}
	if got := Version(t.Context(), own, "-test.list=none"); got != "" {
		t.Errorf("a test is of version %q", got)
	}
}
