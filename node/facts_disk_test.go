package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// lowered has an operator lower the limit of a room from 90 to 60 at a node whose disk takes
// its time. It returns the settings of before.
func lowered(t *testing.T, delay time.Duration) (*world, *machine, room.Settings) {
	t.Helper()
	s := escrowSettings(90)
	w := newWorld(t, s, "a", "a", "b")
	w.run(10 * time.Second)
	m := w.nodes[1]
	m.disk.delay = delay
	next := s
	next.TotalActiveUsers = 60
	if err := m.core.Configure(next, w.now); err != nil {
		t.Fatal(err)
	}
	return w, m, s
}

// TestFactsThatAreLostWithTheirWriterAreNobodys has an operator change limits at a node
// that crashes before its disk has them, comes back out of reach of all others, and then
// writes other facts: all agree on the limits of before.
func TestFactsThatAreLostWithTheirWriterAreNobodys(t *testing.T) {
	w, m, s := lowered(t, 5*time.Second)
	w.run(2 * time.Second)
	if m.core.Noted(m.core.Told()) {
		t.Fatal("the disk has it already, so that nothing is tried")
	}
	w.kill(m)
	w.run(time.Second)
	m.disk.delay, m.snapshot = 0, nil // the counts that a node saves now and then may be older, too
	w.cutOff = func(a, b *machine) bool { return a == m || b == m }
	w.start(m, s)
	w.run(time.Second)
	if err := m.core.replica.Set("another", []byte("fact"), w.now); err != nil {
		t.Fatal(err)
	}
	w.run(time.Second)
	w.cutOff = nil
	w.members()
	w.run(20 * time.Second)
	for _, m := range w.nodes {
		if is := m.core.facts.room(roomID).limits; is.Places != 90 {
			t.Errorf("node %s has limits of %+v", m.id, is)
		}
	}
}

// TestFactsAreToldOnceTheyAreOnDisk waits for a slow disk.
func TestFactsAreToldOnceTheyAreOnDisk(t *testing.T) {
	w, m, _ := lowered(t, 3*time.Second)
	told := m.core.Told()
	for end := w.now.Add(20 * time.Second); w.now.Before(end); {
		w.run(50 * time.Millisecond)
		noted := m.core.Noted(told)
		for _, o := range w.nodes {
			if o != m && !noted && o.core.facts.room(roomID).limits.Places == 60 {
				t.Fatalf("node %s has heard of what is not on disk", o.id)
			}
		}
	}
	for _, o := range w.nodes {
		if o.core.facts.room(roomID).limits.Places != 60 {
			t.Errorf("node %s has not heard", o.id)
		}
	}
}
