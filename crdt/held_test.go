package crdt

import (
	"testing"
	"time"
)

// TestRightsAreTheNodes has a node start again: what it owns stands in its latest
// row only, and is nobody's to use once the node is silent.
func TestRightsAreTheNodes(t *testing.T) {
	node, room := testNode(0), testRoom(0)
	rows := new(Rows)
	first, second := Incarnation{node, 1}, Incarnation{node, 2}
	rows.Open(first, "s", guardNow)
	rows.Add(first, Key{Room: room, Kind: Held}, 9, 2, guardNow)
	rows.Add(first, Key{Room: room, Kind: HeldRate}, 30, 0, guardNow)
	count := func(when string, now time.Time, held, rate int64) {
		t.Helper()
		c := rows.CountSite("s", room, now, Retention{})
		if c.Held != held || c.HeldRate != rate {
			t.Errorf("%s: got %d and %d, want %d and %d", when, c.Held, c.HeldRate, held, rate)
		}
	}
	count("at first", guardNow, 7, 30)
	count("silent for long", guardNow.Add(minFade+time.Second), 0, 0)
	rows.Open(second, "s", guardNow)
	count("started again, nothing said yet", guardNow, 0, 0)
	rows.Add(second, Key{Room: room, Kind: Held}, 7, 0, guardNow)
	count("started again", guardNow, 7, 0)
}

// TestFormerSummariesAreRead decodes a summary that says nothing of rights, as
// an earlier release wrote it.
func TestFormerSummariesAreRead(t *testing.T) {
	by := Incarnation{testNode(0), 1}
	w := newWriter(nil)
	w.buf.Reset()
	w.uint(codecFirst)
	w.array(1)
	w.text("s")
	w.version(Version{7, by, 3})
	w.uint(3) // from 0
	w.uint(uint64(guardNow.UnixMilli()))
	w.uint(0)
	w.array(1)
	room := testRoom(0)
	w.bytes(room[:])
	w.uint(1)
	w.int(0)
	w.int(5) // active
	for range 3 {
		w.array(0)
	}
	d, err := DecodeSummaryDelta(must(w.result()))
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Pieces[0].Rooms[0].Summary; got.Active != 5 || got.Held != 0 || got.HeldRate != 0 {
		t.Errorf("got %+v, want 5 active and nothing else", got)
	}
}
