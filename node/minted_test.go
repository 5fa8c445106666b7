package node

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// withUnheardMinting has nobody hear from a node what it has minted, in a mesh of one minter in site a and
// three nodes in site b. It mints 50 places more, as an operator has told one of the others, gives
// so many to each of them, and dies. Gifts of others are lost as long as the test does not have it otherwise.
func withUnheardMinting(t *testing.T, leaveOut ticket.Rules, gifts ...int64) *world {
	w := newStoppedWorld(t)
	w.leaveOut = leaveOut
	w.begin(escrowSettings(10), "a", "b", "b", "b")
	w.run(10 * time.Second)
	minter := w.nodes[0]
	w.lose = func(l letter) bool {
		return l.from == minter.id && l.m.Kind == kindReplica || l.from != minter.id && l.m.Kind == kindTransfer
	}
	w.nodes[1].core.setFact(roomKey(factLimits, roomID), encodeAmount(ticket.Amount{Places: 60, Rate: 10_000}), w.now)
	w.until("minted", 5*time.Second, func() bool { return minter.core.order[0].Rights().Held.Places >= 50 })
	for i, n := range gifts {
		minter.core.order[0].give(w.nodes[i+1].id, ticket.Amount{Places: n, Rate: 1000}, w.now)
	}
	w.post(minter, nil)
	w.until("given", 5*time.Second, func() bool {
		return w.heldAll(roomID).Sub(minter.core.order[0].Rights().Held).Places >= 50
	})
	w.kill(minter)
	return w
}

// lowered lowers the limit to 17 at a node of site b, and returns how many of a crowd are inside then.
func (w *world) lowered(at *machine) int {
	at.core.setFact(roomKey(factLimits, roomID), encodeAmount(ticket.Amount{Places: 17, Rate: 10_000}), w.now)
	w.run(2 * time.Second)
	var up []*machine
	for _, m := range w.nodes {
		if m.core != nil {
			up = append(up, m)
		}
	}
	people := w.crowd(90, func(i int) *machine { return up[i%len(up)] })
	for range 30 {
		w.askAll(outside(people))
		w.run(100 * time.Millisecond)
	}
	return w.active(people)
}

// TestGiftsSayWhatWasMinted: nobody has heard that a minter minted what it gave, and it is gone. Those
// who have it know all the same how much that is, when the limit is lowered. Its rights come back once it is
// declared dead, and the limit is reached.
func TestGiftsSayWhatWasMinted(t *testing.T) {
	w := withUnheardMinting(t, 0, 20, 20, 12)
	if n := w.lowered(w.nodes[2]); n > 17 {
		t.Errorf("%d are inside of 17", n)
	}
	w.lose = nil
	if err := w.nodes[1].core.DeclareDead(w.nodes[0].id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Minute)
	if n := w.lowered(w.nodes[2]); n != 17 {
		t.Errorf("%d are inside of 17 when the dead minter's rights are recovered", n)
	}
	if n := withUnheardMinting(t, ticket.MintedWithGifts, 20, 20, 12); n.lowered(n.nodes[2]) <= 17 {
		t.Error("it went well without the rule")
	}
}

// TestARestartForgetsNothingThatWasMinted: those who have it restart, from their disks alone.
func TestARestartForgetsNothingThatWasMinted(t *testing.T) {
	w := withUnheardMinting(t, 0, 20, 20, 12)
	w.lose = nil
	for _, m := range w.nodes[1:] {
		w.kill(m)
		m.snapshot = nil
	}
	for _, m := range w.nodes[1:] {
		w.start(m, escrowSettings(10))
	}
	w.run(10 * time.Second)
	w.heldSince(52)
	if n := w.lowered(w.nodes[1]); n > 17 {
		t.Errorf("%d are inside of 17", n)
	}
}

// heldSince fails unless so many places are held.
func (w *world) heldSince(n int64) {
	w.t.Helper()
	if got := w.heldAll(roomID); got.Places < n {
		w.t.Fatalf("%v are held, want %d places at least", got, n)
	}
}

// knows fails unless a node knows that the dead minter minted 60.
func (w *world) knows(m *machine) {
	w.t.Helper()
	if got := m.core.facts.room(roomID).mintedBy(w.nodes[0].id); got.Places != 60 {
		w.t.Errorf("%s knows that %v were minted, want 60", m.id, got)
	}
}

// TestWhatWasMintedIsPassedOn: one node has it all from the minter, and gives most of it to others, or
// leaves to one of them, which gives half of it to the third.
func TestWhatWasMintedIsPassedOn(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		w := withUnheardMinting(t, 0, 52)
		first, second, third := w.nodes[1], w.nodes[2], w.nodes[3]
		if leaves {
			w.post(first, first.core.leaveTo(second.id, w.now)) // after it has agreed
			w.until("taken over", 2*time.Second, func() bool { return second.core.order[0].Rights().Held.Places >= 52 })
			w.knows(second)
			w.until("left", 10*time.Second, func() bool { return first.core.Left() })
			w.kill(first)
			w.lose = nil
			second.core.order[0].give(third.id, ticket.Amount{Places: 25, Rate: 100}, w.now)
			w.post(second, nil)
		} else {
			w.lose = nil
			first.core.order[0].give(second.id, ticket.Amount{Places: 20, Rate: 100}, w.now)
			first.core.order[0].give(third.id, ticket.Amount{Places: 20, Rate: 100}, w.now)
			w.post(first, nil)
		}
		w.run(time.Second)
		w.heldSince(52)
		w.knows(second)
		w.knows(third)
		if n := w.lowered(third); n > 17 {
			t.Errorf("leaves %v: %d are inside of 17", leaves, n)
		}
	}
}

