package node

import (
	"encoding/binary"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
)

// invents has a node hold writes of nodes that it made up, one of each, and tell others of them.
func (w *world) invents(m *machine, first, writers int) {
	w.t.Helper()
	made := new(crdt.LWW)
	for i := range writers {
		id := crdt.NodeID{0xfe, byte(i)}
		binary.BigEndian.PutUint64(id[8:], uint64(first+i))
		at := crdt.Stamp{Wall: w.now.UnixMilli(), Node: id}
		if err := made.Set(fmt.Sprintf("made/%x", id[:]), []byte{1}, at); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := m.core.replica.RestoreMap(made.Parts(0)); err != nil {
		w.t.Fatal(err)
	}
}

// TestInventedWritersKeepNobodyOut: two peers with the secret make up more writers than a map has room for, and different
// ones. Nodes that come then are heard of all the same, and once these peers are gone all nodes have the same map, in which
// nobody is left who is no node.
func TestInventedWritersKeepNobodyOut(t *testing.T) {
	w := newCatalogWorld(t, shopSettings(90), "a", "a", "b")
	w.run(5 * time.Second)
	before, most := w.nodes[0].core.replica.Writers()
	w.invents(w.nodes[1], 0, most/4*3)
	w.invents(w.nodes[2], most, most/4*3)
	w.run(4 * time.Second)
	if n, _ := w.nodes[0].core.replica.Writers(); n < most/2 || n >= most {
		t.Errorf("a node knows of %d writers, of %d that it has room for", n, most)
	}
	fresh := &machine{id: crdt.NodeID{4, 0xaa}, site: "b"}
	w.nodes = append(w.nodes, fresh)
	w.start(fresh, shopSettings(90))
	w.run(5 * time.Second)
	for _, rogue := range w.nodes[1:3] {
		w.kill(rogue)
	}
	w.nodes = []*machine{w.nodes[0], fresh}
	w.edit(fresh, shopSettings(90).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 91 })
	w.run(5 * time.Second)
	if got := w.nodes[0].core.Catalog().Room(shopSettings(90).ID).Settings.TotalActiveUsers; got != 91 {
		t.Errorf("a change at a new node came to nobody: the limit is %d", got)
	}
	w.run(11 * time.Minute)
	for _, m := range w.nodes {
		if n, _ := m.core.replica.Writers(); n > before+2 { // the new one, and what stands for those that were dropped
			t.Errorf("%s knows of %d writers, and of %d before", m.id, n, before)
		}
		if got, want := m.core.replica.MapLen(), w.nodes[0].core.replica.MapLen(); got != want || got < most/2 {
			t.Errorf("%s has %d keys, another one %d", m.id, got, want)
		}
	}
	w.agree()
}

var floodKeys = flag.Int("flood", 15_000, "how many keys a second are made up in TestAFloodHoldsNoChangeUp: more than messages carry in one")

// TestAFloodHoldsNoChangeUp: a peer fills the map with tens of thousands of keys, and does not stop. What operators change
// meanwhile is at all nodes within a second, also by way of those that pass the flood on.
func TestAFloodHoldsNoChangeUp(t *testing.T) {
	second := *floodKeys
	w := newCatalogWorld(t, shopSettings(90), "a", "a", "a", "b")
	var clock crdt.Clock
	keys := 0
	flood := func() {
		for end := w.now.Add(time.Second); w.now.Before(end); w.run(50 * time.Millisecond) {
			made := new(crdt.LWW)
			for range second / 20 {
				if err := made.Set(fmt.Sprintf("made/%032x", keys), []byte{1}, clock.Now(w.now, w.nodes[0].id)); err != nil {
					t.Fatal(err)
				}
				keys++
			}
			if err := w.nodes[0].core.replica.RestoreMap(made.Parts(0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	flood()
	w.edit(w.nodes[3], shopSettings(90).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 91 })
	flood()
	for _, m := range w.nodes {
		if got := m.core.Catalog().Room(shopSettings(90).ID).Settings.TotalActiveUsers; got != 91 {
			t.Errorf("a second after it was changed to 91, the limit at %s is %d", m.id, got)
		}
	}
	if n := w.nodes[3].core.replica.MapLen(); n < 7_500 || n > keys {
		t.Errorf("%d of %d keys are everywhere: the test shows nothing", n, keys)
	}
}
