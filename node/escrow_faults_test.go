package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// rights sums up what living nodes hold and have minted.
func (w *world) rights() (held, minted ticket.Amount) {
	for _, m := range w.nodes {
		if m.core != nil {
			is := m.core.order[0].Rights()
			held, minted = held.Add(is.Held), minted.Add(is.Minted)
		}
	}
	return held, minted
}

// holds fails unless the living nodes hold so many rights, which is what they
// have minted.
func (w *world) holds(places, rate int64, when string) {
	w.t.Helper()
	held, minted := w.rights()
	if want := (ticket.Amount{Places: places, Rate: rate}); held != want || minted != want {
		w.t.Errorf("%s: %+v are held and %+v minted, want %+v", when, held, minted, want)
	}
}

// press has all who are outside ask again every second for a while, and returns
// the most who were inside at any time.
func (w *world) press(people []*person, d time.Duration) (peak int) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.askAll(outside(people))
		w.run(time.Second)
		peak = max(peak, w.active(people))
		for _, p := range people {
			p.in = p.in && !w.now.After(p.pass.LeaseEnd)
		}
	}
	return peak
}

// TestAKilledCounterStopsNobodyForLong has visitors come all the time, and the
// counter die.
func TestAKilledCounterStopsNobodyForLong(t *testing.T) {
	w := newWorld(t, escrowSettings(300), "a", "a", "a")
	w.run(20 * time.Second)
	lead := w.counterOf("a")
	m := w.other(lead)
	people := w.crowd(60, at(m))
	if in := w.askAll(people); in != 60 {
		t.Fatalf("%d of 60 were let in by the living counter", in)
	}
	w.kill(lead)
	killed := w.now
	first := w.crowd(20, at(m))
	in := w.askAll(first)
	if took := w.now.Sub(killed); in != 20 || took > time.Second {
		t.Errorf("%d of 20 were let in %v after the counter was killed, want all within a second", in, took)
	}
	all := append(people, first...)
	rest := w.crowd(400, at(m))
	all = append(all, rest...)
	peak := w.press(all, 20*time.Second)
	if peak > 300 || peak < 180 {
		t.Errorf("%d were inside at most, want no more than 300, and the two parts that live", peak)
	}
	w.start(lead, escrowSettings(300))
	peak = w.press(all, 3*time.Minute)
	if peak > 300 || peak < 297 {
		t.Errorf("%d were inside at most after the counter had come back, want 300 or nearly", peak)
	}
	w.run(3 * time.Minute)
	w.holds(300, 10_000, "at the end")
}

// TestACutHoldsTheLimit cuts a mesh of two sites while visitors come to both.
func TestACutHoldsTheLimit(t *testing.T) {
	for _, on := range []room.OnPartition{room.PartitionHold, room.PartitionOpen} {
		t.Run(string(on), func(t *testing.T) {
			s := escrowSettings(100)
			s.OnPartition = on
			w := newWorld(t, s, "a", "a", "b", "b")
			w.run(20 * time.Second)
			people := w.crowd(260, w.spread)
			peak := w.press(people, 70*time.Second)
			w.cut = true
			w.members()
			peak = max(peak, w.press(people, 100*time.Second))
			w.cut = false
			w.members()
			peak = max(peak, w.press(people, 100*time.Second))
			if peak > 100 || peak < 95 {
				t.Errorf("%d were inside at most, want 100 or nearly", peak)
			}
			w.run(3 * time.Minute)
			w.holds(100, 10_000, "at the end")
		})
	}
}

// TestVisitorsWhoCrossACut has visitors of one site come to the other while both
// are cut: rights are free there for some of them.
func TestVisitorsWhoCrossACut(t *testing.T) {
	for _, on := range []room.OnPartition{room.PartitionHold, room.PartitionOpen} {
		t.Run(string(on), func(t *testing.T) {
			s := escrowSettings(40)
			s.OnPartition = on
			w := newWorld(t, s, "a", "b")
			w.run(20 * time.Second)
			a, b := w.nodes[0], w.nodes[1]
			roaming := w.crowd(20, at(a))
			local := w.crowd(10, at(b))
			if in := w.askAll(roaming) + w.askAll(local); in != 30 {
				t.Fatalf("%d of 30 were let in", in)
			}
			w.cut = true
			w.members()
			for _, p := range roaming {
				p.at = b
			}
			for range 25 {
				for _, p := range append(roaming, local...) {
					if p.in {
						w.ask(p)
					}
				}
				w.run(5 * time.Second)
			}
			inside, borrowed := w.active(roaming), b.core.order[0].Rights().Borrowed
			free := int(b.core.order[0].Rights().Held.Places) - w.active(local)
			if on == room.PartitionHold && (inside > free || borrowed != 0) {
				t.Errorf("%d visitors of the other site are inside and %d borrowed, want no more than the %d places", inside, borrowed, free)
			}
			if on == room.PartitionOpen && inside != 20 {
				t.Errorf("%d of 20 visitors of the other site are inside, want all", inside)
			}
			if shown := len(borrowers(roaming)); on == room.PartitionOpen && shown < inside-free {
				t.Errorf("%d passes say that they are borrowed; %d are inside on %d places", shown, inside, free)
			}
		})
	}
}

