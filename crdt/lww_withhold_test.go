package crdt

import (
	"testing"
	"time"
)

// TestWithheldWritesAreToldLater writes at a node that may not speak of all of it yet.
func TestWithheldWritesAreToldLater(t *testing.T) {
	own, other := NodeID{1}, NodeID{2}
	var m, peer LWW
	var clock Clock
	now := time.Unix(1_700_000_000, 0)
	set := func(key string, node NodeID) uint64 {
		t.Helper()
		at := clock.Now(now, node)
		if err := m.Set(key, []byte(key), at); err != nil {
			t.Fatal(err)
		}
		return at.packed()
	}
	tell := func(want ...string) {
		t.Helper()
		for _, p := range m.Delta(peer.Digest(), 0).Pieces {
			if _, err := peer.Apply(p, new(Clock), now.Add(time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		for _, writer := range []NodeID{own, other} {
			if m.KnownOf(writer) != peer.KnownOf(writer) {
				t.Errorf("the peer knows node %s up to %d, and was promised %d", writer, peer.KnownOf(writer), m.KnownOf(writer))
			}
		}
		if peer.Len() != len(want) {
			t.Errorf("the peer has %d keys, want %v", peer.Len(), want)
		}
		for _, key := range want {
			if _, _, ok := peer.Get(key); !ok {
				t.Errorf("the peer has no %q", key)
			}
		}
	}
	first := set("first", own)
	m.Withhold(own, first)
	second := set("second", own)
	set("of another", other)
	tell("first", "of another")
	if m.NewestOf(own) != second || m.Digest()[own] != first {
		t.Errorf("holds up to %d and tells up to %d, want %d and %d", m.NewestOf(own), m.Digest()[own], second, first)
	}
	m.Withhold(own, second)
	tell("first", "second", "of another")
}
