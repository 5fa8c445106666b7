package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mapping is a part of this process's memory that shows a file.
type mapping struct {
	start, end uintptr
	perms      string // as in r-xp
	path       string
	anonymous  int64 // bytes that differ from the file: a debugger's breakpoints, in code
}

// dropProgram has the kernel forget which pages of the program this process has used. Most
// were used by its start alone. Those that are used again come back from the page cache, by
// a fault that reads nothing.
//
// Only what cannot have been written to is dropped, and nothing if somebody has: a probe or
// a breakpoint in the code would be lost.
func dropProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := mappings(f)
	if err != nil {
		return err
	}
	var drop []mapping
	for _, m := range all {
		if m.path != program || m.perms != "r-xp" && m.perms != "r--p" {
			continue
		}
		if m.anonymous > 0 {
			return nil
		}
		drop = append(drop, m)
	}
	for _, m := range drop {
		if _, _, e := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); e != 0 {
			return fmt.Errorf("madvise: %w", e)
		}
	}
	return nil
}

// mappings reads what the kernel says in smaps; see proc_pid_smaps(5).
func mappings(r io.Reader) (all []mapping, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		first, last, spans := strings.Cut(fields[0], "-")
		switch {
		case spans && len(fields) >= 5:
			m := mapping{perms: fields[1], path: strings.Join(fields[5:], " ")}
			if m.start, err = address(first); err == nil {
				m.end, err = address(last)
			}
			all = append(all, m)
		case fields[0] == "Anonymous:" && len(all) > 0:
			var kib int64
			kib, err = strconv.ParseInt(fields[1], 10, 64)
			all[len(all)-1].anonymous = kib << 10
		}
		if err != nil {
			return nil, fmt.Errorf("smaps: %w", err)
		}
	}
	return all, lines.Err()
}

func address(hex string) (uintptr, error) {
	n, err := strconv.ParseUint(hex, 16, 64)
	return uintptr(n), err
}
