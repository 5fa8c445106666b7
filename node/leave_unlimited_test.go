package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// A room that rights limited once, and do not at the moment: nothing of what its nodes have of it may be
// lost, since the policy may be switched back.

// newUnlimitedWorld starts nodes with a room of 90, and switches its policy. What comes later has never had a ledger of it.
func newUnlimitedWorld(t *testing.T, sites ...string) (w *world, late *machine) {
	t.Helper()
	w = newWorld(t, escrowSettings(90), sites...)
	w.run(10 * time.Second)
	w.unlimit()
	late = &machine{id: crdt.NodeID{50, 0xaa}, site: "a"}
	w.nodes = append(w.nodes, late)
	w.start(late, testSettings(90))
	w.run(5 * time.Second)
	return w, late
}

func (w *world) unlimit() {
	w.t.Helper()
	w.configure(testSettings(90))
	w.run(5 * time.Second)
}

// limitsAgain switches the policy back, and fails if not all rights are there in the end.
func (w *world) limitsAgain() {
	w.t.Helper()
	for _, m := range w.nodes {
		if m.core != nil && m.core.Left() {
			w.kill(m)
		}
	}
	w.configure(escrowSettings(90))
	for range 120 {
		w.run(2 * time.Second)
		if got := w.heldAll(roomID); got.Places > 90 {
			w.t.Fatalf("%v are held, of 90", got)
		}
	}
	if got := w.heldAll(roomID); got.Places != 90 {
		w.t.Errorf("%v are held, want 90", got)
	}
}

