package record

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEventsSurviveTheirCoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Event{
			Kind:    Kind(rapid.IntRange(int(Entered), int(Received)).Draw(t, "kind")),
			Room:    rapid.Uint32().Draw(t, "room"),
			Anchor:  rapid.Uint64().Draw(t, "anchor"),
			Boot:    rapid.Uint32().Draw(t, "boot"),
			Block:   rapid.Uint32().Draw(t, "block"),
			Seq:     rapid.Uint64().Draw(t, "seq"),
			Visitor: rapid.Uint64().Draw(t, "visitor"),
			At:      rapid.Int64().Draw(t, "at"),
			Took:    time.Duration(rapid.Uint32().Draw(t, "took")) * time.Microsecond,
			Left:    time.Duration(rapid.Int64().Draw(t, "left")),
		}
		b := e.Append(nil)
		if len(b) != Size {
			t.Fatalf("got %d bytes, want %d", len(b), Size)
		}
		if got, err := Decode(b); err != nil || got != e {
			t.Fatalf("got %+v, %v; want %+v", got, err, e)
		}
		b[rapid.IntRange(0, Size-1).Draw(t, "at byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := Decode(b); !errors.Is(err, ErrDamaged) {
			t.Fatalf("a flipped bit: got %v", err)
		}
	})
}

// write makes a file of events at the given seconds.
func write(t *testing.T, name string, at ...float64) Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range at {
		w.Add(Event{Kind: Entered, Seq: uint64(i + 1), At: int64(s * float64(time.Second))})
	}
	return Source{Node: name, Path: path}
}

func TestMergeIsInOrderOfTime(t *testing.T) {
	a := write(t, "a", 1, 3, 2, 9, 20)
	b := write(t, "b", 2.5, 8, 9.5)
	merged := Merge([]Source{a, b, write(t, "empty")})
	var got []float64
	names := ""
	for e, err := range merged {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, float64(e.At)/float64(time.Second))
		names += e.Node
	}
	want := []float64{1, 2, 2.5, 3, 8, 9, 9.5, 20}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	if names != "aabababa" {
		t.Errorf("got events of %s, want of aabababa", names)
	}
}

func TestMergePassesOnWhatComesLate(t *testing.T) {
	n := 0
	for _, err := range Merge([]Source{write(t, "a", 1, 10, 13, 4, 16)}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 5 {
		t.Errorf("got %d events, want 5", n)
	}
}

func TestAWriteThatWasBrokenOffIsNoEvent(t *testing.T) {
	src := write(t, "a", 1, 2)
	f, err := os.OpenFile(src.Path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, Size/2)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	n := 0
	for _, err := range Merge([]Source{src}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("got %d events, want 2", n)
	}
}

func TestNoStartHidesAnother(t *testing.T) {
	src := write(t, "a", 1)
	if _, err := Create(src.Path); err == nil {
		t.Error("a record was written over")
	}
}

func BenchmarkAdd(b *testing.B) {
	w, err := Create(filepath.Join(b.TempDir(), "r"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		w.Add(Event{Kind: Entered})
	}
}
