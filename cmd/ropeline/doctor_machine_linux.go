package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// udpBuffer is what quic-go asks the kernel for, in bytes, in each direction.
const udpBuffer = 7_500_000

// checkBuffers looks at how much a UDP socket may hold.
func (d *doctor) checkBuffers() {
	if d.cfg.Mesh.Listen == "" {
		return
	}
	for _, name := range []string{"rmem_max", "wmem_max"} {
		check := "UDP buffers, net.core." + name
		text, err := os.ReadFile("/proc/sys/net/core/" + name)
		n, badNumber := strconv.Atoi(strings.TrimSpace(string(text)))
		switch {
		case err != nil || badNumber != nil:
			d.warn(check, "it cannot be read here", "look at it outside of the container: sysctl net.core."+name)
		case n < udpBuffer:
			d.warn(check, fmt.Sprintf("%d bytes; bursts between nodes may be lost, and are sent again", n),
				fmt.Sprintf("sysctl -w net.core.%s=%d, and the same line in /etc/sysctl.d/ropeline.conf", name, udpBuffer))
		default:
			d.ok(check, "%d bytes", n)
		}
	}
}

// checkFiles looks at how many files may be open.
func (d *doctor) checkFiles() {
	const check = "open files"
	limit := descriptors()
	if limit == 0 {
		d.warn(check, "the limit cannot be read", "see ulimit -n")
		return
	}
	to := d.cfg.server()
	wanted, err := to.Bounds()
	if err != nil {
		d.fail(check, errText(err), "")
		return
	}
	do := fmt.Sprintf("ulimit -Hn %d before the start, or LimitNOFILE=%[1]d in the unit of systemd", wanted.Descriptors())
	switch fits, err := wanted.Within(limit); {
	case err != nil:
		d.fail(check, fmt.Sprintf("at most %d, which are too few for a node", limit), do)
	case fits != wanted:
		d.warn(check, fmt.Sprintf("at most %d, with which a node takes %d connections of visitors, %d of other proxies and %d of operators at a time", limit, fits.Visitors, fits.Verdicts, fits.Admin), do)
	default:
		d.ok(check, "at most %d", limit)
	}
}

// checkClock asks the kernel whether the clock is kept right.
func (d *doctor) checkClock() {
	const check = "clock"
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	switch {
	case err != nil:
		d.warn(check, "the kernel does not say whether it is kept right: "+errText(err), "see that chrony, systemd-timesyncd or the like runs")
	case state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0:
		d.warn(check, "nobody keeps it right, as far as the kernel knows; a node whose clock is more than 400 ms off the others' gives no tickets",
			"run chrony, systemd-timesyncd or the like; in a container or a virtual machine, on the host")
	default:
		d.ok(check, "kept right, within %d µs", t.Maxerror)
	}
}

// inMemory reports whether a directory is lost with the machine's memory.
func inMemory(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && (fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.RAMFS_MAGIC)
}

// freeBytes returns how much of a file system may still be written; false if nobody knows.
func freeBytes(dir string) (free uint64, ok bool) {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return 0, false
	}
	return fs.Bavail * uint64(fs.Bsize), true
}
