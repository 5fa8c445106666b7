package rig

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

// Usage returns what the program and its children have had, threads that have ended included. It is read of the
// clock that the kernel keeps of each process, in nanoseconds: the one way in which processor time is read here.
//
// What the kernel does for a connection between two system calls (softirq) it charges to whoever runs at that
// moment. Over loopback that is mostly the sender, so a part of receiving is in the time of who sent.
func (p *Process) Usage() (Usage, error) { return usageOf("/proc", p.Pid(), processClock) }

// CPU is the processor time in Usage.
func (p *Process) CPU() (time.Duration, error) {
	u, err := p.Usage()
	return u.CPU, err
}

// usageOf is Usage of a process by its number, as the files below proc and the clock have it.
func usageOf(proc string, pid int, clock func(pid int) (time.Duration, error)) (total Usage, err error) {
	err = Try(func() {
		for _, id := range Got(familyOf(proc, pid)) {
			total = total.Add(Usage{Got(clock(id)), Got(waitedOf(filepath.Join(proc, strconv.Itoa(id))))})
		}
	})
	return total, err
}

// familyOf returns a process and its children, and theirs.
func familyOf(proc string, pid int) ([]int, error) {
	entries, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat")) // which fails of a bad pattern only
	children, found := map[int][]int{}, false
	for _, path := range entries {
		b, err := os.ReadFile(path)
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // names may have anything in them
		if err != nil || len(fields) < 2 {
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

// waitedOf adds up how long the threads of a process that still run were ready and had no core, in nanoseconds, as the
// scheduler has it; 0 where it does not tell.
func waitedOf(dir string) (total time.Duration, err error) {
	tasks, _ := filepath.Glob(filepath.Join(dir, "task", "*", "schedstat"))
	for _, path := range tasks {
		b, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // this thread has ended
		}
		var used, waited int64
		if _, err := fmt.Sscan(string(b), &used, &waited); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		total += time.Duration(waited)
	}
	return total, nil
}

// Memory is what the kernel counts as resident, in bytes.
type Memory struct {
	Total int64
	Anon  int64 // of it, what is the process's alone: heap, stacks, tables of the runtime
	File  int64 // of it, pages of files: of the program, and of its store
}

// Memory returns what the program has resident, its children not included.
func (p *Process) Memory() (m Memory, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return m, err
	}
	return memoryIn(string(text))
}

func memoryIn(status string) (m Memory, err error) {
	for key, to := range map[string]*int64{"VmRSS:": &m.Total, "RssAnon:": &m.Anon, "RssFile:": &m.File} {
		_, rest, ok := strings.Cut(status, key)
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 || fields[1] != "kB" {
			return m, fmt.Errorf("/proc/…/status does not tell %s", key)
		}
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return m, err
		}
		*to = kib << 10
	}
	return m, nil
}
