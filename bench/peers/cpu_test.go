package peers

import (
	"fmt"
	"os"
	"path/filepath"
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

func TestUsageIsOfAllThreadsAndChildren(t *testing.T) {
	dir := t.TempDir()
	proc(t, dir, 10, 1, "master", "1000 200 3\n")
	proc(t, dir, 20, 10, "a worker) 1", "5000 30 1\n", "600 4 1\n") // names may have anything in them
	proc(t, dir, 30, 20, "its child", "70 1 1\n")
	proc(t, dir, 40, 1, "another", "1000000 1 1\n")
	got, err := usageOf(dir, 10)
	if want := (Usage{6670, 235}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestUsageByTicksWhereTheSchedulerDoesNotTell(t *testing.T) {
	dir := t.TempDir()
	proc(t, dir, 10, 1, "server")
	got, err := usageOf(dir, 10)
	if want := (Usage{CPU: 120 * time.Millisecond}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestUsageOfWhatHasEnded(t *testing.T) {
	dir := t.TempDir()
	proc(t, dir, 10, 1, "another")
	if got, err := usageOf(dir, 11); err == nil {
		t.Errorf("got %v of a process that is not there", got)
	}
}

func TestUsageSums(t *testing.T) {
	a, b := Usage{3, 2}, Usage{10, 20}
	if got := a.Add(b).Sub(a); got != b {
		t.Errorf("got %v, want %v", got, b)
	}
}
