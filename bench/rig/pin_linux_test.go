package rig

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPinnedProcessesStayOnTheirCore with all threads that there are, and what they start.
func TestPinnedProcessesStayOnTheirCore(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if missing := Missing("taskset"); all.Count() < 2 || !all.IsSet(1) || len(missing) > 0 {
		t.Skip("this wants taskset and a second core")
	}
	procs := runtime.GOMAXPROCS(0)
	allowed := func() string {
		out, err := exec.CommandContext(t.Context(), "grep", "Cpus_allowed_list", "/proc/self/status").Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(strings.TrimPrefix(string(out), "Cpus_allowed_list:"))
	}
	before := allowed()
	restore, err := Pin(1)
	if err != nil {
		t.Fatal(err)
	}
	if got := allowed(); got != "1" || runtime.GOMAXPROCS(0) != 1 {
		t.Errorf("a program runs on %s, and this one as on %d processors; want 1 and 1", got, runtime.GOMAXPROCS(0))
	}
	restore()
	if got := allowed(); got != before || runtime.GOMAXPROCS(0) != procs {
		t.Errorf("afterwards a program runs on %s, and this one as on %d processors; want %s and %d", got, runtime.GOMAXPROCS(0), before, procs)
	}
}
