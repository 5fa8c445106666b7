package node

import (
	"maps"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestARoomWhereOneWasDeletedWaits: whom a room let in counts for a minute among its new users, also
// when the room is deleted, so one that is made in its place lets nobody in before that is over,
// at once or later, at the same node or another, with restarts or without, and wherever it stands.
func TestARoomWhereOneWasDeletedWaits(t *testing.T) {
	for _, c := range []struct {
		name      string
		pause     time.Duration // from the deletion until the other room is made
		by        int           // which node makes it
		elsewhere bool
		restart   bool // of who made it, soon after
		waits     bool
	}{
		{name: "at once", waits: true},
		{name: "half a minute later, at another node", pause: 30 * time.Second, by: 1, waits: true},
		{name: "its maker restarts", by: 2, restart: true, waits: true},
		{name: "elsewhere", elsewhere: true, waits: true},
		{name: "after a minute", pause: ticket.NewFor + time.Second},
	} {
		first := shopSettings(100)
		first.NewUsersPerMinute = 20
		next := first
		next.ID = crdt.RoomID{0xdd, 1}
		if c.elsewhere {
			first.Host, first.CookieSuffix = "elsewhere", "elsewhere"
		}
		w := newCatalogWorld(t, first, "a", "a", "b")
		w.run(ticket.NewFor + 5*time.Second) // a node that has just started does not know where the room has stood
		if !c.elsewhere && w.askAll(w.crowd(30, w.spread)) != 20 {
			t.Fatalf("%s: the first room lets in others than 20", c.name)
		}
		w.edit(w.nodes[0], first.ID, nil)
		deleted, maker := w.now, w.nodes[c.by]
		w.run(c.pause)
		for maker.core.Catalog().Room(first.ID) != nil {
			w.run(100 * time.Millisecond) // until it has heard
		}
		heard := deleted
		if c.by != 0 {
			heard = deleted.Add(time.Second)
		}
		w.add(maker, next)
		if w.run(3 * time.Second); c.restart {
			w.kill(maker)
			w.start(maker, first)
			w.run(3 * time.Second)
			heard = w.now
		}
		from := maker.core.Route("shop", "/").Rights().MintsFrom
		if early, late := from.Before(deleted.Add(ticket.NewFor)), from.After(heard.Add(ticket.NewFor)); c.waits && (early || late) || !c.waits && !from.IsZero() {
			t.Errorf("%s: rights are said to be made from %v on, %v after the deletion", c.name, from, from.Sub(deleted))
		}
		people := w.crowd(40, w.spread)
		if in := w.press(people, 10*time.Second); c.waits && in > 0 || !c.waits && in != 20 {
			t.Errorf("%s: %d came into the second room at once", c.name, in)
		}
		if !c.waits {
			continue
		}
		if left := deleted.Add(ticket.NewFor).Sub(w.now); w.press(people, left-time.Second) > 0 {
			t.Errorf("%s: somebody came into the second room within a minute", c.name)
		}
		if in := w.press(people, 15*time.Second); in != 20 {
			t.Errorf("%s: %d came into the second room when the minute was over, want 20", c.name, in)
		}
	}
}

// TestADeletionByAClockThatIsAhead closes no room for longer.
func TestADeletionByAClockThatIsAhead(t *testing.T) {
	w := newCatalogWorld(t, elsewhere(40), "a")
	c := w.nodes[0].core
	if err := c.replica.Set(roomKey(factRetired, crdt.RoomID{99}), []byte{factVersion}, w.now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.run(ticket.NewFor)
	w.add(w.nodes[0], shopSettings(20))
	w.run(5 * time.Second)
	if is := c.Route("shop", "/").Rights(); is.MintedByAll.Places != 20 {
		t.Errorf("%d places are minted, want 20", is.MintedByAll.Places)
	}
}

// TestARoomWhereOneWasMovedAndDeletedWaits: a node that was down hears at once that a room was moved
// and that it was deleted, and makes another one where it has never seen the first.
func TestARoomWhereOneWasMovedAndDeletedWaits(t *testing.T) {
	first := shopSettings(100)
	first.NewUsersPerMinute = 20
	first.Host, first.CookieSuffix = "elsewhere", "elsewhere"
	w := newCatalogWorld(t, first, "a", "a", "a")
	w.run(20 * time.Second)
	maker := w.nodes[2]
	w.kill(maker)
	w.run(5 * time.Second)
	w.edit(w.nodes[0], first.ID, func(r *catalog.Room) { r.Settings.Host, r.Settings.CookieSuffix = "shop", "shop" })
	w.run(3 * time.Second)
	people := w.crowd(40, func(int) *machine { return w.nodes[0] })
	in := w.press(people, 5*time.Second)
	w.edit(w.nodes[0], first.ID, nil)
	w.run(2 * time.Second)
	w.start(maker, first)
	for !maker.core.Ready() || maker.core.Catalog() == nil || maker.core.Catalog().Room(first.ID) != nil {
		w.run(100 * time.Millisecond)
	}
	next := shopSettings(100)
	next.NewUsersPerMinute = 20
	next.ID = crdt.RoomID{0xdd, 1}
	w.add(maker, next)
	w.run(3 * time.Second)
	more := w.crowd(40, func(int) *machine { return w.nodes[0] })
	got := w.press(more, 10*time.Second)
	if in == 0 || in+got > 20 {
		t.Errorf("%d were let in by the first room and %d by the second within a minute, want some by the first, and 20 at most", in, got)
	}
}

// TestARoomDeletedByAClockThatIsOff: the clock of the node at which a room is deleted is off, as after a
// machine was suspended. The room is made again at another node, which may restart. No more than one room's rate
// come in a minute, and the room opens when it is over.
func TestARoomDeletedByAClockThatIsOff(t *testing.T) {
	for _, c := range []struct {
		name    string
		behind  time.Duration
		restart bool
	}{
		{"right", 0, false},
		{"right, with a restart", 0, true},
		{"behind by two minutes", 2 * time.Minute, false},
		{"behind by two minutes, with a restart", 2 * time.Minute, true},
		{"behind by a day", 24 * time.Hour, false},
		{"ahead", -400 * time.Millisecond, false},
	} {
		w := newCatalogWorld(t, elsewhere(40), "a", "a", "b")
		first := shopSettings(500)
		first.NewUsersPerMinute = 30
		w.add(w.nodes[0], first)
		w.run(5 * time.Minute)
		in := w.press(w.crowd(100, w.spread), 10*time.Second)
		now := w.now
		w.now = now.Add(-c.behind)
		w.edit(w.nodes[1], first.ID, nil)
		w.now = now
		w.run(2 * time.Second)
		if c.restart {
			w.kill(w.nodes[0])
			w.start(w.nodes[0], elsewhere(40))
			w.run(3 * time.Second)
		}
		next := first
		next.ID = crdt.RoomID{0xdd, 1}
		w.add(w.nodes[0], next)
		w.run(2 * time.Second)
		others := w.crowd(100, w.spread)
		if soon := w.press(others, 40*time.Second); in != 30 || soon > 0 {
			t.Errorf("%s: %d came, and then %d into the second room, of 30 a minute, within 60 s", c.name, in, soon)
		}
		if late := w.press(others, 30*time.Second); late != 30 {
			t.Errorf("%s: %d came into the second room when the minute was over, want 30", c.name, late)
		}
	}
}

// TestARoomMovedBeforeAStartWaits: a room is moved, a node starts, and then the room is deleted. That node
// makes another one where the first has stood before it started.
func TestARoomMovedBeforeAStartWaits(t *testing.T) {
	first := shopSettings(100)
	first.NewUsersPerMinute = 20
	w := newCatalogWorld(t, first, "a", "a", "a")
	w.run(2 * time.Minute)
	in := w.press(w.crowd(40, w.spread), 5*time.Second)
	w.edit(w.nodes[0], first.ID, func(r *catalog.Room) { r.Settings.Host, r.Settings.CookieSuffix = "elsewhere", "elsewhere" })
	w.run(2 * time.Second)
	maker := w.nodes[2]
	w.kill(maker)
	w.start(maker, first)
	w.run(5 * time.Second)
	w.edit(w.nodes[0], first.ID, nil)
	w.run(2 * time.Second)
	next := first
	next.ID = crdt.RoomID{0xdd, 1}
	w.add(maker, next)
	w.run(3 * time.Second)
	more := w.crowd(40, w.spread)
	if soon := w.press(more, 30*time.Second); in != 20 || soon > 0 {
		t.Errorf("%d came into the first room and %d into the second within a minute, of 20", in, soon)
	}
	if late := w.press(more, time.Minute); late != 20 {
		t.Errorf("%d came into the second room when the minute was over, want 20", late)
	}
}

// deletedWorld is a mesh of three nodes that has run for long enough. Of what the others tell, the first hears nothing
// while it is deaf.
func deletedWorld(t *testing.T) (w *world, deaf func(bool)) {
	w = newCatalogWorld(t, elsewhere(40), "a", "a", "a")
	w.run(3 * time.Minute)
	return w, func(on bool) {
		w.lose = nil
		if on {
			w.lose = func(l letter) bool { return l.m.Kind == kindReplica && l.to == w.nodes[0].id }
		}
	}
}

// nextInPlace has the first node make another room where one was deleted that had let visitors in, and fails if more come
// into both within a minute than into one, or if nobody comes when the minute is over.
func (w *world) nextInPlace(in int) {
	w.t.Helper()
	w.run(700 * time.Millisecond)
	maker := w.nodes[0]
	if maker.core.Catalog().Room(shopSettings(1).ID) != nil {
		w.t.Fatal("it has not heard")
	}
	next := shopSettings(100)
	next.NewUsersPerMinute, next.ID = 20, crdt.RoomID{0xdd, 1}
	w.add(maker, next)
	w.run(2 * time.Second)
	people := w.crowd(60, w.spread)
	if got := w.press(people, 20*time.Second); in == 0 || in+got > 20 {
		w.t.Errorf("%d came into the first room and %d into the second within a minute, of 20", in, got)
	}
	if late := w.press(people, time.Minute); late != 20 {
		w.t.Errorf("%d came into the second room when the minute was over, want 20", late)
	}
}

// TestARoomThatWasMovedAndDeletedAtOnce: a room is moved, lets visitors in, and is deleted. Another node, all whose messages are
// late by a second at most, hears both at once, and makes another room where it has never seen the first.
func TestARoomThatWasMovedAndDeletedAtOnce(t *testing.T) {
	w, deaf := deletedWorld(t)
	first := shopSettings(100)
	first.NewUsersPerMinute, first.Host, first.CookieSuffix = 20, "moves", "moves"
	w.add(w.nodes[1], first)
	w.run(2 * time.Minute)
	deaf(true)
	w.edit(w.nodes[1], first.ID, func(r *catalog.Room) { r.Settings.Host, r.Settings.CookieSuffix = "shop", "shop" })
	w.run(300 * time.Millisecond)
	people := w.crowd(40, func(int) *machine { return w.nodes[1] })
	w.askAll(people)
	in := w.active(people)
	w.edit(w.nodes[1], first.ID, nil)
	w.run(300 * time.Millisecond)
	deaf(false)
	w.nextInPlace(in)
}

// TestARoomThatWasMadeAndMovedAtOnce: a room is made, lets visitors in, is moved, and then deleted. Another node hears of it
// when it was moved.
func TestARoomThatWasMadeAndMovedAtOnce(t *testing.T) {
	w, deaf := deletedWorld(t)
	deaf(true)
	first := shopSettings(100)
	first.NewUsersPerMinute = 20
	w.add(w.nodes[1], first)
	w.run(300 * time.Millisecond)
	people := w.crowd(40, func(int) *machine { return w.nodes[1] })
	w.askAll(people)
	in := w.active(people)
	w.edit(w.nodes[1], first.ID, func(r *catalog.Room) { r.Settings.Host, r.Settings.CookieSuffix = "moves", "moves" })
	w.run(300 * time.Millisecond)
	deaf(false)
	w.run(2 * time.Second)
	w.edit(w.nodes[1], first.ID, nil)
	w.nextInPlace(in)
}

// TestARoomWhoseMoveWasHeardLate: a room is moved while a node is cut off, which lets visitors in where the room has stood. All have
// heard when the room is deleted, and another one is made where it has stood.
func TestARoomWhoseMoveWasHeardLate(t *testing.T) {
	w, _ := deletedWorld(t)
	first := shopSettings(100)
	first.NewUsersPerMinute = 20
	w.add(w.nodes[0], first)
	w.run(time.Minute)
	apart := w.nodes[1]
	w.cutOff = func(a, b *machine) bool { return (a == apart) != (b == apart) }
	w.members()
	w.edit(w.nodes[0], first.ID, func(r *catalog.Room) { r.Settings.Host, r.Settings.CookieSuffix = "moves", "moves" })
	w.run(90 * time.Second)
	in := w.askAll(w.crowd(6, func(int) *machine { return apart })) // its part of the rate
	w.cutOff = nil
	w.members()
	w.run(2 * time.Second)
	w.edit(w.nodes[0], first.ID, nil)
	w.nextInPlace(in)
}

// TestWhoMissesARoomHasHeardThatItWasDeleted, also where a message ends between the two: another room may be made there at once.
func TestWhoMissesARoomHasHeardThatItWasDeleted(t *testing.T) {
	w := newCatalogWorld(t, shopSettings(100), "a")
	w.run(5 * time.Second)
	id, replica := shopSettings(1).ID, w.nodes[0].core.replica
	before := maps.Collect(replica.Stamps())
	w.edit(w.nodes[0], id, nil)
	_, retired, ok := replica.Get(roomKey(factRetired, id))
	if !ok {
		t.Fatal("it is not told that the room is deleted")
	}
	gone := 0
	for key := range before {
		if _, at, there := replica.Get(key); catalog.IsKey(key) && !there {
			if gone++; at.Compare(retired) <= 0 {
				t.Errorf("%s is deleted at %v, and it is told at %v that the room is", key, at, retired)
			}
		}
	}
	if gone == 0 {
		t.Error("nothing of the room has gone")
	}
}

// TestDeletionsHoldARoomBackOnce: where rooms are deleted all the time, one that is made opens a minute later.
func TestDeletionsHoldARoomBackOnce(t *testing.T) {
	w, _ := deletedWorld(t)
	gone := shopSettings(100)
	gone.Name, gone.Host, gone.CookieSuffix = "gone", "gone", "gone"
	for i := range 5 {
		gone.ID = crdt.RoomID{0xee, byte(i)}
		w.add(w.nodes[1], gone)
		w.run(10 * time.Second)
		w.edit(w.nodes[1], gone.ID, nil)
		w.run(10 * time.Second)
		if i == 0 {
			next := shopSettings(100)
			next.NewUsersPerMinute, next.Name = 20, "next"
			w.add(w.nodes[0], next)
		}
	}
	if in := w.press(w.crowd(40, w.spread), 5*time.Second); in != 20 {
		t.Errorf("%d came in 80 s after the room was made, want 20", in)
	}
}
