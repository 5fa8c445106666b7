package rig

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pin keeps this process on cores, with all that it starts and does not put elsewhere, until restore is
// called. Without cores it does nothing.
func Pin(cores ...int) (restore func(), err error) {
	if len(cores) == 0 {
		return func() {}, nil
	}
	var before, on unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, err
	}
	for _, c := range cores {
		on.Set(c)
	}
	if err := pinAll(&on); err != nil {
		return nil, fmt.Errorf("stay on the cores %v: %w", cores, err)
	}
	procs := runtime.GOMAXPROCS(len(cores))
	return func() {
		_ = pinAll(&before) // where it was before
		runtime.GOMAXPROCS(procs)
	}, nil
}

// pinAll puts all threads of this process on cores. Those that come about meanwhile inherit it from one that is on
// them already, or are seen in the next round.
func pinAll(on *unix.CPUSet) error {
	done := map[int]bool{}
	for {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		news := false
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || done[id] {
				continue
			}
			if err := unix.SchedSetaffinity(id, on); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			done[id], news = true, true
		}
		if !news {
			return nil
		}
	}
}
