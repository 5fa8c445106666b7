package rig

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// UseUpDescriptors leaves the process no descriptor but those that it has in use, until giveBack is called.
func (p *Process) UseUpDescriptors() (giveBack func() error, err error) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Pid()))
	if err != nil {
		return nil, fmt.Errorf("descriptors of %s: %w", p.name, err)
	}
	var had unix.Rlimit
	if err := unix.Prlimit(p.Pid(), unix.RLIMIT_NOFILE, nil, &had); err != nil {
		return nil, fmt.Errorf("limit of descriptors of %s: %w", p.name, err)
	}
	set := func(limit uint64) error {
		if err := unix.Prlimit(p.Pid(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: had.Max}, nil); err != nil {
			return fmt.Errorf("set the limit of descriptors of %s to %d: %w", p.name, limit, err)
		}
		return nil
	}
	return func() error { return set(had.Cur) }, set(uint64(len(open)))
}
