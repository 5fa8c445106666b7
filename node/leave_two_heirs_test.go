package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestALeaverWithABusyRoomWhoseHeirsHeirIsLost: a request is under way in one room of a leaver. Its heir, which has
// the other one, leaves in turn to a third, and the third is lost, declared dead and recovered. The leaver
// refuses its heir then, whose rights were the third's, and finds another one.
func TestALeaverWithABusyRoomWhoseHeirsHeirIsLost(t *testing.T) {
	other := escrowSettings(60)
	other.ID, other.Path = crdt.RoomID{8}, "/other"
	w := newWorldOf(t, []room.Settings{escrowSettings(90), other}, "a", "a", "a", "a", "a")
	w.run(10 * time.Second)
	stays, leaver, heir, third := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	r := leaver.core.rooms[other.ID]
	r.mu.Lock()
	r.rights.Open(1, w.now) // a request is under way that may take a place
	r.mu.Unlock()
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.run(heirStays + 100*time.Millisecond)
	w.post(heir, heir.core.leaveTo(third.id, w.now))
	w.until("the heir has left", 20*time.Second, func() bool { return heir.core.Left() })
	w.kill(heir)
	w.lostFor(third)
	w.run(time.Second)
	if err := stays.core.DeclareDead(third.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Second)
	r.mu.Lock()
	r.rights.Close(1)
	r.mu.Unlock()
	for end := w.now.Add(3 * time.Minute); w.now.Before(end) && !leaver.core.Left(); {
		w.run(10 * time.Millisecond)
	}
	if !leaver.core.Left() {
		t.Error("it has not left within three minutes")
	}
	w.kill(leaver)
	w.run(3 * time.Minute)
	if got := w.heldAll(roomID); got.Places != 90 {
		t.Errorf("first room: %v", got)
	}
	if got := w.heldAll(other.ID); got.Places != 60 {
		t.Errorf("other room: %v", got)
	}
}

