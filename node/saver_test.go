package node

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ropeline/ropeline/node/bootstrap"
)

// TestSaverWritesTheNewestState: whatever is passed over, the last is written, and no state is
// written while another one is being made in its memory.
func TestSaverWritesTheNewestState(t *testing.T) {
	d := openDataDir(t, t.TempDir())
	defer d.Close()
	s := newSaver(d, slog.New(slog.DiscardHandler))
	var wg sync.WaitGroup
	wg.Go(s.run)
	used := 0
	for i := range 200 {
		b := s.buffer()
		if cap(b) > 0 {
			used++
		}
		state := append(b, bytes.Repeat([]byte{byte(i)}, 1000)...)
		s.save(state)
		if got, err := d.LoadCounts(); err != nil || bytes.Count(got, got[:min(1, len(got))]) < len(got) {
			t.Fatalf("%d bytes were written, of several states, %v", len(got), err)
		}
	}
	s.close()
	wg.Wait()
	got, err := d.LoadCounts()
	if want := bytes.Repeat([]byte{199}, 1000); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %v are left, %v", len(got), got[:min(1, len(got))], err)
	}
	if used == 0 {
		t.Error("no memory was used again")
	}
}

// TestAnIdentityThatIsRemovedIsWrittenAgain: else the next start is that of a new node, on the store of another one.
func TestAnIdentityThatIsRemovedIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	d := openDataDir(t, dir)
	defer d.Close()
	if err := d.SetMesh(bootstrap.Disk{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, identityFile)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := newSaver(d, slog.New(slog.DiscardHandler))
	var wg sync.WaitGroup
	wg.Go(s.run)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.save([]byte("the same"))
	s.close()
	wg.Wait()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if err := os.WriteFile(path, []byte("another's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if written, err := d.KeepIdentity(); written || err != nil {
		t.Errorf("what another process wrote is replaced: %v, %v", written, err)
	}
}
