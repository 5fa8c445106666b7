package node

import (
	"errors"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
)

// restart has a node stop, and start with a clock that is ahead by so much.
func (w *world) restart(m *machine, ahead time.Duration) {
	w.t.Helper()
	w.kill(m)
	m.ahead = ahead
	w.start(m, shopSettings(100))
}

func (w *world) suspend(m *machine, id crdt.RoomID) {
	w.t.Helper()
	w.edit(m, id, func(r *catalog.Room) { r.Settings.Suspended = true })
}

// TestAClockThatWasAheadLosesNothing: a node that nobody reaches takes changes with a clock that is ahead. Once others
// are there it takes none any more. Once it has started with the right one, all
// agree within 10 s, on its changes and on those that were made elsewhere since.
func TestAClockThatWasAheadLosesNothing(t *testing.T) {
	for _, ahead := range []time.Duration{10 * time.Second, 10 * time.Minute, 12 * time.Hour} {
		w := newStoppedWorld(t)
		w.catalog, w.clocks = true, true
		w.begin(shopSettings(100), "a", "a", "b")
		a1, b1 := w.nodes[0], w.nodes[2]
		second, third := shopSettings(50), shopSettings(60)
		second.ID, second.Name, second.Path = crdt.RoomID{8}, "second", "/second"
		second.CookieSuffix, third.CookieSuffix = "2", "3"
		third.ID, third.Name, third.Path = crdt.RoomID{9}, "third", "/third"
		w.add(a1, second)
		w.run(3 * time.Second)

		w.cut = true
		w.restart(b1, ahead)
		w.run(15 * time.Second)
		w.add(b1, third)
		w.suspend(b1, second.ID)
		w.edit(b1, shopSettings(1).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 300 })
		w.run(5 * time.Second)
		w.edit(a1, shopSettings(1).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 20 }) // which is later, and stays
		w.cut = false
		w.members()
		w.run(5 * time.Second)
		if err := b1.core.Edit(nil, w.at(b1)); !errors.Is(err, ErrClock) {
			t.Errorf("%v ahead: a change at the node that is: %v, want %v", ahead, err, ErrClock)
		}

		w.bothSay(b1, ahead)

		w.restart(b1, 0)
		w.run(10 * time.Second)
		w.agree()
		if !b1.core.Ready() {
			t.Errorf("%v ahead: the node is not ready 10 s after its clock was right", ahead)
		}
		for id, want := range map[crdt.RoomID]int{shopSettings(1).ID: 20, second.ID: 50, third.ID: 60} {
			r := a1.core.rooms[id]
			if r == nil {
				t.Errorf("%v ahead: room %s is not known where the clock was right", ahead, id)
			} else if got := r.settings.Load(); got.TotalActiveUsers != want || got.Suspended != (id == second.ID) {
				t.Errorf("%v ahead: room %s has limit %d, suspended: %v; want %d", ahead, id, got.TotalActiveUsers, got.Suspended, want)
			}
		}
		w.edit(b1, third.ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 70 })
		w.run(2 * time.Second)
		w.agree()
	}
}

// TestTwoClocksThatWereAheadLoseNothing: a node that nobody reaches takes changes with a clock that is ahead, and starts
// with one that is ahead by more, before it starts with the right one. What it wrote with the first was not written as long before what it wrote
// with the second as the stamps say. All agree on it, and on what was changed elsewhere, before and after.
func TestTwoClocksThatWereAheadLoseNothing(t *testing.T) {
	for _, right := range []bool{false, true} { // it also starts with that in between
		w := newStoppedWorld(t)
		w.catalog, w.clocks = true, true
		w.begin(shopSettings(100), "a", "a", "b")
		a1, b1, shop := w.nodes[0], w.nodes[2], shopSettings(1).ID
		third := shopSettings(60)
		third.ID, third.Name, third.Path, third.CookieSuffix = crdt.RoomID{9}, "third", "/third", "3"
		w.edit(b1, shop, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 90 })
		w.run(time.Second)

		w.cut = true
		w.run(time.Second)
		w.edit(a1, shop, func(r *catalog.Room) { r.Settings.NewUsersPerMinute = 70 }) // which is earlier, and does not stay
		for _, ahead := range []time.Duration{10 * time.Minute, 0, 12 * time.Hour} {
			if ahead == 0 && !right {
				continue
			}
			w.restart(b1, ahead)
			w.run(15 * time.Second)
			if ahead == 10*time.Minute {
				w.add(b1, third)
				w.edit(b1, shop, func(r *catalog.Room) { r.Settings.TotalActiveUsers, r.Settings.NewUsersPerMinute = 300, 80 })
				w.run(5 * time.Second)
			}
		}
		w.edit(a1, shop, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 20 }) // which is later, and stays
		w.run(time.Second)
		w.restart(b1, 0)
		w.cut = false
		w.members()
		w.run(10 * time.Second)
		w.agree()
		if r := a1.core.rooms[third.ID]; r == nil {
			t.Errorf("right in between: %v: a room made there is not known where the clock was right", right)
		}
		if got := a1.core.rooms[shop].settings.Load(); got.TotalActiveUsers != 20 || got.NewUsersPerMinute != 80 {
			t.Errorf("right in between: %v: the limits are %d and %d, want 20 and 80", right, got.TotalActiveUsers, got.NewUsersPerMinute)
		}
	}
}

