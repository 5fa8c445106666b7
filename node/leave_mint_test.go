package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestWhoIsNamedMinterByALastLedgerWaits: the minter has made more than anybody knows, and is lost. Who
// recovers it has to wait before it makes any, and leaves to one that leaves in turn, has passed on
// this room to a third, and is lost: the first one's last ledger makes the third the minter. It waits as
// long.
func TestWhoIsNamedMinterByALastLedgerWaits(t *testing.T) {
	other := escrowSettings(60)
	other.ID, other.Path = crdt.RoomID{8}, "/other"
	w := newWorldOf(t, []room.Settings{escrowSettings(90), other}, "b", "a", "a", "a", "a")
	w.run(10 * time.Second)
	minter, leaver, heir, third, stays := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3], w.nodes[4]
	raised := ticket.Amount{Places: 120, Rate: 10_000}
	w.cutOff = func(a, b *machine) bool { return a == minter || b == minter }
	w.members()
	minter.core.setFact(roomKey(factLimits, roomID), encodeAmount(raised), w.now)
	w.run(time.Second)
	people := w.crowd(160, func(i int) *machine { return []*machine{minter, third, minter, stays}[i%4] })
	for range 40 {
		w.askAll(outside(people))
		w.run(100 * time.Millisecond)
	}
	w.lostFor(minter)
	w.cutOff = nil
	w.members()
	w.run(500 * time.Millisecond)
	if err := leaver.core.DeclareDead(minter.id, w.now); err != nil {
		t.Fatal(err)
	}
	stays.core.setFact(roomKey(factLimits, roomID), encodeAmount(raised), w.now)
	w.until("recovered", 5*time.Second, func() bool { return leaver.core.facts.room(roomID).again[minter.id].by == leaver.id })
	w.run(500 * time.Millisecond)
	w.lose = func(l letter) bool {
		h, err := ticket.DecodeHandover(l.m.Payload)
		return l.m.Kind == kindHandover && (err != nil || l.from == leaver.id || h.Room != roomID)
	}
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.run(heirStays + 100*time.Millisecond)
	third.disk.delay = 8 * time.Second
	w.post(heir, heir.core.leaveTo(third.id, w.now))
	w.until("handed over", 5*time.Second, func() bool {
		_, known := third.core.facts.room(roomID).finals[heir.id]
		return known
	})
	w.lostFor(heir)
	w.run(500 * time.Millisecond)
	if err := stays.core.DeclareDead(heir.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.until("left", 20*time.Second, func() bool { return leaver.core.Left() })
	w.kill(leaver)
	w.lose = nil
	third.disk.delay = 0
	more := w.crowd(60, func(i int) *machine { return []*machine{third, stays}[i%2] })
	most := 0
	for range 100 {
		w.askAll(outside(more))
		w.run(200 * time.Millisecond)
		most = max(most, w.active(people)+w.active(more))
	}
	if most > 120 {
		t.Errorf("%d are inside, and the limit was never more than 120", most)
	}
}

// TestAnHeirThatForgotTheTakeoverWaits: the minter has made more than anybody knows, and is lost. Who
// recovers it leaves, and is killed. Its heir is killed while it writes that it has taken over: the
// facts are on disk, which say that it mints now, and not its ledger. It waits as the other would have.
func TestAnHeirThatForgotTheTakeoverWaits(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "b", "a", "a", "a")
	w.run(10 * time.Second)
	minter, leaver, heir, stays := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	raised := ticket.Amount{Places: 120, Rate: 10_000}
	w.cutOff = func(a, b *machine) bool { return a == minter || b == minter }
	w.members()
	minter.core.setFact(roomKey(factLimits, roomID), encodeAmount(raised), w.now)
	w.run(time.Second)
	w.lostFor(minter)
	w.cutOff = nil
	w.members()
	w.run(500 * time.Millisecond)
	if err := leaver.core.DeclareDead(minter.id, w.now); err != nil {
		t.Fatal(err)
	}
	stays.core.setFact(roomKey(factLimits, roomID), encodeAmount(raised), w.now)
	w.until("recovered", 5*time.Second, func() bool { return stays.core.facts.room(roomID).again[minter.id].by == leaver.id })
	w.run(2 * time.Second)
	heir.disk.delay = 500 * time.Millisecond
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	key := [2]string{}
	w.until("written", 5*time.Second, func() bool {
		for _, x := range heir.disk.batch {
			if x.Object != factsObject && len(x.Key) > len(`taken/`) && x.Key[:6] == `taken/` {
				key = [2]string{x.Object, x.Key}
			}
		}
		return key != [2]string{}
	})
	for _, x := range heir.disk.batch {
		if x.Object == factsObject {
			heir.disk.keys[[2]string{x.Object, x.Key}] = x.Value
		}
	}
	w.kill(leaver)
	w.kill(heir)
	heir.disk.delay = 0
	w.run(time.Second)
	w.start(heir, escrowSettings(90))
	for range 200 {
		w.run(50 * time.Millisecond)
		if is := heir.core.order[0].Rights(); !is.Minted.IsZero() {
			t.Fatalf("it mints %v within %v, from %v", is.Minted, w.now, is.MintsFrom)
		}
	}
}
