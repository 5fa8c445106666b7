package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
)

// startStore starts a node's store as New does, and ends it.
func startStore(t *testing.T, dir string, writes ...durable.Write) (all []durable.Write, err error) {
	t.Helper()
	d, err := OpenDataDir(dir, crdt.NodeID{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, all, _, err := d.openStore(durable.Files{})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.Commit(writes), s.Close()); err != nil {
		t.Fatal(err)
	}
	return all, nil
}

// keep copies files of a directory away and returns what puts them back.
func keep(t *testing.T, dir string, names ...string) (putBack func()) {
	t.Helper()
	kept := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		kept[name] = b
	}
	return func() {
		for _, name := range names {
			b, ok := kept[name]
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if ok {
				if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestStoreOutlivesAStart(t *testing.T) {
	dir := t.TempDir()
	w := durable.Write{Object: factsObject, Key: "0", Value: []byte("x")}
	if all, err := startStore(t, dir, w); err != nil || len(all) != 0 {
		t.Fatalf("a new node has the writes %v (%v)", all, err)
	}
	for range 3 {
		if all, err := startStore(t, dir); err != nil || len(all) != 1 || string(all[0].Value) != "x" {
			t.Fatalf("the next start has %v (%v)", all, err)
		}
	}
}

// TestStoreThatWasPutBackIsRefused puts back parts of the directory as they were.
func TestStoreThatWasPutBackIsRefused(t *testing.T) {
	for name, files := range map[string][]string{"store": {storeFile}, "identity": {identityFile}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := startStore(t, dir); err != nil {
				t.Fatal(err)
			}
			putBack := keep(t, dir, files...)
			for range 2 {
				if _, err := startStore(t, dir); err != nil {
					t.Fatal(err)
				}
			}
			putBack()
			if _, err := startStore(t, dir); !errors.Is(err, errOldStore) {
				t.Errorf("the %s of an earlier start was taken (%v)", name, err)
			}
		})
	}
	t.Run("lost store", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := startStore(t, dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, storeFile)); err != nil {
			t.Fatal(err)
		}
		if _, err := startStore(t, dir); !errors.Is(err, errOldStore) {
			t.Errorf("a node went on without its store (%v)", err)
		}
	})
	t.Run("another node's store", func(t *testing.T) {
		dir, other := t.TempDir(), t.TempDir()
		for _, d := range []string{dir, other} {
			if _, err := startStore(t, d); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile(filepath.Join(other, storeFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, storeFile), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := startStore(t, dir); !errors.Is(err, errOldStore) {
			t.Errorf("the store of another node was taken (%v)", err)
		}
	})
}

// TestStoreBetweenTwoFiles crashes between the store's mark and the identity.
func TestStoreBetweenTwoFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := startStore(t, dir); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDataDir(dir, crdt.NodeID{})
	if err != nil {
		t.Fatal(err)
	}
	putBack := keep(t, dir, identityFile) // the boot number is raised, the store not yet opened
	s, _, _, err := d.openStore(durable.Files{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	putBack()
	if _, err := startStore(t, dir); err != nil {
		t.Errorf("after a crash before the identity was written: %v", err)
	}
}
