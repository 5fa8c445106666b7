package node

import (
	"errors"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestNobodyStopsANodeByAWordOnItsStarts: a peer says that a later start of a node has a row, and that it has run with
// a number that is later by far, or by one, and writes that into the map, and that it has closed accounts. The node goes on.
func TestNobodyStopsANodeByAWordOnItsStarts(t *testing.T) {
	w := newStoppedWorld(t)
	w.catalog, w.keys = true, true
	w.begin(shopSettings(100), "a", "a")
	victim, liar := w.nodes[0], w.nodes[1]
	for _, boot := range []uint64{victim.boot, victim.boot + 1, math.MaxUint64} {
		other := crdt.Incarnation{Node: victim.id, Boot: boot}
		forger, err := replica.New(replica.Config{Self: other, Site: "a", Rand: w.rng})
		if err != nil {
			t.Fatal(err)
		}
		forger.SetPeers([]replica.Peer{{ID: victim.id, Boot: victim.boot, Site: "a", Ready: true}}, w.now)
		for range 20 {
			for _, m := range forger.Tick(w.now) {
				_, _ = victim.core.Receive(replica.Peer{ID: liar.id, Boot: liar.boot, Site: "a", Ready: true}, kindReplica, m.Payload, w.now)
			}
			w.run(100 * time.Millisecond)
		}
		said := append([]byte{}, newStarting([]byte("of the liar"), other, VisitorID{1}).says...)
		if err := liar.core.replica.Set(nodeKey(factStart, victim.id), said, w.now); err != nil {
			t.Fatal(err)
		}
		closed := roomNodeKey(factClosed, victim.core.order[0].id, victim.id)
		accounts := withCode([]byte("of the liar"), closed, ticket.AppendClosings(nil, ticket.Closings{Steps: 9}))
		if err := liar.core.replica.Set(closed, accounts, w.now); err != nil {
			t.Fatal(err)
		}
		w.post(liar, nil)
		w.run(3 * time.Second)
		if got, _, _ := victim.core.replica.Get(nodeKey(factStart, victim.id)); string(got) != string(said) {
			t.Fatal("the forged start did not reach the node")
		}
		if err := victim.core.Conflict(); err != nil {
			t.Errorf("a word on start %d stops the node: %v", boot, err)
		}
	}
}

// TestARolledBackDirectoryIsNoticed: the disk is put back to what it was two starts before, and the node hears from the
// mesh of a start that it knows nothing of.
func TestARolledBackDirectoryIsNoticed(t *testing.T) {
	w := newStoppedWorld(t)
	w.catalog, w.keys = true, true
	w.begin(shopSettings(100), "a", "a")
	m := w.nodes[0]
	keys, boot, snapshot := maps.Clone(m.disk.keys), m.boot, m.snapshot
	for range 2 {
		w.kill(m)
		w.start(m, shopSettings(100))
		w.run(3 * time.Second)
		if err := m.core.Conflict(); err != nil {
			t.Fatalf("start %d: %v", m.boot, err)
		}
	}
	for _, back := range []uint64{boot, boot + 1} { // what follows has the number of a start that was, or of the last
		w.kill(m)
		m.disk.keys, m.boot, m.snapshot = maps.Clone(keys), back, snapshot
		w.start(m, shopSettings(100))
		w.run(3 * time.Second)
		if err := m.core.Conflict(); !errors.Is(err, ErrCopied) {
			t.Errorf("start %d after start %d: %v, want %v", m.boot, boot+2, err, ErrCopied)
		}
	}
}
