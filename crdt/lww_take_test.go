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

// TestWhatATakenWriteReplacesIsTold takes a write out of turn in place of an older one, of the same node or another. Until
// what came before it is here, who hears of the older one's node gets the older one, also after a restart.
func TestWhatATakenWriteReplacesIsTold(t *testing.T) {
	writer, other := testNode(0), testNode(1)
	for name, first := range map[string]NodeID{"its own": writer, "another's": other} {
		var theirs, clock Clock
		from, m, now := new(LWW), new(LWW), guardNow
		set := func(key, value string, by NodeID) (at Stamp) {
			t.Helper()
			if at = theirs.Now(now, by); from.Set(key, []byte(value), at) != nil {
				t.Fatal("not set")
			}
			return at
		}
		hear := func(m, from *LWW) {
			t.Helper()
			if err := m.hear(from.Delta(m.Digest(), 0), &clock, now); err != nil {
				t.Fatal(err)
			}
		}
		tells := func(want string, known ...Stamp) {
			t.Helper()
			again, peer := new(LWW), new(LWW)
			for _, p := range m.Parts(0) {
				if err := again.SetPart(p); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range []*LWW{m, again, m.Clone(), again.Clone()} {
				peer = new(LWW)
				hear(peer, m)
				if got, _, _ := peer.Get("key"); string(got) != want {
					t.Errorf("%s: a peer has %q, want %q", name, got, want)
				}
			}
			for _, at := range known {
				if !peer.Holds(at) {
					t.Errorf("%s: a peer does not know of %v", name, at)
				}
			}
		}
		old := set("key", "old", first)
		set("key of the writer", "", writer)
		hear(m, from)
		between, behind := set("between", "", writer), new(LWW)
		hear(behind, from)
		late := set("key", "late", writer)
		latest := set("key", "latest", writer)
		for at, value := range map[Stamp]string{late: "late", latest: "latest"} {
			if err := m.Take("key", []byte(value), at, &clock, now); err != nil {
				t.Fatal(err)
			}
		}
		if got, _, _ := m.Get("key"); string(got) != "latest" {
			t.Errorf("%s: %q is there", name, got)
		}
		tells("old", old)
		hear(m, behind) // some of what was missing
		tells("old", old, between)
		hear(m, from)
		tells("latest", old, latest)
		if len(m.beneath) > 0 {
			t.Errorf("%s: %v is kept when all has come", name, m.beneath)
		}
	}
}
