package node

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ropeline/ropeline/crdt"
)

func TestDataDirKeepsTheNodeAndRaisesTheBoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := openDataDir(t, dir)
	if first.Self().Boot != 1 {
		t.Errorf("first boot = %d, want 1", first.Self().Boot)
	}
	first.Close()
	second := openDataDir(t, dir)
	defer second.Close()
	if got, want := second.Self().Node, first.Self().Node; got != want {
		t.Errorf("node after restart = %s, want %s", got, want)
	}
	if second.Self().Boot != 2 {
		t.Errorf("second boot = %d, want 2", second.Self().Boot)
	}
}

func TestDataDirLostMakesANewNode(t *testing.T) {
	a, b := openDataDir(t, t.TempDir()), openDataDir(t, t.TempDir())
	defer a.Close()
	defer b.Close()
	if a.Self().Node == b.Self().Node {
		t.Errorf("two fresh directories gave the same node %s", a.Self().Node)
	}
}

func TestDataDirTakesTheIDOfACertificate(t *testing.T) {
	dir, want := t.TempDir(), crdt.NodeID{1, 2, 3}
	d, err := OpenDataDir(dir, want)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if d.Self().Node != want {
		t.Errorf("node = %s, want %s", d.Self().Node, want)
	}
	if _, err := OpenDataDir(dir, crdt.NodeID{}); err == nil {
		t.Error("a directory was opened whose id does not follow from its key, without that certificate")
	}
	if _, err := OpenDataDir(dir, crdt.NodeID{9}); err == nil {
		t.Error("a directory was opened with the certificate of another node")
	}
}

func TestDataDirIsHeldByOneProcess(t *testing.T) {
	dir := t.TempDir()
	first := openDataDir(t, dir)
	defer first.Close()
	if _, err := OpenDataDir(dir, crdt.NodeID{}); !errors.Is(err, ErrInUse) {
		t.Errorf("second open = %v, want %v", err, ErrInUse)
	}
}

func TestDataDirDamagedIdentityIsRefused(t *testing.T) {
	for _, text := range []string{"", "{", `{"node":"12","boot":1}`, `{"node":"zz345678901234567890123456789012","boot":1}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, identityFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenDataDir(dir, crdt.NodeID{}); err == nil {
			t.Errorf("identity %q was accepted", text)
		}
	}
}

// TestDataDirCounts: what a crash has cut is left out, and nothing before it.
func TestDataDirCounts(t *testing.T) {
	dir := t.TempDir()
	d := openDataDir(t, dir)
	defer d.Close()
	if got, err := d.LoadCounts(); got != nil || err != nil {
		t.Errorf("counts of a fresh node = %q, %v, want none", got, err)
	}
	want := [][]byte{[]byte("what was counted"), []byte("what came"), []byte("and came")}
	path := filepath.Join(dir, countsFile)
	var ends []int64
	for i, record := range want {
		write := d.AppendCounts
		if i == 0 {
			write = d.SaveCounts
		}
		if err := write(record); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, info.Size())
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		there := 0
		for there < len(ends) && ends[there] <= int64(cut) {
			there++
		}
		got, err := d.LoadCounts()
		if there == 0 && err == nil || there > 0 && err != nil || !slices.EqualFunc(got, want[:there], bytes.Equal) {
			t.Errorf("counts cut to %d bytes were read as %q, %v", cut, got, err)
		}
	}
}

func openDataDir(t *testing.T, dir string) *DataDir {
	t.Helper()
	d, err := OpenDataDir(dir, crdt.NodeID{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