func borrowers(people []*person) (out []*person) {
	for _, p := range people {
		if p.pass.Borrowed {
			out = append(out, p)
		}
	}
	return out
}

// TestARestartedAnchorHoldsTheLimit restarts a node that had let visitors in.
func TestARestartedAnchorHoldsTheLimit(t *testing.T) {
	s := escrowSettings(50)
	w := newWorld(t, s, "a")
	people := w.crowd(50, w.spread)
	if in := w.askAll(people); in != 50 {
		t.Fatalf("%d of 50 were let in", in)
	}
	w.run(10 * time.Second)
	w.kill(w.nodes[0])
	w.start(w.nodes[0], s)
	w.run(3 * time.Second)
	for i, p := range people {
		if v := w.ask(p); !v.Admit {
			t.Fatalf("visitor %d was refused after the restart", i)
		}
	}
	more := w.crowd(10, w.spread)
	if in := w.askAll(more); in != 0 {
		t.Errorf("%d more were let in after the restart, want none: all places are taken", in)
	}
	if peak := w.press(append(people, more...), 3*time.Minute); peak != 50 {
		t.Errorf("%d were inside at most, want 50", peak)
	}
	w.run(2 * time.Minute)
	w.holds(50, 10_000, "at the end")
}

// TestAFullDiskStopsTickets fills the disk of the counter, and of its only mate
// later.
func TestAFullDiskStopsTickets(t *testing.T) {
	s := escrowSettings(100)
	w := newWorld(t, s, "a", "a")
	w.run(20 * time.Second)
	lead := w.counterOf("a")
	mate := w.other(lead)
	inside := w.crowd(10, at(lead))
	if in := w.askAll(inside); in != 10 {
		t.Fatalf("%d of 10 were let in", in)
	}
	lead.disk.fails = true
	lead.core.storing.touch(lead.core.order[0])
	w.press(w.crowd(80, at(lead)), 2*time.Second)
	w.run(time.Second)
	if lead.core.fit() {
		t.Fatal("the node has not noticed that its disk is full")
	}
	used := lead.core.order[0].Rights().InUse
	w.press(w.crowd(30, at(lead)), 2*time.Second)
	if now := lead.core.order[0].Rights().InUse; now > used {
		t.Errorf("the node has given %d tickets although its disk is full", now-used)
	}
	if got := w.counterOf("a"); got != mate {
		t.Error("the node with the full disk is the counter still")
	}
	for _, p := range inside {
		if v := w.ask(p); !v.Admit {
			t.Error("an admitted visitor was refused because of a full disk")
		}
	}
	w.mend(lead)
	w.run(2 * time.Minute)
	people := w.crowd(130, at(lead))
	if in := w.askAll(people); in < 98 || in > 100 {
		t.Errorf("%d of 130 were let in after room was made, want 100 or nearly", in)
	}
	w.holds(100, 10_000, "at the end")
}

// TestAClockThatIsOffStopsTickets tells a node that its clock is off.
func TestAClockThatIsOffStopsTickets(t *testing.T) {
	w := newWorld(t, escrowSettings(100), "a")
	m := w.nodes[0]
	w.post(m, m.core.SetClock(false, -time.Second, w.now))
	if in := w.askAll(w.crowd(10, at(m))); in != 0 {
		t.Errorf("%d were let in by a node whose clock is off", in)
	}
	w.post(m, m.core.SetClock(true, 0, w.now))
	w.run(time.Second)
	if in := w.askAll(w.crowd(10, at(m))); in != 10 {
		t.Errorf("%d of 10 were let in after the clock was right again", in)
	}
}

// TestLimitsAreFollowed raises and lowers the limits at a node that is not the
// minter.
func TestLimitsAreFollowed(t *testing.T) {
	w := newWorld(t, escrowSettings(100), "a", "b")
	w.run(10 * time.Second)
	set := func(m *machine, total int) {
		t.Helper()
		if err := m.core.Configure(escrowSettings(total), w.now); err != nil {
			t.Fatal(err)
		}
	}
	set(w.nodes[1], 160)
	w.run(10 * time.Second)
	w.holds(160, 10_000, "after the limit was raised")
	people := w.crowd(200, w.spread)
	if peak := w.press(people, 10*time.Second); peak > 160 || peak < 158 {
		t.Errorf("%d are inside, want 160 or nearly", peak)
	}
	set(w.nodes[1], 40)
	w.run(2 * time.Second)
	if in := w.askAll(w.crowd(10, w.spread)); in != 0 {
		t.Errorf("%d were let in above the new limit", in)
	}
	w.run(80 * time.Second) // nobody asks again, so that all go
	w.holds(40, 10_000, "after the limit was lowered")
	if peak := w.press(w.crowd(100, w.spread), 30*time.Second); peak > 40 || peak < 39 {
		t.Errorf("%d are inside, want 40 or nearly", peak)
	}
}

