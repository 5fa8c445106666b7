package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// smallDisk mounts a file system of this size.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fillUp leaves no block free on a file system.
func fillUp(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFileOnAFullDisk goes on changing the same keys, which takes pages that the
// file has already, then needs more, fails, and goes on in a new file once there is
// room.
func TestFileOnAFullDisk(t *testing.T) {
	dir := smallDisk(t, 4<<20)
	path := filepath.Join(dir, "store")
	f := openFile(t, path)
	change := func(i int) error {
		return f.Commit([]Write{{"o", fmt.Sprint("k", i%20), fmt.Append(nil, i)}})
	}
	for i := range 100 {
		if err := change(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := Room(Files{}, path, true); err != nil {
		t.Errorf("with room left: %v", err)
	}
	free := fillUp(t, dir)
	if err := Room(Files{}, path, false); !errors.Is(err, ErrFull) {
		t.Errorf("with none left: %v, want ErrFull", err)
	}
	for i := range 500 {
		if err := change(100 + i); err != nil {
			t.Fatalf("change %d on a full disk: %v", i, err)
		}
	}
	var grown int
	var err error
	for ; err == nil; grown++ {
		err = f.Commit([]Write{{"o", fmt.Sprint("large", grown), make([]byte, 64<<10)}})
	}
	if !errors.Is(err, syscall.ENOSPC) || grown > 5 {
		t.Errorf("after %d large values: %v, want ENOSPC soon", grown, err)
	}
	if err := change(0); !errors.Is(err, ErrBroken) {
		t.Errorf("a commit after one that failed: %v, want ErrBroken", err)
	}
	var all []Write
	if err := f.Load(func(w Write) bool { all = append(all, w); return true }); err != nil || len(all) != 20+grown-1 {
		t.Fatalf("%d entries are shown (%v), %d are confirmed", len(all), err, 20+grown-1)
	}
	if _, err := Create(path, all); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a new file on a full disk: %v, want ENOSPC", err)
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that could not be written was left: %v", err)
	}
	free()
	fresh, err := Create(path, all)
	if err != nil {
		t.Fatalf("once there is room: %v", err)
	}
	if err := fresh.Commit([]Write{{"o", "k0", []byte("on")}}); err != nil {
		t.Error(err)
	}
	if err := fresh.Close(); err != nil {
		t.Error(err)
	}
}
