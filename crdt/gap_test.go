package crdt

import "testing"

// TestRowGap checks that what comes after a hole counts, and is not promised.
func TestRowGap(t *testing.T) {
	owner := Incarnation{testNode(0), 1}
	src := new(Rows)
	src.Open(owner, "s", guardNow) // change 1
	seen := Key{testRoom(0), Seen, TickOf(guardNow)}
	active := Key{Room: testRoom(0), Kind: Active}
	src.Add(owner, seen, 1, 0, guardNow)   // 2
	src.Add(owner, active, 1, 0, guardNow) // 3
	early := src.DeltaOf(owner, 0, 0).Pieces[0]
	src.Add(owner, seen, 1, 0, guardNow)   // 4
	src.Add(owner, active, 1, 0, guardNow) // 5
	src.Close(owner, TickOf(guardNow)-1, guardNow)
	late := src.DeltaOf(owner, 4, 0).Pieces[0]

	r := new(Rows)
	for _, step := range []struct {
		piece        RowPiece
		gap          bool
		known        uint64
		seen, active int64
		closed       int64
	}{
		{early, false, 3, 1, 1, 0},
		{late, true, 3, 1, 2, 0},
		{src.DeltaOf(owner, 3, 0).Pieces[0], false, 6, 2, 2, TickOf(guardNow) - 1},
	} {
		if gap := must(r.Apply(step.piece, guardNow)); gap != step.gap {
			t.Errorf("(%d, %d]: gap %v, want %v", step.piece.From, step.piece.To, gap, step.gap)
		}
		c, h := r.Count(owner, testRoom(0), guardNow, Retention{}), must2(r.Header(owner))
		if r.Known(owner) != step.known || c.Seen[seen.Tick] != step.seen || c.Active != step.active || h.Closed != step.closed {
			t.Errorf("after (%d, %d]: known %d, counts %+v, closed %d, want %+v", step.piece.From, step.piece.To, r.Known(owner), c, h.Closed, step)
		}
		// Whatever r passes on must be honest.
		other := new(Rows)
		for _, p := range r.Delta(nil, 0).Pieces {
			must(other.Apply(p, guardNow))
		}
		if other.Known(owner) != step.known {
			t.Errorf("passed on up to %d, want %d", other.Known(owner), step.known)
		}
	}
}

func must2[T any](v T, ok bool) T {
	if !ok {
		panic("not there")
	}
	return v
}

// TestSummaryGap checks that the first words of a new publisher are not taken
// for all it has said.
func TestSummaryGap(t *testing.T) {
	by, next := Incarnation{testNode(0), 1}, Incarnation{testNode(1), 1}
	src := new(Summaries)
	src.TakeOver("s", by, 0, guardNow)
	src.Publish("s", by, testRoom(0), Summary{Active: 1}, guardNow)
	src.Publish("s", by, testRoom(1), Summary{Active: 2}, guardNow)
	r := src.Clone()
	before := r.Known("s")

	src.TakeOver("s", next, 0, guardNow) // says both rooms again
	mid := src.Known("s")
	src.Publish("s", next, testRoom(0), Summary{Active: 5}, guardNow)
	late := src.Delta(SummaryDigest{"s": mid}, 0).Pieces[0]
	if gap := must(r.Apply(late, guardNow)); !gap {
		t.Error("no gap before the later words of a publisher not heard yet")
	}
	if r.Known("s") != before {
		t.Errorf("known %v, want %v", r.Known("s"), before)
	}
	for i, want := range []int64{5, 2} {
		if got := r.Count("s", testRoom(i), guardNow, Retention{}).Active; got != want {
			t.Errorf("room %d: active %d, want %d", i, got, want)
		}
	}
	if d := r.Delta(nil, 0); !d.Empty() {
		t.Errorf("passed on with a hole: %+v", d)
	}
	for _, p := range src.Delta(r.Digest(), 0).Pieces {
		if gap := must(r.Apply(p, guardNow)); gap {
			t.Error("a gap before everything")
		}
	}
	if r.Known("s") != src.Known("s") {
		t.Errorf("known %v, want %v", r.Known("s"), src.Known("s"))
	}
}

// TestWriteGap checks that writes behind a hole are left aside until it is filled. Should their
// writer lose its disk before, nobody has them, instead of one node alone.
func TestWriteGap(t *testing.T) {
	var clock Clock
	writer, src := testNode(0), new(LWW)
	for _, key := range []string{"a", "b"} {
		if err := src.Set(key, []byte(key), clock.Now(guardNow, writer)); err != nil {
			t.Fatal(err)
		}
	}
	all := src.Delta(nil, 0).Pieces[0]
	late := src.Delta(LWWDigest{writer: all.Writes[0].At}, 0).Pieces[0]
	var r LWW
	if gap := must(r.Apply(late, &clock, guardNow)); !gap || r.Len() > 0 || len(r.Digest()) > 0 {
		t.Errorf("gap %v, and %d keys of %v are held", gap, r.Len(), r.Digest())
	}
	for _, p := range []LWWPiece{all, late} {
		if gap := must(r.Apply(p, &clock, guardNow)); gap || r.Len() != 2 {
			t.Errorf("gap %v, and %d keys are held", gap, r.Len())
		}
	}
}
