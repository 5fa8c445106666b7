//go:build unix

package rig

import (
	"errors"
	"os"
	"syscall"
)

// lock waits until nobody else has locked the file, which is made, and locks it.
func lock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil // which unlocks it
}
