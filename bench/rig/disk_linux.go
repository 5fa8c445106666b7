package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Disk is a small file system in memory for one data directory.
type Disk struct{ Path string }

// NewDisk mounts one of so many bytes at path, which is made. The error wraps
// ErrCannot if the user may not.
func NewDisk(path string, size int64) (*Disk, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	if err := syscall.Mount("ropeline-faults", path, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", size)); err != nil {
		return nil, fmt.Errorf("%w: mount a file system at %s: %w", ErrCannot, path, err)
	}
	return &Disk{path}, nil
}

func (d *Disk) ballast() string { return filepath.Join(d.Path, "ballast") }

// Fill leaves no byte free.
func (d *Disk) Fill() error {
	f, err := os.OpenFile(d.ballast(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	chunk := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(chunk)
		if errors.Is(err, syscall.ENOSPC) && len(chunk) > 1 {
			chunk, err = chunk[:len(chunk)/2], nil
		}
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Free takes back what Fill has taken.
func (d *Disk) Free() error { return os.Remove(d.ballast()) }

// Close unmounts, whoever still has files open.
func (d *Disk) Close() error { return syscall.Unmount(d.Path, syscall.MNT_DETACH) }
