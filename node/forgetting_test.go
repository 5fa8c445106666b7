package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

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

// keptKeys returns the keys that a node holds, deleted ones included, but those by which it knows that a room is gone.
func (w *world) keptKeys(m *machine) (n int) {
	n = m.core.replica.MapLen()
	for key := range m.core.replica.Keys() {
		if isRetired(key) {
			n--
		}
	}
	return n
}

// onDisk returns how many facts a node has on disk, but those.
func (w *world) onDisk(m *machine) (n int) {
	for key := range m.disk.keys {
		if key[0] == factsObject && strings.HasPrefix(key[1], "w/") && !isRetired(key[1][2:]) {
			n++
		}
	}
	return n
}

// TestDeletedRoomsAreForgotten, in memory and on disk, also over a restart, as soon as no node that exists is away; and
// whoever comes new knows the same.
func TestDeletedRoomsAreForgotten(t *testing.T) {
	w := newCatalogWorld(t, shopSettings(90), "a", "a", "b")
	w.run(15 * time.Minute)
	var before []int
	for _, m := range w.nodes {
		before = append(before, w.keptKeys(m))
	}
	away := w.nodes[2]
	w.kill(away)
	rest := w.nodes[:2]
	w.nodes = rest
	w.churn(0, 12)
	w.run(15 * time.Minute)
	if got := w.keptKeys(rest[0]); got < before[0]+12 {
		t.Errorf("%d keys, %d before: something is forgotten of which a node does not know that was away", got, before[0])
	}
	w.nodes = append(rest[:2:2], away)
	w.start(away, shopSettings(90))
	w.run(14 * time.Minute)
	w.kill(rest[0])
	w.run(10 * time.Second)
	w.start(rest[0], shopSettings(90))
	w.run(15 * time.Minute)
	w.nodes = append(w.nodes, &machine{id: crdt.NodeID{9, 0xaa}, site: "b"})
	w.start(w.nodes[3], shopSettings(90))
	w.run(time.Minute)
	content := func(m *machine) []string { return slices.Sorted(m.core.replica.Keys()) }
	for i, m := range w.nodes {
		if got := w.keptKeys(m); i < 3 && got > before[i]+6 { // those of who came new
			t.Errorf("node %d holds %d keys, %d before: %v", i, got, before[i], content(m))
		}
		if m.core.replica.Deleted() != 0 {
			t.Errorf("node %d holds %d deletions", i, m.core.replica.Deleted())
		}
		if got := w.onDisk(m); got != w.keptKeys(m) {
			t.Errorf("node %d has %d keys on disk, and %d in memory", i, got, w.keptKeys(m))
		}
		if !slices.Equal(content(m), content(w.nodes[0])) {
			t.Errorf("node %d holds %v, and node 0 %v", i, content(m), content(w.nodes[0]))
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
