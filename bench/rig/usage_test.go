package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// proc makes files as the kernel has them of a process: its threads' time and wait, in nanoseconds.
func proc(t *testing.T, dir string, pid, parent int, name string, threads ...string) {
	t.Helper()
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := filepath.Join(dir, fmt.Sprint(pid))
	write(filepath.Join(own, "stat"), fmt.Sprintf("%d (%s) S %d 1 1 0 -1 4194560 100 0 0 0 7 5 0 0 20 0 1 0 1 2 3\n", pid, name, parent))
	for i, line := range threads {
		write(filepath.Join(own, "task", fmt.Sprint(pid+i), "schedstat"), line)
	}
}

// clocks are those of processes, by their numbers.
func clocks(of map[int]time.Duration) func(int) (time.Duration, error) {
	return func(pid int) (time.Duration, error) { return of[pid], nil }
}

func TestUsageIsOfAllThreadsAndChildren(t *testing.T) {
	dir := t.TempDir()
	proc(t, dir, 10, 1, "master", "1000 200 3\n")
	proc(t, dir, 20, 10, "a worker) 1", "5000 30 1\n", "600 4 1\n") // names may have anything in them
	proc(t, dir, 30, 20, "its child", "70 1 1\n")
	proc(t, dir, 40, 1, "another", "1000000 1 1\n")
	got, err := usageOf(dir, 10, clocks(map[int]time.Duration{10: 1000, 20: 5600, 30: 70, 40: 1000000}))
	if want := (Usage{6670, 235}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestUsageWhereTheSchedulerDoesNotTellOfWaiting(t *testing.T) {
	dir := t.TempDir()
	proc(t, dir, 10, 1, "server")
	got, err := usageOf(dir, 10, clocks(map[int]time.Duration{10: 7}))
	if want := (Usage{CPU: 7}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestUsageOfWhatHasEnded(t *testing.T) {
	dir := t.TempDir()
	proc(t, dir, 10, 1, "another")
	if got, err := usageOf(dir, 11, clocks(nil)); err == nil {
		t.Errorf("got %v of a process that is not there", got)
	}
}

// TestTimeOfAnotherProcess reads the clock of a child that counts, and of a shell with such a child.
func TestTimeOfAnotherProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processor time is read on Linux only")
	}
	for _, script := range []string{"while :; do :; done", "(while :; do :; done); true"} {
		p := startShell(t, script)
		before, err := p.CPU()
		if err != nil {
			t.Fatal(err)
		}
		for after := before; after < before+5*time.Millisecond; {
			if after, err = p.CPU(); err != nil {
				t.Fatal(err)
			}
			if after < before {
				t.Fatalf("%v after %v", after, before)
			}
		}
	}
}

func TestUsageSums(t *testing.T) {
	a, b := Usage{3, 2}, Usage{10, 20}
	if got := a.Add(b).Sub(a); got != b {
		t.Errorf("got %v, want %v", got, b)
	}
}

func TestMemoryIsReadOfTheStatus(t *testing.T) {
	got, err := memoryIn("Name:\tx\nVmRSS:\t   30 kB\nRssAnon:\t   20 kB\nRssFile:\t   10 kB\n")
	if want := (Memory{30 << 10, 20 << 10, 10 << 10}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "VmRSS: 1 kB\n", "VmRSS: x kB\nRssAnon: 1 kB\nRssFile: 1 kB\n"} {
		if got, err := memoryIn(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}
