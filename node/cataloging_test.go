package node

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// newCatalogWorld is newWorld in which rooms follow what operators set.
func newCatalogWorld(t *testing.T, s room.Settings, sites ...string) *world {
	t.Helper()
	w := newStoppedWorld(t)
	w.catalog = true
	w.begin(s, sites...)
	return w
}

// edit changes a room at one node; a nil change deletes it.
func (w *world) edit(m *machine, id crdt.RoomID, change func(*catalog.Room)) {
	w.t.Helper()
	err := m.core.Edit(func(c *catalog.Catalog) ([]catalog.Write, error) {
		was := c.Room(id)
		if change == nil {
			return c.Writes(was, nil), nil
		}
		is := &catalog.Room{Zone: catalog.DefaultZone, Created: w.at(m)}
		if was != nil {
			is = was.Clone()
		}
		change(is)
		if err := c.Check(is, nil); err != nil {
			return nil, err
		}
		return c.Writes(was, is), nil
	}, w.at(m))
	if err != nil {
		w.t.Fatal(err)
	}
	w.post(m, nil)
}

// add makes a room at one node.
func (w *world) add(m *machine, s room.Settings) {
	w.t.Helper()
	w.edit(m, s.ID, func(r *catalog.Room) { r.Settings = s })
}

// agree fails unless all nodes keep the same rooms with the same settings.
func (w *world) agree() {
	w.t.Helper()
	var first []room.Settings
	for i, m := range w.nodes {
		var all []room.Settings
		for _, r := range m.core.order {
			if !r.resting.Load() {
				all = append(all, *r.settings.Load())
			}
		}
		if i == 0 {
			first = all
		} else if !reflect.DeepEqual(all, first) {
			w.t.Errorf("node %d has rooms\n%+v\nand node 1 has\n%+v", i+1, all, first)
		}
	}
}

func shopSettings(total int) room.Settings {
	s := escrowSettings(total)
	s.ID, s.Name, s.Host, s.CookieSuffix = crdt.RoomID{0xcc, 1}, "shop", "shop", "shop"
	return s
}

func elsewhere(total int) room.Settings {
	s := escrowSettings(total)
	s.Host = "elsewhere"
	return s
}

// TestRoomIsMadeWhileNodesRun has an operator make a room at a node that founds nothing,
// have visitors come at all nodes, change its limits at others, and delete it.
func TestRoomIsMadeWhileNodesRun(t *testing.T) {
	w := newCatalogWorld(t, elsewhere(10), "a", "a", "b")
	for _, m := range w.nodes {
		if m.core.Route("shop", "/") != nil {
			t.Fatal("there is a room before it is made")
		}
	}
	w.add(w.nodes[2], shopSettings(40))
	w.run(2 * time.Second)
	w.agree()
	people := w.crowd(90, w.spread)
	if peak := w.press(people, 20*time.Second); peak != 40 {
		t.Errorf("%d were inside at most, want 40", peak)
	}
	w.edit(w.nodes[1], shopSettings(1).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 70 })
	w.run(2 * time.Second)
	w.agree()
	if peak := w.press(people, 20*time.Second); peak != 70 {
		t.Errorf("%d were inside at most, want 70", peak)
	}
	w.edit(w.nodes[0], shopSettings(1).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 20 })
	w.run(80 * time.Second) // all sessions are over
	w.agree()
	if peak := w.press(w.crowd(50, w.spread), 20*time.Second); peak != 20 {
		t.Errorf("%d were inside at most, want 20", peak)
	}
	w.edit(w.nodes[1], shopSettings(1).ID, nil)
	w.run(2 * time.Second)
	for i, m := range w.nodes {
		if m.core.Route("shop", "/") != nil {
			t.Errorf("node %d has a room that is deleted", i+1)
		}
		if n := len(m.core.order); n != 1 {
			t.Errorf("node %d keeps %d rooms, want 1", i+1, n)
		}
	}
}

