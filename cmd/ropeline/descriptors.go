package main

import "golang.org/x/sys/unix"

// descriptors returns how many this process may have; 0: it cannot be read. Go has raised the soft limit to the hard one.
func descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30)) // some systems say more for no limit
}
