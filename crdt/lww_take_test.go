package crdt

import (
	"errors"
	"testing"
	"time"
)

// TestTakenOutOfTurn: a write that somebody has passed on counts like any other, and nobody is
// told of it before what its node wrote earlier has come, whoever brings that.
func TestTakenOutOfTurn(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var theirs, clock Clock
	writer := NodeID{1}
	var from, to LWW
	var stamps []Stamp
	for _, v := range []string{"a", "b", "c"} {
		at := theirs.Now(now, writer)
		stamps = append(stamps, at)
		if err := from.Set("key "+v, []byte(v), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Take("key c", []byte("c"), stamps[2], &clock, now); err != nil {
		t.Fatal(err)
	}
	if got, at, ok := to.Get("key c"); !ok || string(got) != "c" || at != stamps[2] {
		t.Errorf("got %q of %v, %v", got, at, ok)
	}
	if to.Holds(stamps[0]) || !to.Delta(LWWDigest{}, 0).Empty() {
		t.Errorf("it tells of %v", to.Delta(LWWDigest{}, 0))
	}
	stored := new(LWW)
	for _, p := range to.Parts(0) {
		if err := stored.SetPart(p); err != nil {
			t.Fatal(err)
		}
	}
	if got, _, _ := stored.Get("key c"); string(got) != "c" || stored.Holds(stamps[2]) {
		t.Errorf("%q is stored", got)
	}
	for _, p := range from.Delta(to.Digest(), 0).Pieces {
		if gap, err := to.Apply(p, &clock, now); gap || err != nil {
			t.Errorf("gap %v, %v", gap, err)
		}
	}
	if !to.Holds(stamps[2]) || to.Len() != 3 {
		t.Errorf("%d keys are held when all have come", to.Len())
	}
	if err := to.Take("key c", []byte("old"), stamps[0], &clock, now); err != nil {
		t.Error(err)
	}
	if got, _, _ := to.Get("key c"); string(got) != "c" {
		t.Errorf("an older write makes it %q", got)
	}
	if err := to.Take("key c", []byte("d"), Stamp{Wall: now.Add(time.Hour).UnixMilli(), Node: writer}, &clock, now); !errors.Is(err, ErrHostile) {
		t.Errorf("a write of an hour ahead: %v", err)
	}
	if err := to.Take("key d", nil, Stamp{}, &clock, now); !errors.Is(err, ErrHostile) {
		t.Errorf("a write of no time: %v", err)
	}
}

// TestTellable: a node's own write may be passed on once it is told of.
func TestTellable(t *testing.T) {
	var m LWW
	self, at := NodeID{1}, Stamp{Wall: 5, Node: NodeID{1}}
	if !m.Tellable(at) {
		t.Error("nothing is withheld, and it is not told")
	}
	m.Withhold(self, at.packed()-1)
	if m.Tellable(at) || !m.Tellable(Stamp{Wall: 5, Node: NodeID{2}}) {
		t.Error("a withheld write is told, or another node's is not")
	}
	m.Withhold(self, at.packed())
	if !m.Tellable(at) {
		t.Error("it is on disk, and not told")
	}
}