// TestLimitsFollowTheNewestEdit edits so fast that nodes hear of the first change after
// the second was made: none of them may have what they say of limits undo it.
func TestLimitsFollowTheNewestEdit(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(50), "a", "b", "c")
	w.delay = 300 * time.Millisecond
	for i := range 10 {
		w.edit(w.nodes[i%3], roomID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 100 + i })
		w.run(100 * time.Millisecond)
	}
	w.run(5 * time.Second)
	w.agree()
	for i, m := range w.nodes {
		if got := m.core.order[0].Settings().TotalActiveUsers; got != 109 {
			t.Errorf("node %d: limit %d, want 109", i+1, got)
		}
	}
	w.holds(109, 10_000, "after ten edits")
}

// TestEditsOutlastRestarts kills all nodes at once after an edit is on disk.
func TestEditsOutlastRestarts(t *testing.T) {
	w := newCatalogWorld(t, elsewhere(10), "a", "b")
	w.add(w.nodes[1], shopSettings(30))
	w.edit(w.nodes[1], roomID, func(r *catalog.Room) { r.Settings.NewUsersPerMinute = 77 })
	told := w.nodes[1].core.Told()
	w.run(2 * time.Second)
	if !w.nodes[1].core.Noted(told) {
		t.Fatal("an edit is not on disk after 2 s")
	}
	for _, m := range w.nodes {
		w.kill(m)
	}
	for _, m := range w.nodes {
		w.start(m, elsewhere(10)) // the file is as it was
	}
	w.run(5 * time.Second)
	w.agree()
	if got := w.nodes[0].core.rooms[roomID].Settings().NewUsersPerMinute; got != 77 {
		t.Errorf("a restart with the same file has undone an edit: %d per minute, want 77", got)
	}
	w.run(70 * time.Second)
	if peak := w.press(w.crowd(50, w.spread), 20*time.Second); peak != 30 {
		t.Errorf("%d were inside at most, want 30", peak)
	}
}

// TestChangedFileIsBrought restarts one node with another limit in its file, and then the
// others with the file that they had.
func TestChangedFileIsBrought(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(40), "a", "b")
	w.run(5 * time.Second)
	w.kill(w.nodes[1])
	w.start(w.nodes[1], escrowSettings(60))
	w.run(5 * time.Second)
	w.kill(w.nodes[0])
	w.start(w.nodes[0], escrowSettings(40))
	w.run(5 * time.Second)
	w.agree()
	w.holds(60, 10_000, "after a restart with an old file")
	gone := w.nodes[0]
	w.kill(gone)
	gone.bare = true
	w.start(gone, room.Settings{})
	w.run(5 * time.Second)
	if left := gone.core.catalog.left; len(left) != 1 || left[0] != "test" {
		t.Errorf("rooms %q are said to be out of the file, want test", left)
	}
	w.agree()
	w.holds(60, 10_000, "without the room in a file")
}

// TestDeletedRoomStaysDeleted restarts nodes whose file still has a room.
func TestDeletedRoomStaysDeleted(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(40), "a", "b")
	w.edit(w.nodes[1], roomID, nil)
	w.run(2 * time.Second)
	late := &machine{id: crdt.NodeID{9, 0xaa}, site: "b"} // it never heard of the deletion
	for _, m := range w.nodes {
		w.kill(m)
		w.start(m, escrowSettings(40))
	}
	w.nodes = append(w.nodes, late)
	w.start(late, escrowSettings(40))
	w.run(10 * time.Second)
	w.agree()
	for i, m := range w.nodes {
		if m.core.Route("shop", "/") != nil {
			t.Errorf("node %d has the room again", i+1)
		}
	}
	w.kill(w.nodes[0])
	w.start(w.nodes[0], escrowSettings(41)) // whoever changes the file means it
	w.run(ticket.NewFor)
	w.agree()
	if peak := w.press(w.crowd(50, w.spread), 20*time.Second); peak != 41 {
		t.Errorf("%d were inside at most, want 41", peak)
	}
}

