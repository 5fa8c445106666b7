package crdt

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestRewind: whatever was written by whom and when, after Rewind nothing is of a time to come, what was not stays as
// it was, writes of one node keep their order and their values, and none of its own gets later than it was.
func TestRewind(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	latest := now.Add(maxDrift)
	rapid.Check(t, func(t *rapid.T) {
		m, clocks := new(LWW), map[NodeID]*Clock{}
		at := now.Add(-time.Minute)
		for range rapid.IntRange(1, 30).Draw(t, "writes") {
			at = at.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond)
			writer := NodeID{byte(rapid.IntRange(1, 3).Draw(t, "writer"))}
			if clocks[writer] == nil {
				clocks[writer] = new(Clock)
			}
			key := fmt.Sprint("k", rapid.IntRange(0, 9).Draw(t, "key"))
			if err := m.Set(key, []byte(at.String()), clocks[writer].Now(at, writer)); err != nil {
				t.Fatal(err)
			}
		}
		was, self, changes := m.Clone(), NodeID{1}, m.Changes()
		kept := m.Rewind(self, 0, now, now)
		for a := range was.Keys() {
			_, before, _ := was.Get(a)
			value, after, ok := m.Get(a)
			valueBefore, _, _ := was.Get(a)
			switch {
			case !ok || string(value) != string(valueBefore) || after.Node != before.Node:
				t.Fatalf("%s is %q of %v, was %q of %v", a, value, after, valueBefore, before)
			case after.Wall > latest.UnixMilli():
				t.Fatalf("%s is of %v, which is to come", a, after)
			case before.Wall <= latest.UnixMilli() && after != before:
				t.Fatalf("%s has come to be of %v, was of %v", a, after, before)
			case before.Wall > latest.UnixMilli() && after.packed() <= kept[after.Node]:
				t.Fatalf("%s is of %v, which counts as one that stays", a, after)
			case m.known[after.Node] < after.packed():
				t.Fatalf("%s is of %v, and of its writer all is known up to %d", a, after, m.known[after.Node])
			}
			for b := range was.Keys() {
				if _, o, _ := was.Get(b); o.Node == before.Node && before.Compare(o) < 0 {
					if _, is, _ := m.Get(b); after.Compare(is) >= 0 {
						t.Fatalf("%s came before %s, and is of %v and %v now", a, b, after, is)
					}
				}
			}
		}
		changed := map[string]bool{}
		for key := range m.Changed(changes) {
			changed[key] = true
		}
		for key := range was.Keys() {
			if _, before, _ := was.Get(key); before.Wall > latest.UnixMilli() && !changed[key] {
				t.Fatalf("%s is not among what has changed", key)
			}
		}
		if m.Rewind(self, 0, now, now) != nil {
			t.Fatal("there is something to put back a second time")
		}
	})
}