// TestWhatWasMintedCountsAtOnce: the limit is lowered before the gift arrives. No more are let in by it than
// others leave, also not before the next tick.
func TestWhatWasMintedCountsAtOnce(t *testing.T) {
	w := newWorld(t, escrowSettings(10), "a", "b")
	w.run(10 * time.Second)
	minter, taker := w.nodes[0], w.nodes[1]
	w.lose = func(l letter) bool { return l.m.Kind == kindReplica || l.from == taker.id && l.m.Kind == kindTransfer }
	minter.core.setFact(roomKey(factLimits, roomID), encodeAmount(ticket.Amount{Places: 60, Rate: 10_000}), w.now)
	taker.core.setFact(roomKey(factLimits, roomID), encodeAmount(ticket.Amount{Places: 17, Rate: 10_000}), w.now)
	w.until("minted", 5*time.Second, func() bool { return minter.core.order[0].Rights().Held.Places >= 50 })
	minter.core.order[0].give(taker.id, ticket.Amount{Places: 40}, w.now)
	w.post(minter, nil)
	w.until("given", time.Second, func() bool { return taker.core.order[0].Rights().Held.Places >= 40 })
	for range 40 {
		if is := taker.core.order[0].Rights(); is.Free.Places > max(0, is.Held.Places-(60-17)) {
			t.Fatalf("%v can be used of %v, and 60 are minted under a limit of 17", is.Free, is.Held)
		}
		w.run(10 * time.Millisecond)
	}
}

// TestOthersHearWhatALostMinterMinted: one node has it all from the minter. It tells the others, who have
// nothing of it, and they do not say it again.
func TestOthersHearWhatALostMinterMinted(t *testing.T) {
	w := withUnheardMinting(t, 0, 52)
	w.run(20 * time.Second)
	for i, m := range w.nodes[1:] {
		w.knows(m)
		if _, _, says := m.core.replica.Get(roomNodeKey(factKnew, roomID, m.id)); says != (i == 0) {
			t.Errorf("%s says what was minted: %v", m.id, says)
		}
	}
}

// TestALastLedgerSaysWhatWasMinted: one node has it all from the minter, and gives half of it to
// another, which never arrives. It leaves to a third, and the other takes the gift by its last ledger.
func TestALastLedgerSaysWhatWasMinted(t *testing.T) {
	w := withUnheardMinting(t, 0, 52)
	first, second := w.nodes[1], w.nodes[2]
	before := second.core.order[0].Rights().Held.Places
	first.core.order[0].give(second.id, ticket.Amount{Places: 25, Rate: 100}, w.now)
	w.post(first, nil)
	heir := w.nodes[3]
	w.post(first, first.core.leaveTo(heir.id, w.now)) // after it has agreed
	// Before the heir says what it has from the minter, as it has not been heard.
	w.until("taken", 3*time.Second, func() bool { return second.core.order[0].Rights().Held.Places >= before+25 })
	for _, m := range []*machine{second, heir} {
		w.knows(m)
	}
}

// TestWhatWasMintedIsOnDiskFirst: nodes have so many facts to write that these take several batches. What
// a minter has minted is on its disk before it goes with a gift, and on that of the receiver not after the gift.
func TestWhatWasMintedIsOnDiskFirst(t *testing.T) {
	w := newWorld(t, escrowSettings(10), "a", "b")
	w.run(10 * time.Second)
	minter, taker := w.nodes[0], w.nodes[1]
	fact := [2]string{factsObject, "w/" + roomNodeKey(factMinted, roomID, minter.id)}
	w.lose = func(l letter) bool { return l.m.Kind == kindReplica }
	for of, m := range w.nodes {
		m.disk.delay = 100 * time.Millisecond
		for i := range 100 + 300*of { // the receiver is not through when the gift arrives
			m.core.setFact(fmt.Sprintf("none/%s/%d", m.id, i), bytes.Repeat([]byte{1}, crdt.MaxValue), w.now)
		}
		w.post(m, nil)
		m.core.setFact(roomKey(factLimits, roomID), encodeAmount(ticket.Amount{Places: 60, Rate: 10_000}), w.now)
	}
	old := bytes.Clone(minter.disk.keys[fact])
	sent, got := 0, 0
	w.fate = func(from, to *machine, m Message) []time.Duration {
		x, err := ticket.DecodeTransfer(m.Payload)
		if from == minter && m.Kind == kindTransfer && err == nil && minter.core.order[0].Rights().Minted.Places == 60 {
			sent++
			if bytes.Equal(minter.disk.keys[fact], old) || len(x.Minted) != 1 || x.Minted[0].Minted.Places != 60 {
				t.Errorf("it sends %+v, and has not written it", x)
			}
		}
		return []time.Duration{w.delay}
	}
	gave := false
	w.until("given", 20*time.Second, func() bool {
		if has := minter.core.order[0].Rights(); has.Held.Places > 40 && !gave {
			gave = true
			minter.core.order[0].give(taker.id, ticket.Amount{Places: 40, Rate: 100}, w.now)
		}
		if taker.core.order[0].Rights().Held.Places > 30 {
			got++
			if bytes.Equal(taker.disk.keys[fact], old) {
				t.Error("a gift is on disk before what was minted for it")
			}
		}
		return got > 0
	})
	if sent == 0 {
		t.Error("nothing was sent")
	}
}
