package durable

import (
	"errors"
	"fmt"
)

// ErrFull says that a disk has no room to go on safely, although the last commit may
// have succeeded: a store reuses its own pages, and fails only when it has to grow.
var ErrFull = errors.New("the disk is full")

// A disk counts as full when less of it is free than mostReserve, or, of a small one,
// a reservePart. That is more than the largest commit writes.
const (
	mostReserve = 16 << 20
	reservePart = 100
)

// Room returns ErrFull if hardly anything may still be written where path lies. A disk
// that was full has to have twice as much free to be well again, so that one on the
// edge does not go back and forth. Where nobody can tell how much is free there is room.
func Room(d Disk, path string, wasFull bool) error {
	free, size, err := d.Free(path)
	if err != nil {
		return fmt.Errorf("free space of %s: %w", path, err)
	}
	least := min(mostReserve, size/reservePart)
	if wasFull {
		least *= 2
	}
	if free < least {
		return fmt.Errorf("%w: less than %d KiB is left for %s", ErrFull, least>>10, path) // how much is left would be news all the time
	}
	return nil
}
