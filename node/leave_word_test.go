package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// Gifts of a leaver that nodes have refused, and of which they have given their word: whoever recovers it by that has the
// gifts with the rest. So they are taken only once the keeper has told that it has taken over.

// keptOnce fails if more is held than the limit, lets everything arrive, and fails if more visitors come in than the limit, or
// if not all rights are held in the end.
func (w voidLedger) keptOnce() {
	w.t.Helper()
	if got := w.heldAll(roomID); got.Places > 90 {
		w.t.Errorf("%v are held, of 90", got)
	}
	w.allWell()
	w.run(2 * time.Minute) // what was recovered is not locked any more
	for _, m := range w.nodes {
		if m.core != nil && m.core.Left() {
			w.kill(m)
		}
	}
	people := w.crowd(130, func(i int) *machine { return []*machine{w.stays, w.third}[i%2] })
	if in := w.press(people, 40*time.Second); in > 90 {
		w.t.Errorf("%d are inside, of 90", in)
	}
}

// TestAGiftOfALeaverIsNotTakenAfterTheWordOnIt: stays has given its word on the leaver for the third. Then it hears the last
// ledger of the leaver from told, which leaves to the third, a moment before the third does. The third recovers the leaver by the word.
func TestAGiftOfALeaverIsNotTakenAfterTheWordOnIt(t *testing.T) {
	w := newVoidLedger(t)
	w.run(time.Second)
	if err := w.third.core.DeclareDead(w.leaver.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Second) // all but told have given their word, which is needed
	// For a moment facts arrive nowhere but at stays.
	w.lose = func(l letter) bool {
		return l.m.Kind == kindHandover || l.m.Kind == kindReplica && l.to == w.third.id
	}
	w.post(w.told, w.told.core.leaveTo(w.third.id, w.now)) // after it has agreed
	w.until("stays knows the last ledger", 5*time.Second, func() bool {
		_, is := w.stays.core.facts.room(roomID).finals[w.leaver.id]
		return is
	})
	w.lose = func(l letter) bool { return l.m.Kind == kindReplica && l.to == w.third.id }
	w.run(6 * time.Second)
	w.keptOnce()
}

// TestAGiftOfALeaverIsNotTakenWhenItsLedgerComesLate: the same where told is lost as well, and a message of it comes late.
func TestAGiftOfALeaverIsNotTakenWhenItsLedgerComesLate(t *testing.T) {
	w := newVoidLedger(t)
	var kept []letter
	before := w.lose
	w.lose = func(l letter) bool {
		if l.m.Kind == kindReplica && l.from == w.told.id && l.to == w.stays.id {
			kept = append(kept, l)
			return true
		}
		return before(l)
	}
	w.run(2 * time.Second)
	told := *w.told
	w.lostFor(w.told)
	w.run(time.Second)
	for _, m := range []*machine{w.leaver, w.told} {
		if err := w.third.core.DeclareDead(m.id, w.now); err != nil {
			t.Fatal(err)
		}
	}
	w.post(w.third, nil)
	w.until("all have given their word", 5*time.Second, func() bool { return len(w.third.core.facts.room(roomID).words) >= 4 })
	w.lose = func(l letter) bool { return l.m.Kind == kindReplica && l.to == w.third.id }
	for _, l := range kept {
		w.receive(&told, w.stays, l.m)
	}
	w.run(3 * time.Second)
	w.keptOnce()
}

// TestAKeeperGoesBeforeItHasToldThatItTookOver: nobody has taken the gift by then, and somebody does in the end.
func TestAKeeperGoesBeforeItHasToldThatItTookOver(t *testing.T) {
	for name, goes := range map[string]func(w voidLedger){
		"it restarts": func(w voidLedger) {
			w.kill(w.third)
			w.run(time.Second)
			w.start(w.third, escrowSettings(90))
		},
		"it leaves": func(w voidLedger) {
			w.post(w.third, w.third.core.leaveTo(w.told.id, w.now)) // after it has agreed
		},
		"it is lost": func(w voidLedger) {
			w.lostFor(w.third)
			w.run(time.Second)
			if err := w.told.core.DeclareDead(w.third.id, w.now); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newVoidLedger(t)
			w.run(time.Second)
			if err := w.third.core.DeclareDead(w.leaver.id, w.now); err != nil {
				t.Fatal(err)
			}
			w.run(5 * time.Second)
			key := [2]string{rightsOf(roomID), "taken/" + w.leaver.id.String()}
			before := w.stays.core.order[0].rights.DealtWith(w.leaver.id)
			w.lose = nil
			w.until("the third has taken over", 5*time.Second, func() bool { return w.third.disk.keys[key] != nil })
			if f := w.third.core.facts.room(roomID); f.tookOver(w.third.id, w.leaver.id) {
				t.Fatal("it has told so already")
			}
			if got := w.stays.core.order[0].rights.DealtWith(w.leaver.id); got != before {
				t.Errorf("the gift is taken: %v was given to the leaver more than was received, and now %v", before, got)
			}
			goes(w)
			w.run(2 * time.Second)
			if w.third.core != nil && w.third.core.Left() {
				w.kill(w.third)
			}
			w.allWell()
		})
	}
}

// TestAGiftOfALeaverThatWasCalledDeadArrives: its heir has taken over long before it hears that it was declared dead, by nodes
// that had not heard of the leaving. It tells these, so that what they had dealt with the leaver arrives.
func TestAGiftOfALeaverThatWasCalledDeadArrives(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "a", "a")
	w.run(10 * time.Second)
	stays, leaver, heir, told := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	gifts := func(l letter) bool {
		return l.m.Kind == kindTransfer && (l.from == leaver.id || l.to == leaver.id || l.from == stays.id)
	}
	w.lose = gifts
	leaver.core.rooms[roomID].give(stays.id, ticket.Amount{Places: 5, Rate: 50}, w.now)
	stays.core.rooms[roomID].give(leaver.id, ticket.Amount{Places: 3, Rate: 30}, w.now)
	w.post(leaver, nil)
	w.post(stays, nil)
	w.run(100 * time.Millisecond)
	w.lose = func(l letter) bool {
		apart := (l.to == stays.id || l.to == told.id) && (l.from == leaver.id || l.from == heir.id)
		return gifts(l) || l.m.Kind == kindReplica && apart
	}
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.until("the heir has taken over", 10*time.Second, func() bool {
		_, is := heir.core.facts.room(roomID).finals[leaver.id]
		return is
	})
	w.lostFor(leaver)
	w.run(time.Second)
	if err := told.core.DeclareDead(leaver.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Second)
	if !stays.core.rooms[roomID].rights.Refuses(leaver.id) {
		t.Fatal("the leaver is not refused")
	}
	w.lose = nil
	for range 10 {
		w.run(2 * time.Second)
		if got := w.heldAll(roomID); got.Places > 90 {
			t.Fatalf("%v are held, of 90", got)
		}
	}
	if got := w.heldAll(roomID); got.Places != 90 {
		t.Errorf("%v are held, want 90", got)
	}
}
