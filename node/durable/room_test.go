package durable

import (
	"errors"
	"math"
	"path/filepath"
	"testing"
)

// spaceDisk is a disk of which nothing is known but its room.
type spaceDisk struct {
	Disk
	free, size int64
	err        error
}

func (d spaceDisk) Free(string) (free, size int64, err error) { return d.free, d.size, d.err }

func TestRoom(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		disk    spaceDisk
		wasFull bool
		want    error
	}{
		{spaceDisk{free: 16 << 20, size: 1 << 40}, false, nil},
		{spaceDisk{free: 16<<20 - 1, size: 1 << 40}, false, ErrFull},
		{spaceDisk{free: 16 << 20, size: 1 << 40}, true, ErrFull},
		{spaceDisk{free: 32 << 20, size: 1 << 40}, true, nil},
		{spaceDisk{free: 1 << 20, size: 100 << 20}, false, nil}, // a hundredth of it
		{spaceDisk{free: 1<<20 - 1, size: 100 << 20}, false, ErrFull},
		{spaceDisk{free: 0, size: 100 << 20}, true, ErrFull},
		{spaceDisk{free: math.MaxInt64, size: math.MaxInt64}, true, nil},
		{spaceDisk{err: broken}, false, broken},
	} {
		if err := Room(c.disk, "store", c.wasFull); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%d of %d free, full before %v: %v, want %v", c.disk.free, c.disk.size, c.wasFull, err, c.want)
		}
	}
}

func TestFreeOfARealDisk(t *testing.T) {
	dir := t.TempDir()
	if free, size, err := (Files{}).Free(filepath.Join(dir, "store")); err != nil || free < 0 || size <= 0 || free > size {
		t.Errorf("%d of %d free, %v", free, size, err)
	}
	if _, _, err := (Files{}).Free(filepath.Join(dir, "gone", "store")); err == nil {
		t.Log("nobody can tell here")
	}
}
