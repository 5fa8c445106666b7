package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
)

// act has an operator do something at a node, and waits as Node does until it is answered. It
// returns who does not have it on disk by then.
func (w *world) act(m *machine, do func(c *Core, now time.Time) error) (late []crdt.NodeID) {
	w.t.Helper()
	a, err := m.core.Do(do, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	w.post(m, nil)
	for begun := w.now; w.now.Sub(begun) <= spreadPatience; w.run(10 * time.Millisecond) {
		var now bool
		if late, now = m.core.Answers(a, w.now.Sub(begun)); m.core.Noted(a.told) && now {
			return late
		}
	}
	w.t.Fatal("it is not on the disk of the node that was asked")
	return late
}

// change is act for a change of a room.
func (w *world) change(m *machine, id crdt.RoomID, change func(*catalog.Room)) []crdt.NodeID {
	w.t.Helper()
	return w.act(m, func(c *Core, now time.Time) error {
		return c.Edit(func(cat *catalog.Catalog) ([]catalog.Write, error) {
			is := cat.Room(id).Clone()
			change(is)
			return cat.Writes(cat.Room(id), is), nil
		}, now)
	})
}

// TestPairsOfChangesByTurns has one operator change two fields of a room, each at another node and
// the second at once when the first is answered: whoever is asked next shows both.
func TestPairsOfChangesByTurns(t *testing.T) {
	for _, sites := range [][]string{{"a", "a"}, {"a", "b"}, {"a", "a", "b", "b"}} {
		t.Run(fmt.Sprint(sites), func(t *testing.T) {
			w := newCatalogWorld(t, escrowSettings(50), sites...)
			w.delay = 40 * time.Millisecond
			for _, m := range w.nodes {
				m.disk.delay = 30 * time.Millisecond
			}
			lost := 0
			for i := range 200 {
				x, y, z := w.nodes[i%len(sites)], w.nodes[(i+1)%len(sites)], w.nodes[(i+2)%len(sites)]
				if late := w.change(x, roomID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 100 + i }); len(late) > 0 {
					t.Fatalf("change %d: not yet at %v, and all nodes are well", i, late)
				}
				w.change(y, roomID, func(r *catalog.Room) { r.Settings.NewUsersPerMinute = 1000 + i })
				is := z.core.Catalog().Room(roomID).Settings
				if is.TotalActiveUsers != 100+i || is.NewUsersPerMinute != 1000+i {
					lost++
				}
			}
			if lost > 0 {
				t.Errorf("%d of 200 pairs do not show at the node that was asked next", lost)
			}
		})
	}
}

// onDisk reports whether a machine would find a key again after a crash.
func (m *machine) onDisk(key string) bool {
	return m.disk.keys[[2]string{factsObject, "w/" + key}] != nil
}

// TestAnAnswerIsOnOtherDisks makes a thousand changes at three nodes whose network and disks are
// bad, and has nodes lose their disks just after they have answered. Whoever an answer does not
// name has the change on its disk.
func TestAnAnswerIsOnOtherDisks(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(50), "a", "a", "b")
	w.lose = func(letter) bool { return w.rng.IntN(4) == 0 }
	var sure []string
	named := 0
	for i := range 1000 {
		key, n := fmt.Sprintf("test/%d", i), w.rng.IntN(len(w.nodes))
		x := w.nodes[n]
		for _, m := range w.nodes {
			m.disk.delay = time.Duration(w.rng.IntN(60)) * time.Millisecond
		}
		stuck := w.nodes[(n+1)%len(w.nodes)]
		if i%40 == 20 {
			stuck.disk.delay = 3 * time.Second
		}
		late := w.act(x, func(c *Core, now time.Time) error { return c.replica.Set(key, []byte("v"), now) })
		for _, m := range w.nodes {
			if !slices.Contains(late, m.id) && !m.onDisk(key) {
				t.Fatalf("change %d at %s is answered, names %v, and is not on the disk of %s", i, x.id, late, m.id)
			}
		}
		if len(late) > 0 {
			named++
		}
		if len(late) < len(w.nodes)-1 {
			sure = append(sure, key)
		}
		if i%100 == 99 {
			w.replace(x, byte(10+i/100))
		}
	}
	w.lose = nil
	w.run(20 * time.Second)
	for _, m := range w.nodes {
		for _, key := range sure {
			if _, _, ok := m.core.replica.Get(key); !ok {
				t.Fatalf("%s does not know %s, which was answered as being on a second disk", m.id, key)
			}
		}
	}
	if named == 0 || len(sure) < 900 {
		t.Errorf("%d answers named a node, and %d of 1000 were on a second disk; want some, and nearly all", named, len(sure))
	}
}

// replace kills a node, deletes its disk, and starts another one in its place. The operator
// declares it dead.
func (w *world) replace(m *machine, id byte) {
	w.t.Helper()
	w.kill(m)
	dead := m.id
	*m = machine{id: crdt.NodeID{id, 0xbb}, site: m.site}
	w.start(m, escrowSettings(50))
	for !m.core.Ready() {
		w.run(100 * time.Millisecond)
	}
	w.members()
	for _, o := range w.nodes {
		if o != m {
			if err := o.core.DeclareDead(dead, w.now); err != nil {
				w.t.Fatal(err)
			}
			break
		}
	}
	w.run(5 * time.Second)
}

