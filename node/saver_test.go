package node

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
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
