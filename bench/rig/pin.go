package rig

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// Pin keeps this process on cores, with all that it starts and does not put elsewhere, until restore is
// called. Without cores it does nothing; it needs taskset.
func Pin(cores ...int) (restore func(), err error) {
	if len(cores) == 0 {
		return func() {}, nil
	}
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(cores), " ", ","), "[]")
	before, err := pinAll(list)
	if err != nil {
		return nil, err
	}
	procs := runtime.GOMAXPROCS(len(cores))
	return func() {
		_, _ = pinAll(before) // where it was before
		runtime.GOMAXPROCS(procs)
	}, nil
}

// pinAll puts all threads of this process on the cores of a list, and returns where they were. Later ones are where
// the thread is that starts them.
func pinAll(list string) (before string, err error) {
	cmd := exec.Command("taskset", "--all-tasks", "--cpu-list", "--pid", list, strconv.Itoa(os.Getpid()))
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("stay on the cores %s: %w: %s", list, err, out)
	}
	_, rest, _ := strings.Cut(string(out), "current affinity list: ")
	before, _, _ = strings.Cut(rest, "\n")
	return before, nil
}
