package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is what the kernel counts as resident, in bytes.
type Memory struct {
	Total int64
	Anon  int64 // of it, what is the process's alone: heap, stacks, tables of the runtime
	File  int64 // of it, pages of files: of the program, and of its store
	Peak  int64 // the most that Total was, since the start or [Process.ForgetPeak]
}

// Memory returns what the program has resident, its children not included.
func (p *Process) Memory() (m Memory, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return m, err
	}
	return memoryIn(string(text))
}

// ForgetPeak makes Peak begin again; see proc(5), clear_refs.
func (p *Process) ForgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.Pid()), []byte("5"), 0)
}

func memoryIn(status string) (m Memory, err error) {
	for key, to := range map[string]*int64{"VmRSS:": &m.Total, "RssAnon:": &m.Anon, "RssFile:": &m.File, "VmHWM:": &m.Peak} {
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