// TestRetiredRoomIsMadeAgainInTheCatalog: a room that was retired, and not deleted, keeps
// refusing visitors until a node that may found is started with it.
func TestRetiredRoomIsMadeAgainInTheCatalog(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(40), "a", "b")
	if err := w.nodes[1].core.Retire(roomID, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Second)
	if in := w.askAll(w.crowd(10, w.spread)); in != 0 {
		t.Errorf("%d were let into a retired room", in)
	}
	for i, m := range []*machine{w.nodes[1], w.nodes[0]} {
		w.kill(m)
		w.start(m, escrowSettings(40))
		w.run(ticket.NewFor)
		w.agree()
		if peak, want := w.press(w.crowd(60, w.spread), 20*time.Second), 40*i; peak != want {
			t.Errorf("after restart %d, %d were inside at most, want %d", i+1, peak, want)
		}
	}
}

// TestEditsOnBothSidesOfACut: of two changes of the same settings the later one stays, and
// all nodes come to the same; settings that only one side has changed are as it has them.
func TestEditsOnBothSidesOfACut(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(40), "a", "b")
	w.run(5 * time.Second)
	w.cut = true
	w.members()
	w.edit(w.nodes[0], roomID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 50; r.Settings.QueueAll = true })
	w.run(time.Second)
	w.edit(w.nodes[1], roomID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 30; r.Settings.Front.Message = "soon" })
	w.add(w.nodes[1], shopSettings(20))
	taken := shopSettings(25)
	taken.ID = crdt.RoomID{0xcc, 2}
	w.run(time.Second)
	w.add(w.nodes[0], taken) // where the other side has a room already
	w.run(20 * time.Second)
	w.cut = false
	w.members()
	w.run(10 * time.Second)
	w.agree()
	s := w.nodes[0].core.rooms[roomID].settings.Load()
	if s.TotalActiveUsers != 30 || !s.QueueAll || s.Front.Message != "soon" {
		t.Errorf("after the cut: %+v", *s)
	}
	for i, m := range w.nodes {
		if got := m.core.Route("shop", "/").id; got != shopSettings(1).ID {
			t.Errorf("node %d runs room %s, want the older one", i+1, got)
		}
		if refused := m.core.refusedStatus(); len(refused) != 1 || refused[0].Room != taken.ID.String() {
			t.Errorf("node %d refuses %+v, want the younger room", i+1, refused)
		}
	}
	w.edit(w.nodes[0], shopSettings(1).ID, nil)
	w.run(5 * time.Second)
	w.agree()
	if peak := w.press(w.crowd(60, w.spread), 20*time.Second); peak != 25 {
		t.Errorf("%d were inside the room that took its place, want 25", peak)
	}
}

// TestPolicyThatIsChangedToEscrow makes no right twice.
func TestPolicyThatIsChangedToEscrow(t *testing.T) {
	w := newCatalogWorld(t, testSettings(40), "a", "b", "b")
	w.edit(w.nodes[2], roomID, func(r *catalog.Room) { r.Settings.Policy = room.Escrow })
	for range 40 {
		w.run(50 * time.Millisecond)
		if held, _ := w.rights(); held.Places > 40 {
			t.Fatalf("%d places are held, of 40", held.Places)
		}
	}
	w.run(5 * time.Second)
	w.holds(40, 10_000, "after the change")
	if peak := w.press(w.crowd(60, w.spread), 20*time.Second); peak != 40 {
		t.Errorf("%d were inside at most, want 40", peak)
	}
}

