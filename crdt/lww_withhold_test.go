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

// TestWhatAWithheldWriteReplacesIsTold writes a key again and again while nothing, or an older
// write, is on disk: the peer has what is, and knows of no write that it does not have.
func TestWhatAWithheldWriteReplacesIsTold(t *testing.T) {
	own, other := NodeID{1}, NodeID{2}
	var m, peer LWW
	var clock Clock
	now := time.Unix(1_700_000_000, 0)
	set := func(value string, node NodeID) uint64 {
		t.Helper()
		at := clock.Now(now, node)
		if err := m.Set("key", []byte(value), at); err != nil {
			t.Fatal(err)
		}
		return at.packed()
	}
	tell := func(want string) {
		t.Helper()
		for _, p := range m.Delta(peer.Digest(), 0).Pieces {
			if _, err := peer.Apply(p, new(Clock), now.Add(time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		if got, _, _ := peer.Get("key"); string(got) != want {
			t.Errorf("the peer has %q, want %q", got, want)
		}
		for _, writer := range []NodeID{own, other} {
			if m.KnownOf(writer) != peer.KnownOf(writer) {
				t.Errorf("the peer knows node %s up to %d, and was promised %d", writer, peer.KnownOf(writer), m.KnownOf(writer))
			}
		}
	}
	m.Withhold(own, 0)
	set("another's", other)
	first := set("first", own)
	tell("another's")
	second := set("second", own)
	set("third", own)
	m.Withhold(own, first)
	tell("first")
	m.Withhold(own, second)
	tell("second")
	late := clock.Now(now, other)
	last := set("last", own)
	if err := m.Set("key", []byte("late"), late); err != nil {
		t.Fatal(err)
	}
	tell("late")
	m.Withhold(own, last)
	tell("last")
	if len(m.beneath) != 0 {
		t.Errorf("%v is kept, and nothing is withheld", m.beneath)
	}
}
