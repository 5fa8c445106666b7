package durable

import (
	"path/filepath"
	"syscall"
)

// Free is [Disk.Free], of what who is not root may use.
func (Files) Free(path string) (free, size int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &s); err != nil {
		return 0, 0, err
	}
	return int64(s.Bavail) * s.Frsize, int64(s.Blocks) * s.Frsize, nil
}
