package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Create is [Disk.Create] with a real file: it writes a new file beside path, waits
// for the disk, renames it and waits for the directory. While both exist they need
// twice the room. Who calls it makes sure that no other process works at path.
func Create(path string, all []Write) (*File, error) {
	if err := checkAll(all); err != nil {
		return nil, err
	}
	temp := path + ".new"
	err := fill(temp, all)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		// A half-written file takes the room that the next attempt needs.
		if rm := os.Remove(temp); rm != nil && !errors.Is(rm, os.ErrNotExist) {
			err = errors.Join(err, rm)
		}
		return nil, fmt.Errorf("new store %s: %w", path, err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("new store %s: %w", path, err)
	}
	return open(path, (*File).verify)
}

// fill writes a new file with this content.
func fill(path string, all []Write) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // what an earlier attempt has left
	}
	f, err := open(path, (*File).begin)
	if err != nil {
		return err
	}
	return errors.Join(f.Commit(all), f.Close())
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