// TestALeaverThatStartsAgainAmongTwoHeirs: a leaver's first heir had one room when it was lost, the second has the
// rest and says that the leaver has left. The leaver, started again, names its first heir. What was given to
// it in a room that it never had is the second one's.
func TestALeaverThatStartsAgainAmongTwoHeirs(t *testing.T) {
	w := newCatalogWorld(t, elsewhere(40), "a", "a", "a", "a", "a")
	w.run(2 * time.Second)
	maker, leaver, heir, second := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	more := shopSettings(60)
	more.ID, more.Name, more.Host, more.CookieSuffix = crdt.RoomID{0xee}, "more", "more", "more"
	w.add(maker, more)
	w.run(10 * time.Second)
	b := leaver.core.order[len(leaver.core.order)-1]
	b.mu.Lock()
	b.rights.Open(1, w.now)
	b.mu.Unlock()
	next := shopSettings(40)
	noGifts := func(l letter) bool { // what is given in the new room arrives nowhere
		x, err := ticket.DecodeTransfer(l.m.Payload)
		return l.m.Kind == kindTransfer && err == nil && x.Room == next.ID
	}
	w.lose = noGifts
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.run(200 * time.Millisecond)
	w.add(maker, next)
	w.until("room made", time.Second, func() bool {
		return maker.core.rooms[next.ID] != nil && maker.core.rooms[next.ID].Rights().Held.Places >= 7
	})
	maker.core.rooms[next.ID].give(leaver.id, ticket.Amount{Places: 7, Rate: 70}, w.now)
	w.post(maker, nil)
	w.run(time.Second)
	w.lostFor(heir)
	w.run(time.Second)
	if err := maker.core.DeclareDead(heir.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(500 * time.Millisecond)
	w.lose = func(l letter) bool { return noGifts(l) || l.m.Kind == kindReceived && l.to == leaver.id }
	w.post(leaver, leaver.core.leaveTo(second.id, w.now)) // after it has agreed
	b.mu.Lock()
	b.rights.Close(1)
	b.mu.Unlock()
	w.until("second says that it has left", 15*time.Second, func() bool {
		h, left := second.core.facts.left[leaver.id]
		return left && h == second.id
	})
	w.kill(leaver)
	w.run(10 * time.Second)
	w.lose = noGifts
	w.start(leaver, elsewhere(40))
	w.run(20 * time.Second)
	w.lose = nil
	w.run(4 * time.Minute)
	if leaver.core.Left() {
		w.kill(leaver)
	}
	if got := w.heldAll(next.ID); got.Places != 40 {
		t.Errorf("%v are held, want 40", got)
	}
}

// voidLedger is a mesh in which a node has left to one that has left in turn, to a third, and is told before it hears of that
// that this heir is dead. Its last ledger is known to one other node alone, told, when its own disk is lost. A gift
// of 5 to who stays has not arrived.
type voidLedger struct {
	*world
	stays, leaver, third, told *machine
}

func newVoidLedger(t *testing.T) voidLedger {
	t.Helper()
	w := newWorld(t, escrowSettings(90), "a", "a", "a", "a", "a")
	w.run(10 * time.Second)
	stays, leaver, heir, third, told := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3], w.nodes[4]
	silent := func(l letter) bool { // what of the leaver is lost
		return l.m.Kind == kindTransfer && l.from == leaver.id || l.m.Kind == kindHandover && l.from == leaver.id
	}
	w.lose = silent
	leaver.core.rooms[roomID].give(stays.id, ticket.Amount{Places: 5, Rate: 50}, w.now)
	w.post(leaver, nil)
	w.run(100 * time.Millisecond)
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.run(heirStays + 100*time.Millisecond)
	// The leaver and told do not hear that the heir has left.
	w.lose = func(l letter) bool {
		apart := (l.to == leaver.id || l.to == told.id) && l.from != told.id && l.from != leaver.id
		return silent(l) || l.m.Kind == kindReplica && apart
	}
	w.post(heir, heir.core.leaveTo(third.id, w.now))
	w.until("the third has taken over", 20*time.Second, func() bool {
		_, is := stays.core.facts.room(roomID).finals[heir.id]
		_, too := third.core.facts.room(roomID).finals[heir.id]
		return is && too && heir.core.toldAll()
	})
	w.run(time.Second)
	w.kill(heir)
	w.run(time.Second)
	if err := told.core.DeclareDead(heir.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.post(told, nil)
	w.until("that is known to the others", 5*time.Second, func() bool {
		_, a := third.core.facts.dead[heir.id]
		_, b := stays.core.facts.dead[heir.id]
		return a && b
	})
	// From now on the others hear nothing of the leaver and of told.
	w.lose = func(l letter) bool {
		apart := (l.to == leaver.id || l.to == told.id) != (l.from == told.id || l.from == leaver.id)
		return silent(l) || l.m.Kind == kindReplica && apart
	}
	w.until("told knows the last ledger", 5*time.Second, func() bool {
		_, is := told.core.facts.room(roomID).finals[leaver.id]
		return is
	})
	if _, is := third.core.facts.room(roomID).finals[leaver.id]; is {
		t.Fatal("the others know it too")
	}
	w.lostFor(leaver)
	return voidLedger{w, stays, leaver, third, told}
}

// allWell has everything arrive. At no time more is held than the limit, and in the end all of it is.
func (w voidLedger) allWell() {
	w.t.Helper()
	w.lose = nil
	for range 60 {
		w.run(2 * time.Second)
		if got := w.heldAll(roomID); got.Places > 90 {
			w.t.Fatalf("%v are held, of 90", got)
		}
	}
	if got := w.heldAll(roomID); got.Places != 90 {
		w.t.Errorf("%v are held, want 90", got)
	}
}

// TestAGiftOfALeaverIsNotTakenTwice: the one that knows the last ledger leaves as well, and the leaver is declared dead,
// and recovered by the others with the gift. They hear of its last ledger then, which has that gift.
func TestAGiftOfALeaverIsNotTakenTwice(t *testing.T) {
	w := newVoidLedger(t)
	w.post(w.told, w.told.core.leaveTo(w.third.id, w.now)) // after it has agreed
	w.until("told has passed all on", 10*time.Second, func() bool {
		_, is := w.stays.core.facts.room(roomID).finals[w.told.id]
		return is
	})
	if err := w.third.core.DeclareDead(w.leaver.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.until("recovered", 10*time.Second, func() bool {
		_, is := w.stays.core.facts.room(roomID).again[w.leaver.id]
		return is
	})
	w.allWell()
}

// TestAKeeperThatHadFencedALeaver: the one that knows the last ledger stays, and the others declare the leaver dead at the
// third, which keeps its rights by that ledger. Nobody can recover it without the one that stays, and the third has
// given its word to nobody but itself.
func TestAKeeperThatHadFencedALeaver(t *testing.T) {
	w := newVoidLedger(t)
	w.run(time.Second)
	if err := w.third.core.DeclareDead(w.leaver.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Second)
	if _, given := w.third.core.order[0].rights.Frozen(w.leaver.id); !given {
		t.Fatal("the third has not given its word")
	}
	w.allWell()
}

// TestAnHeirWhoseFactsAreLost: a minter leaves, and its heir crashes when it has written its rights, and not yet the
// last ledger among its facts. The minter's disk is lost. Somebody mints in the end, and nothing is waited for.
func TestAnHeirWhoseFactsAreLost(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "a")
	w.run(10 * time.Second)
	leaver, heir, stays := w.nodes[0], w.nodes[1], w.nodes[2]
	heir.disk.delay = 200 * time.Millisecond
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	for i := range 6000 {                               // as after a room each was changed, or taken over: more than go in one batch
		heir.core.setFact(fmt.Sprint("more/", i), make([]byte, 500), w.now)
	}
	has := func(object, key string) bool { return heir.disk.keys[[2]string{object, key}] != nil }
	w.until("the heir has written its rights", 20*time.Second, func() bool {
		return has(rightsOf(roomID), "taken/"+leaver.id.String())
	})
	w.kill(heir)
	heir.snapshot = nil // the last one is older
	w.lostFor(leaver)
	heir.disk.delay = 0
	w.start(heir, escrowSettings(90))
	w.run(15 * time.Second)
	if err := stays.core.DeclareDead(leaver.id, w.now); err != nil {
		t.Fatal(err)
	}
	for range 120 {
		w.run(2 * time.Second)
	}
	f := stays.core.facts.room(roomID)
	if got := w.heldAll(roomID); got.Places != 90 {
		t.Errorf("%v are held, want 90", got)
	}
	if stays.core.facts.mints(f) == (crdt.NodeID{}) {
		t.Error("nobody mints")
	}
	if waits := stays.core.facts.unrecovered(f); len(waits) > 0 {
		t.Errorf("%v wait to be recovered", waits)
	}
}

// TestAnHeirWithoutRightsOfItsOwn: while a room is not limited by rights, a node leaves to one that came later and never
// had any, and that one to a third. What was on its way to the first is the third's, once rights limit again.
func TestAnHeirWithoutRightsOfItsOwn(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "a")
	w.run(10 * time.Second)
	giver, leaver, last := w.nodes[0], w.nodes[1], w.nodes[2]
	w.lose = func(l letter) bool { return l.m.Kind == kindTransfer && l.from == giver.id }
	giver.core.rooms[roomID].give(leaver.id, ticket.Amount{Places: 7, Rate: 70}, w.now)
	w.post(giver, nil)
	w.run(time.Second)
	even := escrowSettings(90)
	even.Policy = room.Even
	w.configure(even)
	w.run(5 * time.Second)
	late := &machine{id: crdt.NodeID{50, 0xaa}, site: "a"}
	w.nodes = append(w.nodes, late)
	w.start(late, even)
	w.run(5 * time.Second)
	// It has nothing to pass on but what it has given away and passes on in turn.
	if all := leaver.core.rooms[roomID].Rights().Held; !all.IsZero() {
		leaver.core.rooms[roomID].give(last.id, all, w.now)
		w.post(leaver, nil)
		w.run(2 * time.Second)
	}
	w.post(leaver, leaver.core.leaveTo(late.id, w.now)) // after it has agreed
	w.until("the first has left", 20*time.Second, func() bool { return leaver.core.Left() })
	w.kill(leaver)
	w.run(heirStays)
	w.post(late, late.core.leaveTo(last.id, w.now))
	w.until("the second has left", 20*time.Second, func() bool { return late.core.Left() })
	w.kill(late)
	w.lose = nil
	w.run(30 * time.Second)
	w.configure(escrowSettings(90))
	w.run(4 * time.Minute)
	if got := w.heldAll(roomID); got.Places != 90 {
		t.Errorf("%v are held, want 90", got)
	}
}