// TestARoomThatCannotHoldGoesOn without what a node cannot use of it, since that is of another
// version: the newest limit holds there, too.
func TestARoomThatCannotHoldGoesOn(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(30), "a", "b")
	old := w.nodes[1].core
	old.catalog.Check = func(s *room.Settings) error {
		if s.Front.Message == "new" {
			return errors.New("not known in this version")
		}
		return nil
	}
	w.edit(w.nodes[0], roomID, func(r *catalog.Room) { r.Settings.Front.Message, r.Settings.TotalActiveUsers = "new", 20 })
	w.run(2 * time.Second)
	if refused := old.refusedStatus(); len(refused) != 1 || refused[0].Room != roomID.String() {
		t.Fatalf("refused: %+v", refused)
	}
	r := old.Route("shop", "/")
	if r == nil || r.settings.Load().TotalActiveUsers != 20 || r.settings.Load().Front.Message != "" || w.nodes[0].core.Route("shop", "/").settings.Load().TotalActiveUsers != 20 {
		t.Fatalf("the node that cannot use it has %+v", r)
	}
	w.holds(20, 10_000, "by the node that can, which makes the rights")
	w.edit(w.nodes[0], roomID, func(r *catalog.Room) { r.Settings.Front.Message = "known" })
	w.run(2 * time.Second)
	w.agree()
}

// TestEditIsRefused: nothing is written then.
func TestEditIsRefused(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(40), "a", "b")
	c := w.nodes[1].core
	before := c.replica.MapLen()
	no := errors.New("no")
	if err := c.Edit(func(*catalog.Catalog) ([]catalog.Write, error) { return nil, no }, w.now); !errors.Is(err, no) {
		t.Errorf("error %v, want that of the edit", err)
	}
	foreign := []catalog.Write{{Key: "minter/x", Value: []byte("x")}}
	if err := c.Edit(func(*catalog.Catalog) ([]catalog.Write, error) { return foreign, nil }, w.now); err == nil {
		t.Error("a key that is none of a catalog's is written")
	}
	if got := c.replica.MapLen(); got != before {
		t.Errorf("%d keys are written by edits that are refused", got-before)
	}
	if err := c.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	w.run(100 * time.Millisecond)
	edit := func(cat *catalog.Catalog) ([]catalog.Write, error) { return cat.Writes(cat.Room(roomID), nil), nil }
	if err := c.Edit(edit, w.now); !errors.Is(err, ErrLeaving) {
		t.Errorf("a node that leaves: error %v, want ErrLeaving", err)
	}
	plain := newWorld(t, escrowSettings(1), "a").nodes[0].core
	if err := plain.Edit(edit, w.now); !errors.Is(err, ErrNoCatalog) {
		t.Errorf("a node without a catalog: error %v, want ErrNoCatalog", err)
	}
	if got := (ticket.Amount{Places: 1, Rate: 10_000}); plain.order[0].Rights().Limit != got {
		t.Errorf("limit %+v, want %+v", plain.order[0].Rights().Limit, got)
	}
}

// TestAnEditConcernsItsRoomAlone: others are neither set anew nor looked at for it, and keep
// no settings beside those of the catalog, of which there may be ten thousand.
func TestAnEditConcernsItsRoomAlone(t *testing.T) {
	w := newCatalogWorld(t, elsewhere(10), "a", "a")
	for i := range 8 {
		s := shopSettings(5)
		s.ID[2], s.Name, s.Host, s.CookieSuffix = byte(i), fmt.Sprint("shop", i), fmt.Sprint("shop", i), fmt.Sprint("shop", i)
		w.add(w.nodes[i%2], s)
	}
	w.run(3 * time.Second)
	edited := shopSettings(5).ID // with ID[2] being 0
	for round := range 5 {
		m := w.nodes[round%2]
		before := map[*Room]brief{}
		for _, r := range m.core.order {
			before[r] = r.viewed
		}
		w.edit(m, edited, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 6 + round })
		for _, r := range m.core.order {
			if r.id != edited && r.viewed != before[r] {
				t.Errorf("round %d: %v is looked at because another was edited", round, r.id)
			}
		}
		w.run(time.Second)
		for i, m := range w.nodes {
			read := m.core.catalog.read.Load()
			for _, r := range m.core.order {
				if of := read.Room(r.id); of != nil && r.settings.Load() != &of.Settings {
					t.Errorf("round %d, node %d: %v has settings of its own", round, i+1, r.id)
				}
			}
		}
	}
}
