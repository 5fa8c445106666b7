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
		if err := peer.hear(m.Delta(peer.Digest(), 0), new(Clock), now.Add(time.Second)); err != nil {
			t.Fatal(err)
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
		if err := peer.hear(m.Delta(peer.Digest(), 0), new(Clock), now.Add(time.Second)); err != nil {
			t.Fatal(err)
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

// TestWhatIsHiddenBeneathAWithheldWrite writes a key twice, and then hears of a write between the two while the second is
// withheld: the first is told no more, and who hears of its writer alone is told that something may be hidden.
func TestWhatIsHiddenBeneathAWithheldWrite(t *testing.T) {
	own, other := NodeID{1}, NodeID{2}
	var m LWW
	var clock Clock
	now := time.Unix(1_700_000_000, 0)
	first, between, second := clock.Now(now, own), clock.Now(now, other), clock.Now(now, own)
	for _, at := range []Stamp{first, second} {
		if err := m.Set("key", []byte("v"), at); err != nil {
			t.Fatal(err)
		}
		m.Withhold(own, first.packed())
	}
	d := m.DeltaOf(own, 0, 0)
	if p := d.Pieces[0]; len(p.Writes) != 1 || p.Hides != 0 {
		t.Errorf("the first write is told as %+v", p)
	}
	if err := m.Set("key", []byte("v"), between); err != nil {
		t.Fatal(err)
	}
	d = m.DeltaOf(own, 0, 0)
	if p := d.Pieces[0]; len(p.Writes) != 0 || p.Hides != first.packed() {
		t.Errorf("the first write is hidden, and told is %+v", p)
	}
}