// TestANodeLeaves has a node leave with visitors of its own inside.
func TestANodeLeaves(t *testing.T) {
	s := escrowSettings(90)
	w := newWorld(t, s, "a", "a", "a")
	w.run(20 * time.Second)
	people := w.crowd(60, w.spread)
	if in := w.askAll(people); in != 60 {
		t.Fatalf("%d of 60 were let in", in)
	}
	w.run(2 * time.Second)
	leaver := w.nodes[1]
	if err := leaver.core.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		w.run(100 * time.Millisecond)
		if leaver.core.Left() {
			break
		}
	}
	if !leaver.core.Left() {
		t.Fatal("the node has not left within 5 s")
	}
	w.kill(leaver)
	for _, p := range people {
		if p.at == leaver {
			p.at = w.nodes[0]
		}
	}
	w.run(5 * time.Second)
	peak := 0
	for range 8 { // they come again, and stay inside with the heir as their anchor
		for _, p := range people {
			if v := w.ask(p); !v.Admit {
				t.Errorf("%s, of anchor %d, was refused after a node had left", p.name, p.pass.Ticket.Anchor[0])
			}
		}
		w.run(10 * time.Second)
		peak = max(peak, w.active(people))
	}
	if in := w.press(append(people, w.crowd(60, at(w.nodes[2]))...), 90*time.Second); max(in, peak) > 90 {
		t.Errorf("%d were inside at most, the limit is 90", in)
	}
	w.run(3 * time.Minute)
	if held, _ := w.rights(); held.Places != 90 || held.Rate != 10_000 {
		t.Errorf("those who stay hold %+v, want all", held)
	}
}

// TestRightsOfALostDiskComeBack declares a node dead whose disk is gone.
func TestRightsOfALostDiskComeBack(t *testing.T) {
	s := escrowSettings(90)
	w := newWorld(t, s, "a", "a", "b")
	w.run(20 * time.Second)
	people := w.crowd(45, w.spread)
	w.askAll(people)
	lost := w.nodes[0] // the minter at that
	w.kill(lost)
	if err := w.nodes[2].core.DeclareDead(crdt.NodeID{9}, w.now); err == nil {
		t.Error("a node that nobody knows was declared dead")
	}
	if err := w.nodes[2].core.DeclareDead(w.nodes[1].id, w.now); err == nil {
		t.Error("a living node was declared dead")
	}
	w.run(5 * time.Second)
	if err := w.nodes[2].core.DeclareDead(lost.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(4 * time.Minute)
	if held, _ := w.rights(); held.Places != 90 || held.Rate != 10_000 {
		t.Errorf("those who live hold %+v, want all", held)
	}
	if peak := w.press(w.crowd(120, func(i int) *machine { return w.nodes[1+i%2] }), 30*time.Second); peak > 90 || peak < 88 {
		t.Errorf("%d are inside, want 90 or nearly", peak)
	}
	set := escrowSettings(50)
	if err := w.nodes[1].core.Configure(set, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Minute)
	if held, _ := w.rights(); held.Places != 50 {
		t.Errorf("%d are held after the limit was lowered, want 50: the heir of the minter mints", held.Places)
	}
}

// TestALeaverWhoseHeirIsLost has the heir of a node that leaves die before it has
// taken over.
func TestALeaverWhoseHeirIsLost(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "b", "c")
	w.run(20 * time.Second)
	leaver := w.nodes[1]
	if err := leaver.core.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	w.lose = func(l letter) bool { return l.m.Kind == kindHandover }
	w.run(time.Second)
	heir := w.machine(leaver.core.leave.heir)
	if heir == nil {
		t.Fatal("nobody has agreed to take over within a second")
	}
	w.lose = nil
	stays := w.nodes[0]
	if heir == stays {
		stays = w.nodes[2]
	}
	w.kill(heir)
	w.run(5 * time.Second)
	if leaver.core.Left() {
		t.Fatal("a node has left although nobody has its rights")
	}
	if err := stays.core.DeclareDead(heir.id, w.now); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		w.run(100 * time.Millisecond)
		if leaver.core.Left() {
			break
		}
	}
	if !leaver.core.Left() {
		t.Fatal("the node has not left 10 s after its heir was declared dead")
	}
	w.kill(leaver)
	w.run(3 * time.Minute)
	if held := stays.core.order[0].Rights().Held; held != (ticket.Amount{Places: 90, Rate: 10_000}) {
		t.Errorf("who stays holds %+v, want all", held)
	}
}
