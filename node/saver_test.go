package node

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
)

// TestIdleRoomsWriteNextToNothing: what a node writes follows from what changes, and not from how many rooms there are.
func TestIdleRoomsWriteNextToNothing(t *testing.T) {
	const rooms, span = 500, 30 * time.Second
	w := newStoppedWorld(t)
	for i := range rooms - 1 {
		s := escrowSettings(100)
		s.ID, s.Host, s.Name = crdt.RoomID{9, byte(i), byte(i >> 8)}, fmt.Sprint("shop", i), fmt.Sprint("room", i)
		w.more = append(w.more, s)
	}
	w.begin(escrowSettings(100), "east", "west")
	w.run(10 * time.Second) // until capacity is where it stays
	written := make([]int, len(w.nodes))
	files, records := make([]counts, len(w.nodes)), make([][][]byte, len(w.nodes))
	second := func() {
		for i, m := range w.nodes {
			record, _, err := files[i].record(m.core.replica, nil, w.now)
			if err != nil {
				t.Fatal(err)
			}
			files[i].written(nil)
			if len(record) > 0 {
				written[i] += countsHead + len(record)
				records[i] = append(records[i], record)
			}
		}
		w.run(time.Second)
	}
	for i := range files {
		files[i] = newCounts()
	}
	second()
	for i, m := range w.nodes {
		written[i], m.disk.written = 0, 0
	}
	for range int(span / time.Second) {
		second()
	}
	for i, m := range w.nodes {
		if n := float64(written[i]+m.disk.written) / span.Seconds(); n > 200 {
			t.Errorf("node %s writes %.0f bytes a second with %d rooms in which nothing happens", m.id, n, rooms)
		}
	}
	// And one visitor costs what concerns one room.
	written[0] = 0
	w.ask(w.crowd(1, w.spread)[0])
	for range 5 {
		second()
	}
	if written[0] == 0 || written[0] > 10_000 {
		t.Errorf("%d bytes were written of one visitor", written[0])
	}
	w.kill(w.nodes[0])
	w.nodes[0].snapshot = nil
	w.start(w.nodes[0], escrowSettings(100))
	if err := w.nodes[0].core.Restore(records[0], w.now); err != nil {
		t.Fatal(err)
	}
	if n := w.nodes[0].core.replica.PreviousActive(roomID); n != 1 {
		t.Errorf("after a restart %d sessions are known, and there is one", n)
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
	s.next <- countsRecord{}
	<-s.done
	close(s.next)
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