// TestALeaverWhoseHeirIsLostWhereRightsDoNotLimit: the heir is lost before it has taken over, and declared dead.
func TestALeaverWhoseHeirIsLostWhereRightsDoNotLimit(t *testing.T) {
	w, _ := newUnlimitedWorld(t, "a", "a", "a", "a")
	stays, leaver, heir := w.nodes[0], w.nodes[1], w.nodes[2]
	w.lose = func(l letter) bool { return l.m.Kind == kindHandover }
	w.post(leaver, leaver.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.run(time.Second)
	w.lostFor(heir)
	w.run(time.Second)
	if err := stays.core.DeclareDead(heir.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.lose = nil
	w.until("it has left", 3*time.Minute, func() bool { return leaver.core.Left() })
	w.limitsAgain()
}

// TestAnHeirThatNeverHadTheRoom has left itself, with nothing in that room to pass on, when what a leaver has there comes.
func TestAnHeirThatNeverHadTheRoom(t *testing.T) {
	w, late := newUnlimitedWorld(t, "a", "a", "a")
	leaver := w.nodes[1]
	w.lose = func(l letter) bool { return l.m.Kind == kindHandover && l.from == leaver.id }
	w.post(leaver, leaver.core.leaveTo(late.id, w.now)) // after it has agreed
	w.run(heirStays + 100*time.Millisecond)
	w.post(late, late.core.leaveTo(w.nodes[2].id, w.now))
	w.until("the heir has left", 20*time.Second, func() bool { return late.core.Left() })
	w.kill(late)
	w.lose = nil
	w.until("it has left", time.Minute, func() bool { return leaver.core.Left() })
	w.limitsAgain()
}

// TestAGiftOfALeaverToALeaverThatNeverHadTheRoom: it does not arrive, and both have left by then, to one node or to two. Nobody
// sends it any more.
func TestAGiftOfALeaverToALeaverThatNeverHadTheRoom(t *testing.T) {
	for _, one := range []bool{false, true} {
		w, late := newUnlimitedWorld(t, "a", "a", "a", "a")
		stays, heir, giver := w.nodes[0], w.nodes[1], w.nodes[2]
		w.lose = func(l letter) bool { return l.m.Kind == kindTransfer }
		giver.core.rooms[roomID].give(late.id, ticket.Amount{Places: 3, Rate: 30}, w.now)
		w.post(giver, nil)
		w.run(100 * time.Millisecond)
		w.post(late, late.core.leaveTo(heir.id, w.now)) // after it has agreed
		w.until("it has left", 10*time.Second, func() bool { return late.core.Left() })
		w.kill(late)
		to := stays
		if one {
			to = heir
		}
		w.post(giver, giver.core.leaveTo(to.id, w.now)) // after it has agreed
		w.until("the giver has left", 10*time.Second, func() bool { return giver.core.Left() })
		w.kill(giver)
		w.lose = nil
		w.limitsAgain()
	}
}

// TestALedgerThatNobodyWasToldOf: a leaver, as of a version before, passes on a ledger that is known from what its heir
// passes on in turn, and from nothing else. Nobody takes it for one that never had the room: that would put an empty ledger in its place.
func TestALedgerThatNobodyWasToldOf(t *testing.T) {
	w, late := newUnlimitedWorld(t, "a", "a", "a")
	stays, heir := w.nodes[0], w.nodes[1]
	r, minted := heir.core.rooms[roomID], ticket.Amount{Places: 5, Rate: 50}
	r.mu.Lock()
	taken := r.rights.TakeOver(ticket.Handover{Room: roomID, Final: ticket.Final{
		Node: late.id, Heir: heir.id, Minting: ticket.Minting{Known: true, Minted: minted},
	}}, w.now)
	r.mu.Unlock()
	if !taken {
		t.Fatal("it is not taken over")
	}
	heir.core.storing.touch(r)
	w.post(late, late.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.until("it has left", 10*time.Second, func() bool { return late.core.Left() })
	w.kill(late)
	w.run(heirStays)
	w.post(heir, heir.core.leaveTo(stays.id, w.now)) // after it has agreed
	w.until("its heir has left", 10*time.Second, func() bool { return heir.core.Left() })
	w.kill(heir)
	stays.core.rooms[roomID].receive(ticket.Transfer{Room: roomID, From: w.nodes[2].id, To: late.id, Gave: ticket.Amount{Places: 1, Rate: 10}}, w.now)
	w.run(time.Second)
	f := stays.core.facts.room(roomID)
	if _, known := f.finals[late.id]; known || f.mintedBy(late.id) != minted {
		t.Errorf("its last ledger is known: %t, and that it has minted %v; want none, and %v", known, f.mintedBy(late.id), minted)
	}
	if got := stays.core.rooms[roomID].rights.AnswersFor(); !slices.Contains(got, late.id) {
		t.Errorf("its rights are with those of %v", got)
	}
}

// TestALostNodeIsRecoveredWhereRightsDoNotLimit, by all that nodes tell of it.
func TestALostNodeIsRecoveredWhereRightsDoNotLimit(t *testing.T) {
	w, _ := newUnlimitedWorld(t, "a", "a", "a")
	stays, lost := w.nodes[0], w.nodes[1]
	w.lostFor(lost)
	w.kill(w.nodes[2]) // whose word is needed
	w.run(time.Second)
	if err := stays.core.DeclareDead(lost.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(10 * time.Second)
	if done, err := stays.core.allRecovered(lost.id); done || err != nil {
		t.Errorf("all is said to be recovered, before all have spoken; %v", err)
	}
	w.start(w.nodes[2], testSettings(90))
	w.until("recovered", time.Minute, func() bool {
		done, err := stays.core.allRecovered(lost.id)
		return done && err == nil
	})
	w.limitsAgain()
}

// TestAGiftArrivesWhereRightsDoNotLimit: its giver has nothing else, and sends it until it has arrived.
func TestAGiftArrivesWhereRightsDoNotLimit(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "a")
	w.run(10 * time.Second)
	giver, other := w.nodes[1], w.nodes[2]
	w.lose = func(l letter) bool { return l.m.Kind == kindTransfer }
	all := giver.core.rooms[roomID].Rights().Held
	if all.IsZero() {
		t.Fatal("it has nothing to give")
	}
	giver.core.rooms[roomID].give(other.id, all, w.now)
	w.post(giver, nil)
	w.run(50 * time.Millisecond)
	if left := giver.core.rooms[roomID].Rights().Held; !left.IsZero() {
		t.Fatalf("it has %v left", left)
	}
	w.unlimit()
	w.lose = nil
	w.until("it has arrived", 20*time.Second, func() bool { return w.heldAll(roomID).Places == 90 })
}

// TestALedgerThatComesWhereRightsDoNotLimitIsTold: with rights of a leaver, and with a gift; and how long sessions last.
func TestALedgerThatComesWhereRightsDoNotLimitIsTold(t *testing.T) {
	for name, comes := range map[string]func(w *world, from, to *machine){
		"handed over": func(w *world, from, to *machine) {
			w.post(from, from.core.leaveTo(to.id, w.now)) // after it has agreed
			w.until("it has left", 10*time.Second, func() bool { return from.core.Left() })
			w.kill(from)
		},
		"given": func(w *world, from, to *machine) {
			from.core.rooms[roomID].give(to.id, ticket.Amount{Places: 3, Rate: 30}, w.now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, late := newUnlimitedWorld(t, "a", "a", "a")
			stays := w.nodes[0]
			kept := func() *perNode[time.Duration] { return &stays.core.facts.room(roomID).kept }
			if kept().has(late.id) {
				t.Fatal("it is said to have a ledger, and has none")
			}
			comes(w, w.nodes[1], late)
			w.until("it is known", 10*time.Second, func() bool { return kept().has(late.id) })
			longer := testSettings(90)
			longer.SessionDuration = 10 * time.Minute
			w.configure(longer)
			w.until("longer sessions are known", 2*time.Second, func() bool { return kept().of(late.id) == longer.SessionDuration })
		})
	}
}

// TestALeaverTakesNoLedgerUp: it has told that it has left, and its heir that it never had the room, when something
// is given to it there by one that has not heard of that.
func TestALeaverTakesNoLedgerUp(t *testing.T) {
	w, late := newUnlimitedWorld(t, "a", "a", "a")
	giver, heir := w.nodes[0], w.nodes[1]
	w.lose = func(l letter) bool { return l.m.Kind == kindReplica && l.to == giver.id }
	w.post(late, late.core.leaveTo(heir.id, w.now)) // after it has agreed
	w.until("it has told that it has left", 10*time.Second, func() bool { return late.core.toldAll() })
	giver.core.rooms[roomID].give(late.id, ticket.Amount{Places: 3, Rate: 30}, w.now)
	w.post(giver, nil)
	w.run(time.Second)
	if got := late.core.rooms[roomID].Rights().Held; !got.IsZero() {
		t.Errorf("it has taken %v", got)
	}
	w.lose = nil
	w.until("it has left", 20*time.Second, func() bool { return late.core.Left() })
	w.limitsAgain()
}

// TestWhatALeaverForgotIsRecovered: a version before could leave without a room that it had a ledger of. An operator
// declares it dead then, and nobody whom it has left all rooms to.
func TestWhatALeaverForgotIsRecovered(t *testing.T) {
	other := escrowSettings(60)
	other.ID, other.Path = crdt.RoomID{8}, "/other"
	for _, forgets := range []bool{true, false} {
		w := newWorldOf(t, []room.Settings{escrowSettings(90), other}, "a", "a", "a")
		w.run(10 * time.Second)
		stays, leaver := w.nodes[0], w.nodes[1]
		if forgets {
			leaver.core.leave.on = true // or it would take the room up again
			leaver.core.setRooms(map[crdt.RoomID]*Room{roomID: leaver.core.rooms[roomID]})
		}
		w.post(leaver, leaver.core.leaveTo(w.nodes[2].id, w.now)) // after it has agreed
		w.until("it has left", 20*time.Second, func() bool { return leaver.core.Left() })
		w.kill(leaver)
		w.run(10 * time.Second)
		seen := w.downSeen()
		if forgets {
			if len(seen) != 1 || seen[0].State != StateDown || len(seen[0].Rooms) != 1 || seen[0].Rooms[0].Room != other.ID.String() ||
				seen[0].Rooms[0].Capacity.Places == 0 || !strings.Contains(seen[0].Message, "ropeline node declare-dead "+seen[0].Order+" ") {
				t.Errorf("status says %+v, want the leaver with what it had of the other room, and how to declare it dead", seen)
			}
		} else if len(seen) > 0 {
			t.Errorf("status says that one is down that has left: %+v", seen)
		}
		err := stays.core.DeclareDead(leaver.id, w.now)
		if (err == nil) != forgets {
			t.Errorf("a room is forgotten: %t; declared dead: %v", forgets, err)
		}
		w.run(4 * time.Minute)
		if got := w.heldAll(roomID); got.Places != 90 {
			t.Errorf("a room is forgotten: %t; of the first one %v are held, want 90", forgets, got)
		}
		if got := w.heldAll(other.ID); got.Places != 60 {
			t.Errorf("a room is forgotten: %t; of the other one %v are held, want 60", forgets, got)
		}
	}
}

// TestAKeeperThatSkipsTheDeadTells: two nodes never had a ledger of the room. One leaves to the other, and that one to a keeper, which some do
// not hear; and a gift that was under way has the keeper take over from the first by a last ledger that names no other. Then the one between is declared dead by
// those who have not heard, so that they refuse the first one as well. What they had given it arrives.
func TestAKeeperThatSkipsTheDeadTells(t *testing.T) {
	w, early := newUnlimitedWorld(t, "a", "a", "a", "a")
	stays, keeper, giver, caller := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	between := &machine{id: crdt.NodeID{60, 0xaa}, site: "a"}
	w.nodes = append(w.nodes, between)
	w.start(between, testSettings(90))
	w.run(5 * time.Second)
	between.core.setFact(nodeKey(factNode, between.id), []byte(between.site), w.now) // as once it has a ledger of any room
	w.run(2 * time.Second)
	gifts := func(l letter) bool { return l.m.Kind == kindTransfer }
	w.lose = gifts
	stays.core.rooms[roomID].give(early.id, ticket.Amount{Places: 3, Rate: 30}, w.now)
	giver.core.rooms[roomID].give(early.id, ticket.Amount{Places: 2, Rate: 20}, w.now)
	w.post(stays, nil)
	w.post(giver, nil)
	w.run(100 * time.Millisecond)
	leaves := func(m, heir *machine) {
		w.post(m, m.core.leaveTo(heir.id, w.now)) // after it has agreed
		w.until("it has left", 20*time.Second, func() bool { return m.core.Left() })
		w.kill(m)
	}
	leaves(early, between)
	w.run(heirStays)
	apart := func(l letter) bool {
		far := func(id crdt.NodeID) bool { return id == stays.id || id == caller.id }
		return l.m.Kind == kindReplica && far(l.to) && !far(l.from)
	}
	w.lose = func(l letter) bool { return gifts(l) || apart(l) }
	leaves(between, keeper)
	w.lose = func(l letter) bool { return apart(l) || gifts(l) && l.from != giver.id }
	w.until("the keeper has taken over", 20*time.Second, func() bool {
		x, is := giver.core.facts.room(roomID).finals[early.id]
		return is && x.Heir == keeper.id
	})
	if err := caller.core.DeclareDead(between.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.post(caller, nil)
	w.until("the first one is refused", 10*time.Second, func() bool {
		return stays.core.rooms[roomID].rights.Refuses(early.id)
	})
	w.run(2 * time.Second)
	w.lose = nil
	w.limitsAgain()
}