// TestSettledIsOnAllDisks says that something may be forgotten once all nodes that exist have it,
// be they in reach or not.
func TestSettledIsOnAllDisks(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(50), "a", "a", "b")
	x, away := w.nodes[0], w.nodes[2]
	w.kill(away)
	if err := x.core.replica.Set("test/x", []byte("v"), w.now); err != nil {
		t.Fatal(err)
	}
	_, at, _ := x.core.replica.Get("test/x")
	settled := func() bool {
		x.core.replica.Survey()
		w.run(5 * time.Second)
		return x.core.Settled(at)
	}
	if settled() {
		t.Error("it is settled, and a node that exists has never heard of it")
	}
	w.start(away, escrowSettings(50))
	w.run(5 * time.Second)
	if !settled() {
		t.Error("all nodes have had it on disk for seconds, and it is not settled")
	}
}

// TestALeaverShowsWhatIsChanged asks a node that passes its rights on: it takes nothing up any
// more, and what it shows operators is not of yesterday.
func TestALeaverShowsWhatIsChanged(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(50), "a", "a")
	leaver := w.nodes[1]
	leaver.core.leave.on = true
	if late := w.change(w.nodes[0], roomID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 77 }); len(late) > 0 {
		t.Errorf("the change is not yet at %v", late)
	}
	if is := leaver.core.Catalog().Room(roomID).Settings.TotalActiveUsers; is != 77 {
		t.Errorf("the node that leaves shows a limit of %d, want 77", is)
	}
}

// TestTheFirstNodeOfASiteKnowsAllRooms starts a node in a new site of a mesh with 300 rooms that
// operators have made, 40 of them with a page of 60 KB: it is not ready before it has all of them.
func TestTheFirstNodeOfASiteKnowsAllRooms(t *testing.T) {
	w := newCatalogWorld(t, elsewhere(10), "a", "a", "b")
	rooms, pages := 300, 40
	if testing.Short() {
		rooms, pages = 60, 10
	}
	for i := range rooms {
		s := shopSettings(10 + i)
		s.ID, s.Name = crdt.RoomID{0xcc, byte(i), byte(i >> 8)}, fmt.Sprint("room", i)
		s.Host, s.CookieSuffix = fmt.Sprintf("shop%d", i), fmt.Sprint("s", i)
		if i < pages {
			s.Front.CustomPage = strings.Repeat(fmt.Sprintf("<p>%06d", i), 60_000/9)
		}
		w.edit(w.nodes[i%3], s.ID, func(r *catalog.Room) { r.Settings, r.Settings.QueueAll = s, true })
		if i%10 == 0 {
			w.run(100 * time.Millisecond)
		}
	}
	w.run(5 * time.Second)
	x := &machine{id: crdt.NodeID{0x77, 0xbb}, site: "c"}
	w.nodes = append(w.nodes, x)
	w.start(x, elsewhere(10))
	for begun := w.now; !x.core.Ready(); w.run(10 * time.Millisecond) {
		if w.now.Sub(begun) > 10*time.Second {
			t.Fatalf("it is not ready after 10 s: it waits for %v", x.core.replica.FillsFrom())
		}
	}
	for i := range rooms {
		r := x.core.Route(fmt.Sprintf("shop%d", i), "/")
		switch {
		case r == nil:
			t.Fatalf("it is ready, and has no room for shop%d", i)
		case !r.Settings().QueueAll || i < pages && len(r.Settings().Front.CustomPage) < 50_000:
			t.Fatalf("it is ready, and the room for shop%d is not as operators have set it", i)
		}
	}
}

// TestANodeThatConfirmsNothingIsWaitedForOnce: one whose loop hangs is a member for as long as its links answer.
func TestANodeThatConfirmsNothingIsWaitedForOnce(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(50), "a", "a", "b")
	w.delay = 40 * time.Millisecond
	hung := w.nodes[2]
	hangs := true
	w.lose = func(l letter) bool { return hangs && l.from == hung.id } // it says nothing, and hears no question
	limit := 100
	takes := func() (time.Duration, bool) {
		begun := w.now
		limit++
		late := w.change(w.nodes[0], roomID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = limit })
		return w.now.Sub(begun), slices.Equal(late, []crdt.NodeID{hung.id})
	}
	for i := range 6 {
		took, named := takes()
		if want := slowPatience + 100*time.Millisecond; !named || took > want != (i == 0) {
			t.Errorf("change %d took %v, names the node that hangs: %v; want %v at most for all but the first", i+1, took, named, want)
		}
	}
	hangs = false
	took, named := takes() // it may be a moment until it is told again
	w.run(2 * time.Second)
	again, stillNamed := takes()
	t.Logf("once it goes on: %v, %v; then %v, %v", took, named, again, stillNamed)
	if stillNamed || again > 200*time.Millisecond {
		t.Errorf("a change that all nodes have took %v, names the node that hung: %v", again, stillNamed)
	}
	hangs = true
	if took, named := takes(); !named || took < spreadPatience {
		t.Errorf("it hangs again: %v, named: %v; want to be waited for", took, named)
	}
}
