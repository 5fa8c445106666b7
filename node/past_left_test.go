package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/node/replica"
)

// newPastLeft is a mesh of three nodes in which each has let somebody in, and closed the minute in which it did.
func newPastLeft(t *testing.T) *world {
	w := newRememberingWorld(t, escrowSettings(90), "a", "a", "b")
	w.run(5 * time.Second)
	if in := w.press(w.crowd(30, w.spread), 20*time.Second); in != 30 {
		t.Fatalf("%d are in, want 30", in)
	}
	w.run(2 * time.Minute)
	return w
}

// goesForGood has a node leave, and returns once it may end.
func (w *world) goesForGood(m *machine) {
	w.t.Helper()
	if err := m.core.Leave(w.now); err != nil {
		w.t.Fatal(err)
	}
	w.until("it has left", 15*time.Second, m.core.Left)
}

// pastIs fails if the nodes that run do not tell of so many admissions together.
func (w *world) pastIs(when string, admitted uint64) {
	w.t.Helper()
	if p := w.past(30 * time.Minute); p.Counts.Admitted != admitted {
		w.t.Errorf("%s: %d admissions are known, want %d", when, p.Counts.Admitted, admitted)
	}
}

// TestANodeThatLeavesPassesItsPastOn, while it still answers itself as well as when it has ended, one after the other, and
// over restarts.
func TestANodeThatLeavesPassesItsPastOn(t *testing.T) {
	w := newPastLeft(t)
	w.pastIs("before", 30)
	for _, m := range w.nodes[:2] {
		w.goesForGood(m)
		w.pastIs("it has left, and not ended", 30)
		w.kill(m)
		w.pastIs("it has ended", 30)
		w.run(time.Second)
	}
	again, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	last := w.nodes[2].core
	for _, frame := range last.TakeHistory() {
		if err := again.Restore(frame); err != nil {
			t.Fatal(err)
		}
	}
	from, to := w.now.Add(-time.Hour), w.now.Add(time.Minute)
	s, err := again.Read(roomID, from, to)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for _, m := range s {
		n += m.Counts.Admitted
	}
	if n != 30 {
		t.Errorf("%d admissions are on its disk, want 30", n)
	}
}

// TestAPastArrivesWhateverIsLost: messages come late, twice or not at all, and a node that takes ends before it has all.
func TestAPastArrivesWhateverIsLost(t *testing.T) {
	w := newPastLeft(t)
	leaver := w.nodes[0]
	w.fate = func(_, _ *machine, m Message) []time.Duration {
		if m.Kind != kindPast && m.Kind != kindPastTaken {
			return []time.Duration{w.delay}
		}
		all := make([]time.Duration, w.rng.IntN(3))
		for i := range all {
			all[i] = time.Duration(w.rng.IntN(500)) * time.Millisecond
		}
		return all
	}
	var ended *machine
	w.lose = func(l letter) bool {
		if l.m.Kind == kindPastTaken && ended == nil {
			ended = w.machine(l.from)
		}
		return ended != nil && l.from == ended.id && l.m.Kind == kindPastTaken
	}
	w.goesForGood(leaver)
	if ended == nil || leaver.core.PastLost() {
		t.Fatalf("nobody has taken what was recorded, asked first was %v", ended)
	}
	to := w.machine(leaver.core.past.passing.to)
	if to == ended {
		t.Fatalf("%s has taken it, which never said so", to.id)
	}
	w.kill(ended)
	w.kill(leaver)
	if _, has := to.core.past.taken[leaver.id]; !has {
		t.Errorf("%s does not know that it has taken over", to.id)
	}
}

// TestAPastThatNobodyTakesHoldsNothingUp, and the node says so.
func TestAPastThatNobodyTakesHoldsNothingUp(t *testing.T) {
	w := newPastLeft(t)
	w.lose = func(l letter) bool { return l.m.Kind == kindPast }
	w.goesForGood(w.nodes[0])
	if c := w.nodes[0].core; !c.PastLost() || c.PastPassed() {
		t.Error("it does not know that what it recorded is nobody's")
	}
}

// TestNobodyButLeaversPassesAPastOn: from any other node it is not taken, nor what is longer than a node may have.
func TestNobodyButLeaversPassesAPastOn(t *testing.T) {
	w := newPastLeft(t)
	a, b := w.nodes[0], w.nodes[1]
	a.core.past.passing = passing{to: b.id, data: a.core.past.all()}
	w.post(a, a.core.sendPast(w.now))
	w.run(time.Second)
	if b.core.past.taking.from != (crdt.Incarnation{}) || len(b.core.past.taken) > 0 {
		t.Error("the past of a node that goes on is taken")
	}
	w.goesForGood(a)
	long := append([]byte{pastVersion, 0xff}, make([]byte, 15)...)
	delete(b.core.past.taken, a.id)
	if _, err := b.core.takePast(replica.Peer{ID: a.id, Boot: a.boot, Site: a.site}, long, w.now); err == nil {
		t.Error("more is taken than a node may have")
	}
}
