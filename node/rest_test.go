package node

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

// TestALoopRestsWhileNobodyComes counts how often the loop of a node comes round that nobody asks. Somebody who
// comes at any moment is counted as soon as at a node that does not rest.
func TestALoopRestsWhileNobodyComes(t *testing.T) {
	for after := time.Duration(0); after < restInterval; after += tickInterval / 2 {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			n, stop := startNode(t, dir, 0, nil)
			time.Sleep(15 * time.Second)
			rounds, last := 0, int64(0)
			const idle = 4 * time.Second
			for end := time.Now().Add(idle); time.Now().Before(end); time.Sleep(tickInterval / 10) {
				if is := n.moved.Load(); is != last {
					rounds, last = rounds+1, is
				}
			}
			if most := int(idle / (restInterval / 2) * 3 / 2); rounds > most { // its room is never still
				t.Errorf("the loop came round %d times in %v, want %d at most", rounds, idle, most)
			}
			time.Sleep(after)
			if v := n.Route("shop", "/").Decide(Pass{}, false, time.Now()); !v.Admit {
				t.Fatal("not admitted to an empty room")
			}
			time.Sleep(tickInterval + tickInterval/10)
			if is := n.Status().Rooms[0].Active; is != 1 {
				t.Errorf("%v into a rest: %d visitors are counted a tick later, want 1", after, is)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNobodyRestsOverAFact: what others have told is heeded with the next tick.
func TestNobodyRestsOverAFact(t *testing.T) {
	w := newWorld(t, escrowSettings(10), "a", "a")
	w.run(15 * time.Second)
	c := w.nodes[0].core
	if !c.Rests() {
		t.Fatal("a node that nobody asks does not rest")
	}
	w.nodes[1].core.setFact(roomKey(factSession, roomID), encodeSession(time.Hour), w.now)
	for end := w.now.Add(5 * time.Second); c.facts.at == c.replica.MapChanges(); w.run(time.Millisecond) {
		if w.now.After(end) {
			t.Fatal("the fact has not come")
		}
	}
	if c.Rests() {
		t.Error("a node that has just heard of a fact rests")
	}
}

// TestAMeshThatRestsIsAtRest: nodes of two sites that nobody asks, and tick as seldom as they may, count nothing but
// signs of life.
func TestAMeshThatRestsIsAtRest(t *testing.T) {
	var rooms []room.Settings
	for i := range turnsAtLeast + 20 {
		s := escrowSettings(12)
		s.Host, s.Name, s.ID = fmt.Sprint("shop", i), fmt.Sprint("room", i), crdt.RoomID{7, byte(i)}
		rooms = append(rooms, s)
	}
	w := newStoppedWorld(t)
	w.rests, w.more = true, rooms[1:]
	w.begin(rooms[0], "a", "a", "b")
	w.run(90 * time.Second)
	var before []replica.Kept
	for _, m := range w.nodes {
		if !m.core.Rests() {
			t.Errorf("node %v does not rest", m.id)
		}
		before = append(before, m.core.replica.Kept())
	}
	w.run(30 * time.Second)
	for i, m := range w.nodes {
		if m.core.replica.NewsSince(before[i]).Counts() {
			t.Errorf("node %v has counted something", m.id)
		}
	}
}
