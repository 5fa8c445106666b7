package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// TestTwoChangesAtOnceBothHold: one client changes one limit of a room at one node, and at once the other one at
// another.
func TestTwoChangesAtOnceBothHold(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(40), "a", "a")
	for i := range 20 {
		w.edit(w.nodes[0], roomID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 100 + i })
		w.edit(w.nodes[1], roomID, func(r *catalog.Room) { r.Settings.NewUsersPerMinute = 500 + i })
		w.run(2 * time.Second)
		w.agree()
		for j, m := range w.nodes {
			if s := m.core.rooms[roomID].settings.Load(); s.TotalActiveUsers != 100+i || s.NewUsersPerMinute != 500+i {
				t.Errorf("round %d, node %d: limits %d and %d", i, j+1, s.TotalActiveUsers, s.NewUsersPerMinute)
			}
		}
	}
}

// TestALateChangeBringsNoRoomBack: a room is deleted at one node, and changed at another that has not heard.
func TestALateChangeBringsNoRoomBack(t *testing.T) {
	w := newCatalogWorld(t, elsewhere(10), "a", "a")
	for _, change := range []func(*catalog.Room){
		func(r *catalog.Room) { r.Description = "late" },
		func(r *catalog.Room) { r.Settings.TotalActiveUsers = 99 },
		func(r *catalog.Room) { r.Settings.Front.CustomPage = "late" },
		func(r *catalog.Room) {
			r.Rules = []catalog.Rule{{ID: catalog.ID{1}, Rule: room.Rule{Expression: "true", Action: room.Bypass}}}
		},
	} {
		s := shopSettings(40)
		s.ID[5] = byte(len(w.nodes[0].core.facts.rooms))
		w.add(w.nodes[0], s)
		w.run(2 * time.Second)
		w.edit(w.nodes[0], s.ID, nil)
		w.now = w.now.Add(20 * time.Millisecond)
		w.edit(w.nodes[1], s.ID, change)
		w.run(2 * time.Second)
		for i, m := range w.nodes {
			if m.core.Catalog().Room(s.ID) != nil || m.core.Route("shop", "/") != nil {
				t.Errorf("node %d has a room that was deleted", i+1)
			}
		}
	}
	w.run(3 * unusedInterval)
	for key := range w.nodes[0].core.Catalog().Unused() {
		t.Errorf("%s is of no use, and kept", key)
	}
}

// TestAPageOutlivesALateChange: a page is replaced at one node, and a setting beside it changed at another.
func TestAPageOutlivesALateChange(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(40), "a", "b")
	page := func(text string) func(*catalog.Room) {
		return func(r *catalog.Room) { r.Settings.Front.CustomPage = text }
	}
	w.edit(w.nodes[0], roomID, page("first"))
	w.run(2 * time.Second)
	w.edit(w.nodes[0], roomID, page("second"))
	w.edit(w.nodes[1], roomID, func(r *catalog.Room) { r.Settings.Front.Language = "de-DE" })
	w.run(2 * time.Second)
	w.edit(w.nodes[0], roomID, page("third"))
	w.edit(w.nodes[1], roomID, page("fourth"))
	w.edit(w.nodes[1], roomID, page("second")) // which is on its way out
	w.run(3 * unusedInterval)
	w.agree()
	for i, m := range w.nodes {
		r := m.core.Catalog().Room(roomID)
		if r.Incomplete != "" || r.Settings.Front.CustomPage != "second" || r.Settings.Front.Language != "de-DE" {
			t.Errorf("node %d: incomplete %q, page %q, language %q", i+1, r.Incomplete, r.Settings.Front.CustomPage, r.Settings.Front.Language)
		}
		for key := range m.core.Catalog().Unused() {
			t.Errorf("node %d keeps %s, which is of no use", i+1, key)
		}
	}
}

// TestWhatAGoneNodeWroteIsDropped, once nobody needs it: a page that was replaced after its node had ended, and a room of a
// file that was deleted while a node that brought it was cut off.
func TestWhatAGoneNodeWroteIsDropped(t *testing.T) {
	w := newCatalogWorld(t, escrowSettings(40), "a", "b", "b")
	page := func(text string) func(*catalog.Room) {
		return func(r *catalog.Room) { r.Settings.Front.CustomPage = text }
	}
	lost, late := w.nodes[2], &machine{id: crdt.NodeID{9, 0xaa}, site: "b"}
	w.edit(lost, roomID, page("first"))
	w.run(2 * time.Second)
	w.kill(lost)
	w.cutOff = func(a, b *machine) bool { return (a == late) != (b == late) }
	w.nodes = []*machine{w.nodes[0], w.nodes[1], late}
	w.start(late, escrowSettings(40))
	w.run(20 * time.Second)
	w.edit(w.nodes[0], roomID, page("second"))
	w.run(time.Second)
	w.edit(w.nodes[1], roomID, nil)
	w.run(2 * time.Second)
	if late.core.Catalog().Room(roomID) == nil {
		t.Fatal("a node that is cut off has not brought the room of its file")
	}
	w.cutOff = nil
	w.members()
	w.run(forgetAfter + 3*unusedInterval)
	left := func() (keys []string) {
		for _, m := range w.nodes {
			keys = slices.AppendSeq(keys, m.core.Catalog().Unused())
			if _, _, there := m.core.replica.Get("room/" + roomID.String()); there {
				keys = append(keys, "a room that is marked as deleted")
			}
		}
		return keys
	}
	if keys := left(); len(keys) == 0 || !strings.HasPrefix(keys[0], "text/") {
		t.Errorf("of no use is %v, want what the lost node wrote alone: it may come back", keys)
	}
	if err := w.nodes[0].core.DeclareDead(lost.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(forgetAfter + 3*unusedInterval)
	if keys := left(); len(keys) > 0 {
		t.Errorf("of no use and kept is %v", keys)
	}
	w.agree()
}
