package peers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is what a program and its children have had of the processors. The zero value is nothing.
type Usage struct {
	CPU    time.Duration // used, in user mode and in the kernel
	Waited time.Duration // ready to run, while something else had the core; 0 where the kernel does not say
}

// Sub returns what was used since before.
func (u Usage) Sub(before Usage) Usage { return Usage{u.CPU - before.CPU, u.Waited - before.Waited} }

// Add returns what both have used.
func (u Usage) Add(v Usage) Usage { return Usage{u.CPU + v.CPU, u.Waited + v.Waited} }

// Usage returns what the program and its children have had, by all threads that still run. Where the kernel counts
// a thread's time by the nanosecond that is used, else its ticks of 10 ms.
//
// What the kernel does for a connection between two system calls (softirq) it charges to whoever runs at that
// moment. Over loopback that is mostly the sender, so a part of receiving is in the time of who sent.
func (p *Process) Usage() (Usage, error) { return usageOf("/proc", p.Pid()) }

// CPU is the processor time in Usage.
func (p *Process) CPU() (time.Duration, error) {
	u, err := p.Usage()
	return u.CPU, err
}

// usageOf is Usage of a process by its number, as the files below proc have it.
func usageOf(proc string, pid int) (total Usage, err error) {
	family, err := familyOf(proc, pid)
	if err != nil {
		return total, err
	}
	for _, id := range family {
		u, err := ownUsage(filepath.Join(proc, strconv.Itoa(id)))
		if err != nil {
			return total, err
		}
		total = total.Add(u)
	}
	return total, nil
}

// familyOf returns a process and its children, and theirs.
func familyOf(proc string, pid int) ([]int, error) {
	entries, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat"))
	if err != nil {
		return nil, err
	}
	children, found := map[int][]int{}, false
	for _, path := range entries {
		fields, err := statOf(path)
		if err != nil {
			continue // it has ended
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], id)
		found = found || id == pid
	}
	if !found {
		return nil, fmt.Errorf("process %d has ended", pid)
	}
	family := []int{pid}
	for i := 0; i < len(family); i++ {
		family = append(family, children[family[i]]...)
	}
	return family, nil
}

// statOf returns the fields of a stat file from the state on, which follows the name.
func statOf(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // names may have anything in them
	if len(fields) < 13 {
		return nil, fmt.Errorf("%s has %d fields after the name", path, len(fields))
	}
	return fields, nil
}

const tick = 10 * time.Millisecond // what Linux tells programs, however often its clock interrupts

// ownUsage returns what one process has had, whose directory is dir.
func ownUsage(dir string) (Usage, error) {
	u, err := exactUsage(dir)
	if err == nil {
		return u, nil
	}
	fields, err := statOf(filepath.Join(dir, "stat"))
	if err != nil {
		return u, err
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return Usage{CPU: time.Duration(user+system) * tick}, errors.Join(err1, err2)
}

// exactUsage adds up what the scheduler has counted of each thread, in nanoseconds.
func exactUsage(dir string) (total Usage, err error) {
	tasks, err := filepath.Glob(filepath.Join(dir, "task", "*", "schedstat"))
	if err != nil || len(tasks) == 0 {
		return total, errors.Join(err, errors.New("the scheduler does not tell"))
	}
	for _, path := range tasks {
		b, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // this thread has ended
		}
		if err != nil {
			return total, err
		}
		var used, waited int64
		if _, err := fmt.Sscan(string(b), &used, &waited); err != nil {
			return total, fmt.Errorf("%s: %w", path, err)
		}
		total = total.Add(Usage{time.Duration(used), time.Duration(waited)})
	}
	return total, nil
}
