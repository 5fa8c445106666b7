package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// askWhenTold has people ask when they were told to for a while, and returns how many are in.
func (w *world) askWhenTold(people []*person, d time.Duration) int {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); w.run(100 * time.Millisecond) {
		var due []*person
		for _, p := range outside(people) {
			if !w.now.Before(p.pass.LastPoll.Add(p.pass.Refresh)) {
				due = append(due, p)
			}
		}
		w.askAll(due)
	}
	return w.active(people)
}

// TestASlowDiskKeepsNobodyOut has a crowd come to a room that was empty, and disks that take
// longer for a write than anybody is left without an answer.
func TestASlowDiskKeepsNobodyOut(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a")
	w.run(20 * time.Second)
	w.nodes[0].disk.delay = 900 * time.Millisecond
	people := w.crowd(300, at(w.nodes[0]))
	w.askAll(people)
	if in := w.askWhenTold(people, 2*w.nodes[0].core.order[0].Settings().RefreshInterval); in != 90 {
		t.Errorf("%d are in after two intervals, want 90", in)
	}
}

// TestADiskIsReadyWhenAnEventBegins has a crowd wait for an event: they are let in the moment
// that it begins, by a disk that takes its time, and until shortly before nothing more counts
// as in use after a crash than without them.
func TestADiskIsReadyWhenAnEventBegins(t *testing.T) {
	s := escrowSettings(90)
	start := time.Unix(1_700_000_000, 0).Add(10 * time.Minute)
	s.Events = []room.Event{{Name: "sale", Start: start, End: start.Add(time.Hour), PrequeueStart: start.Add(-5 * time.Minute)}}
	w := newWorld(t, s, "a")
	m := w.nodes[0]
	m.disk.delay = 400 * time.Millisecond
	w.run(start.Add(-time.Minute).Sub(w.now))
	people := w.crowd(300, at(m))
	w.askAll(people)
	w.askWhenTold(people, start.Add(-3*time.Second).Sub(w.now))
	if b := m.core.order[0].rights.Bound(); b.Places > 4 {
		t.Errorf("%d places would be locked by a crash before the start", b.Places)
	}
	w.run(start.Sub(w.now))
	if b := m.core.order[0].rights.Bound(); b.Places != 90 {
		t.Errorf("at the start the disk is ready for %d, want 90", b.Places)
	}
}