// bothSay looks at what the nodes of the other site say of one whose clock is ahead, and the other way round. What
// crosses sites goes from relay to relay, so that one of them is enough.
func (w *world) bothSay(wrong *machine, ahead time.Duration) {
	w.t.Helper()
	if ahead <= 12*time.Second {
		return // what it counts is believed
	}
	for _, right := range w.nodes {
		here, _ := right.core.refusals.status(wrong.id)
		_, there := wrong.core.refusals.status(right.id)
		if here != nil && there != nil && here.Reason == "clock" && there.Reason == "clock" {
			return
		}
	}
	w.t.Errorf("%v ahead: no two nodes say that what it says is refused because of its clock", ahead)
}

// TestAClockThatIsAheadKeepsANodeClosed: where others can be reached it never opens, and so writes nothing.
func TestAClockThatIsAheadKeepsANodeClosed(t *testing.T) {
	w := newStoppedWorld(t)
	w.catalog, w.clocks = true, true
	w.begin(shopSettings(100), "a", "a", "b")
	b1 := w.nodes[2]
	written := b1.core.replica.Written()
	w.restart(b1, 10*time.Minute)
	w.run(time.Minute)
	if b1.core.Ready() || b1.core.replica.Written() != written {
		t.Errorf("a node with a clock that is ahead is open: %v, and has written: %v", b1.core.Ready(), b1.core.replica.Written() != written)
	}
	w.bothSay(b1, 10*time.Minute)
	if err := b1.core.Edit(nil, w.at(b1)); !errors.Is(err, ErrNotReady) {
		t.Errorf("a change there: %v, want %v", err, ErrNotReady)
	}
	w.restart(b1, 0)
	w.run(10 * time.Second)
	w.edit(b1, shopSettings(1).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 30 })
	w.run(2 * time.Second)
	w.agree()
}

// TestAMeshWhoseClocksWereAhead: all of them were, by as much, and are set one after the other.
func TestAMeshWhoseClocksWereAhead(t *testing.T) {
	w := newStoppedWorld(t)
	w.catalog, w.clocks = true, true
	w.begin(shopSettings(100), "a", "a", "b")
	for _, m := range w.nodes {
		w.kill(m)
	}
	for _, m := range w.nodes {
		m.ahead = 10 * time.Minute
		w.start(m, shopSettings(100))
	}
	w.run(15 * time.Second)
	w.edit(w.nodes[1], shopSettings(1).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 40 })
	w.run(3 * time.Second)
	for _, m := range w.nodes {
		w.restart(m, 0)
		w.run(3 * time.Second)
	}
	w.run(10 * time.Second)
	w.agree()
	for i, m := range w.nodes {
		if !m.core.Ready() {
			t.Fatalf("node %d is not ready", i+1)
		}
		w.edit(m, shopSettings(1).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 50 + i })
		w.run(2 * time.Second)
		w.agree()
		if got := w.nodes[0].core.rooms[shopSettings(1).ID].settings.Load().TotalActiveUsers; got != 50+i {
			t.Errorf("after a change at node %d the limit is %d", i+1, got)
		}
	}
}

// TestAChangeOfAnUnsureTimeIsRefused: a node is cut off, starts with a clock that is ahead, and again with the right
// one. It reaches no node that knows which was right, and what it wrote now would win over what others change later.
func TestAChangeOfAnUnsureTimeIsRefused(t *testing.T) {
	w := newStoppedWorld(t)
	w.catalog, w.clocks = true, true
	w.begin(shopSettings(100), "a", "a", "b")
	a1, b1 := w.nodes[0], w.nodes[2]
	w.cut = true
	w.restart(b1, 10*time.Second)
	w.run(15 * time.Second)
	w.edit(b1, shopSettings(1).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 30 })
	w.run(time.Second)
	w.restart(b1, 0)
	w.run(time.Second)
	for !b1.core.Ready() {
		w.run(100 * time.Millisecond)
	}
	if err := b1.core.Edit(nil, w.at(b1)); !errors.Is(err, ErrTime) {
		t.Errorf("a change while two clocks say two times: %v, want %v", err, ErrTime)
	}
	w.cut = false
	w.members()
	w.run(3 * time.Second)
	w.edit(b1, shopSettings(1).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 40 })
	w.run(2 * time.Second)
	w.edit(a1, shopSettings(1).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 50 })
	w.run(2 * time.Second)
	w.agree()
	if got := b1.core.rooms[shopSettings(1).ID].settings.Load().TotalActiveUsers; got != 50 {
		t.Errorf("the last change, to 50, is overruled by an earlier one: %d", got)
	}
}

// TestOneNodeAloneGoesByItsClock: nobody else could say what time it is, so what it wrote by a clock that was ahead is put back at once.
func TestOneNodeAloneGoesByItsClock(t *testing.T) {
	w := newStoppedWorld(t)
	w.catalog, w.clocks = true, true
	w.begin(shopSettings(100), "a")
	w.restart(w.nodes[0], 12*time.Hour)
	w.run(15 * time.Second)
	w.edit(w.nodes[0], shopSettings(1).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 30 })
	w.run(time.Second)
	w.restart(w.nodes[0], 0)
	for !w.nodes[0].core.Ready() {
		w.run(100 * time.Millisecond)
	}
	w.edit(w.nodes[0], shopSettings(1).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 40 })
	if is := w.nodes[0].core.replica; is.Ahead(w.at(w.nodes[0])) {
		t.Error("it has written something that is of a time to come")
	}
}
