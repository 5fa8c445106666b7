package node

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// A leave that takes too long ends the process, and the log says to start it again. That start
// goes on with all rooms, those that rest and the mesh's own among them.

// restartHalfWay has a node leave, and its process end once it has begun and start again.
func (w *world) restartHalfWay(leaver *machine, settings room.Settings) {
	w.t.Helper()
	if err := leaver.core.Leave(w.now); err != nil {
		w.t.Fatal(err)
	}
	w.until("it has begun", 10*time.Second, func() bool { return leaver.disk.keys[[2]string{rightsOf(roomID), "leaving"}] != nil })
	w.kill(leaver)
	w.run(5 * time.Second)
	w.start(leaver, settings)
}

func TestTheMinterRestartsWhileItLeaves(t *testing.T) {
	w := newMeshWorld(t, true, "a", "a", "b")
	w.run(10 * time.Second)
	leaver := w.nodes[0]
	w.restartHalfWay(leaver, escrowSettings(60))
	w.until("it has left", 2*time.Minute, func() bool { return leaver.core.Left() })
	if !leaver.core.health.resumed.Load() {
		t.Error("it does not say that it goes on leaving")
	}
	w.kill(leaver)
	w.later(room.Escrow)
	w.run(5 * time.Minute)
	w.allHeld(60, 40)
}

// allHeld fails if any of so many rights of the room, and of the later one, is nobody's.
func (w *world) allHeld(first, later int64) {
	w.t.Helper()
	for id, want := range map[crdt.RoomID]int64{roomID: first, laterID: later} {
		if held, minters := w.heldOf(id); held != want {
			w.t.Errorf("%d places of %s are held, minted by %v; want %d", held, id, minters, want)
		}
	}
}

// TestALeaverThatRestartedIsNotWaitedFor in the mesh's room, when its minter is lost later.
func TestALeaverThatRestartedIsNotWaitedFor(t *testing.T) {
	w := newMeshWorld(t, true, "a", "a", "b")
	w.run(10 * time.Second)
	minter, leaver := w.nodes[0], w.nodes[1]
	w.restartHalfWay(leaver, escrowSettings(60))
	w.until("it has left", 2*time.Minute, func() bool { return leaver.core.Left() })
	w.kill(leaver)
	w.run(5 * time.Second)
	w.lostFor(minter)
	w.run(time.Second)
	if err := w.nodes[2].core.DeclareDead(minter.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Minute)
	w.later(room.Escrow)
	w.run(5 * time.Minute)
	w.allHeld(60, 40)
}

// TestARoomThatRestsIsLeftAfterARestart: the file of the leaver has it no more.
func TestARoomThatRestsIsLeftAfterARestart(t *testing.T) {
	other := escrowSettings(60)
	other.ID, other.Path = crdt.RoomID{8}, "/other"
	w := newWorldOf(t, []room.Settings{escrowSettings(90), other}, "a", "a", "a")
	w.run(10 * time.Second)
	leaver := w.nodes[1]
	startWithout := func(begin func()) {
		w.more = nil
		begin()
		w.more = []room.Settings{other}
	}
	w.kill(leaver)
	startWithout(func() { w.start(leaver, escrowSettings(90)) })
	w.run(20 * time.Second)
	startWithout(func() { w.restartHalfWay(leaver, escrowSettings(90)) })
	w.until("it has left", 2*time.Minute, func() bool { return leaver.core.Left() })
	w.kill(leaver)
	w.run(3 * time.Minute)
	if got := w.heldAll(roomID); got.Places != 90 {
		t.Errorf("of the room %v are held, want 90", got)
	}
	if got := w.heldAll(other.ID); got.Places != 60 {
		t.Errorf("of the other room %v are held, want 60", got)
	}
}

// TestWhoHasRoomsThatRestAloneGoesOnLeaving.
func TestWhoHasRoomsThatRestAloneGoesOnLeaving(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "a")
	w.run(10 * time.Second)
	leaver := w.nodes[1]
	w.kill(leaver)
	leaver.bare = true
	w.start(leaver, escrowSettings(90))
	w.run(20 * time.Second)
	w.lose = func(l letter) bool { return l.m.Kind == kindHandover }
	w.restartHalfWay(leaver, escrowSettings(90))
	w.lose = nil
	w.run(3 * time.Minute)
	if got := w.heldAll(roomID); got.Places != 90 || !leaver.core.Left() {
		t.Errorf("%v are held, want 90; it has left: %t", got, leaver.core.Left())
	}
}

// TestWhoGoesOnLeavingTakesNoVisitors: it has no rooms but those that it passes on, and would let
// everybody pass to all others.
func TestWhoGoesOnLeavingTakesNoVisitors(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n, stop := startNode(t, dir, 0, nil)
		n.core.health.resumed.Store(true)
		time.Sleep(time.Minute)
		if err := n.Ready(); !errors.Is(err, ErrGoesOnLeaving) || !n.GoesOnLeaving() {
			t.Errorf("ready: %v", err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}
