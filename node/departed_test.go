package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/catalog"
)

// keysOf returns the keys of some kinds that a node knows of another one.
func keysOf(m, of *machine, kinds ...string) (all []string) {
	for key := range m.core.replica.Keys() {
		if kind, rest, _ := strings.Cut(key, "/"); slices.Contains(kinds, kind) && strings.HasPrefix(rest, of.id.String()) {
			all = append(all, key)
		}
	}
	return all
}

// TestWhatALeaverSaidOfItselfIsForgotten, and not before a node that is away has heard that it has left; what it set stays.
func TestWhatALeaverSaidOfItselfIsForgotten(t *testing.T) {
	w := newStoppedWorld(t)
	w.catalog, w.keys = true, true
	w.begin(shopSettings(90), "a", "a", "b")
	leaver, away := w.nodes[1], w.nodes[2]
	w.edit(leaver, shopSettings(90).ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 91 })
	w.run(2 * time.Second)
	w.kill(away)
	w.leaves(leaver)
	w.nodes = []*machine{w.nodes[0], away}
	w.run(5 * time.Minute)
	if got := keysOf(w.nodes[0], leaver, factNode, factStart); len(got) != 2 {
		t.Errorf("while a node is away that does not know that it has left, %v is known of it", got)
	}
	w.start(away, shopSettings(90))
	w.run(7 * time.Minute)
	for _, m := range w.nodes {
		if got := keysOf(m, leaver, factNode, factName, factStart); len(got) != 0 {
			t.Errorf("%s still knows %v", m.id, got)
		}
		if !m.core.facts.hasLeft(leaver.id) {
			t.Errorf("%s does not know that it has left", m.id)
		}
		if got := m.core.Catalog().Room(shopSettings(90).ID).Settings.TotalActiveUsers; got != 91 {
			t.Errorf("what it set is lost: the limit is %d", got)
		}
		for key := range m.core.replica.ToldBy(leaver.id) {
			if isAdoptable(key) {
				t.Errorf("%q is still told by it", key)
			}
		}
	}
}
