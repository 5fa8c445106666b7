package replica

import (
	"errors"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// TestWhoIsAheadBelievesNobodyWhoIs: a node that has been told that its clock is ahead takes no write of a time to come, though its own clock
// shows a later one.
func TestWhoIsAheadBelievesNobodyWhoIs(t *testing.T) {
	const ahead = 12 * time.Hour
	m := newMesh(t, 40)
	nodes := m.sites(2, "east")
	x, y := nodes[0], nodes[1]
	clock := m.now.Add(ahead)
	hear := func(key string) error {
		if err := y.Set(key, []byte("value"), clock); err != nil {
			t.Fatal(err)
		}
		f := &frame{kind: push, lww: y.lww.Delta(x.lww.Digest(), 0)}
		_, err := x.Receive(y.peer, f.encode(), clock)
		return err
	}
	x.RewindMap(clock, m.now)
	if err := hear("while it is"); !errors.Is(err, crdt.ErrAhead) {
		t.Errorf("while it is known to be ahead: got %v, want %v", err, crdt.ErrAhead)
	}
	x.Rewind(clock)
	if err := hear("while it is right"); err != nil {
		t.Errorf("while it is known to be right: %v", err)
	}
}
