package node

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/ropeline/ropeline/crdt"
)

// churn makes rooms and deletes them, at one node after the other.
func (w *world) churn(first, rooms int) {
	w.t.Helper()
	for i := range rooms {
		s := elsewhere(50)
		s.ID, s.Name, s.CookieSuffix = crdt.RoomID{0xdd, byte(first + i)}, fmt.Sprint("room", first+i), fmt.Sprint("r", first+i)
		s.Path = fmt.Sprint("/", first+i)
		w.add(w.nodes[i%len(w.nodes)], s)
		w.run(700 * time.Millisecond)
		w.edit(w.nodes[(i+1)%len(w.nodes)], s.ID, nil)
		w.run(300 * time.Millisecond)
	}
}

// weight is how much there is of rooms at a node, in memory and on disk.
type weight struct {
	Keys, Deleted, Facts, Known int // of the last-writer map, of that deleted, rooms that facts are of, rooms known to be deleted
	Counted, Rooms              int // rooms that something is counted of, and that are kept
	OnDisk, Ledgers, Left       int // facts on disk, keys of ledgers there, rooms that ledgers there are of and that are not kept
	Counts                      int // values in all counts; their bytes grow with the numbers, which count changes
}

func (w *world) weigh(m *machine) (is weight) {
	w.t.Helper()
	c := m.core
	counts, err := c.AppendSnapshot(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	counted := map[crdt.RoomID]bool{}
	for id := range c.replica.CountedRooms() {
		counted[id] = true
	}
	for key := range m.disk.keys {
		if key[0] != factsObject {
			is.Ledgers++
		} else if strings.HasPrefix(key[1], "w/") {
			is.OnDisk++
		}
	}
	is.Keys, is.Deleted, is.Facts, is.Known = c.replica.MapLen(), c.replica.Deleted(), len(c.facts.rooms), len(c.deleted.known)
	is.Counted, is.Rooms, is.Left = len(counted), len(c.order), len(c.storing.found)
	for counts = counts[1:]; len(counts) > 0; { // behind the version, parts with their lengths
		size, n := binary.Uvarint(counts)
		is.Counts += valuesIn(w.t, counts[n:n+int(size)])
		counts = counts[n+int(size):]
	}
	return is
}

// valuesIn returns how many values there are in MessagePack.
func valuesIn(t testing.TB, b []byte) (n int) {
	t.Helper()
	for d := msgpack.NewDecoder(bytes.NewReader(b)); ; n++ {
		code, err := d.PeekCode()
		switch {
		case err == io.EOF:
			return n
		case msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32:
			_, err = d.DecodeArrayLen() // and then its values
		case err == nil:
			err = d.Skip()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeletedRoomsAreForgotten, in memory and on disk, also over a restart, as soon as no node that exists is away; and
// whoever comes new knows the same. Some have capacity, and visitors.
func TestDeletedRoomsAreForgotten(t *testing.T) {
	w := newCatalogWorld(t, elsewhere(90), "a", "a", "b")
	shop := shopSettings(50)
	w.add(w.nodes[0], shop)
	w.run(15 * time.Minute)
	w.askAll(w.crowd(20, w.spread))
	w.edit(w.nodes[1], shop.ID, nil)
	w.run(3 * time.Second)
	for i, m := range w.nodes {
		if is := w.weigh(m); is.Counted != 2 || is.Left != 1 || is.Known != 1 {
			t.Errorf("node %d has %+v, and a room was just deleted", i, is)
		}
	}
	away := w.nodes[2]
	w.kill(away)
	rest := w.nodes[:2]
	w.nodes = rest
	w.churn(0, 12)
	w.run(15 * time.Minute)
	if is := w.weigh(rest[0]); is.Keys < 12 || is.Facts != 14 {
		t.Errorf("%+v: something is forgotten of which a node does not know that was away", is)
	}
	w.nodes = append(rest[:2:2], away)
	w.start(away, elsewhere(90))
	w.run(14 * time.Minute)
	w.kill(rest[0])
	w.run(10 * time.Second)
	w.start(rest[0], elsewhere(90))
	w.run(28 * time.Minute)
	w.nodes = append(w.nodes, &machine{id: crdt.NodeID{9, 0xaa}, site: "b"})
	w.start(w.nodes[3], elsewhere(90))
	w.run(time.Minute)
	content := func(m *machine) []string { return slices.Sorted(m.core.replica.Keys()) }
	for i, m := range w.nodes {
		is := w.weigh(m)
		if want := (weight{Keys: is.Keys, Facts: 1, Counted: 1, Rooms: 1, OnDisk: is.Keys, Ledgers: is.Ledgers, Counts: is.Counts}); is != want || is.Ledgers > 6 {
			t.Errorf("node %d has %+v, want %+v", i, is, want)
		}
		if !slices.Equal(content(m), content(w.nodes[0])) {
			t.Errorf("node %d holds %v, and node 0 %v", i, content(m), content(w.nodes[0]))
		}
		for _, key := range content(m) {
			if id := (crdt.RoomID{0xdd}).String()[:2]; strings.Contains(key, "/"+id) || strings.Contains(key, shop.ID.String()) {
				t.Errorf("node %d holds %s", i, key)
			}
		}
	}
	w.agree()
}

// TestAForgottenDiskIsRefused: a node starts with a copy of its disk from before what others have forgotten.
func TestAForgottenDiskIsRefused(t *testing.T) {
	w := newCatalogWorld(t, shopSettings(90), "a", "a", "b")
	w.run(5 * time.Second)
	m := w.nodes[1]
	old := maps.Clone(m.disk.keys)
	w.churn(0, 6)
	w.run(15 * time.Minute)
	w.kill(m)
	m.disk.keys = old
	w.start(m, shopSettings(90))
	w.run(15 * time.Second)
	if m.core.Ready() || !m.core.health.forgotten.Load() {
		t.Errorf("a node that was forgotten is ready: %v", m.core.Ready())
	}
	m.disk.keys = nil
	w.kill(m)
	m.disk.keys, m.snapshot = nil, nil
	m.id, m.boot = crdt.NodeID{8, 0xaa}, 0
	w.start(m, shopSettings(90))
	w.run(15 * time.Second)
	if !m.core.Ready() {
		t.Error("with an empty disk, and as a new node, it is not ready")
	}
}
