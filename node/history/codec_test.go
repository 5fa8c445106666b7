package history

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSeriesIsReadAsWritten: all but the resolution of scattered durations comes back, and
// what has come back once does so exactly.
func TestSeriesIsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genSeries().Draw(t, "series")
		once := recoded(t, s)
		if len(once) != len(s) {
			t.Fatalf("%d minutes, want %d", len(once), len(s))
		}
		for i := range s {
			got, want := once[i], s[i]
			got.Waits, want.Waits = got.Waits.coarsened(maxLevel), want.Waits.coarsened(maxLevel)
			got.Stays, want.Stays = got.Stays.coarsened(maxLevel), want.Stays.coarsened(maxLevel)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		if len(s) > 0 && !reflect.DeepEqual(recoded(t, once), once) {
			t.Errorf("got %+v, want %+v", recoded(t, once), once)
		}
	})
}

func recoded(t interface{ Fatal(...any) }, s Series) Series {
	b, err := s.AppendBinary([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeSeries(bytes.TrimPrefix(b, []byte("before")))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// busyDay records rooms for some hours, and returns all that was closed on the way.
func busyDay(t testing.TB, r *Recorder, rooms, minutes int) (frames [][]byte) {
	for i := range minutes {
		now := noon.Add(time.Duration(i) * time.Minute)
		for n := range rooms {
			r.See(roomNo(n), Seen{Active: int64(i), TotalActiveUsers: 500}, now)
			r.Count(roomNo(n), Counts{New: uint64(n), Admitted: uint64(i)}, now)
			r.Waited(roomNo(n), time.Duration(i)*time.Second, now)
		}
		r.Advance(now.Add(time.Minute))
		b, err := r.AppendClosed(nil)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, b)
	}
	return frames
}

// TestRecorderIsRestored: from the whole, and from the minutes as they closed, comes the same
// past; a minute that was open goes on after it.
func TestRecorderIsRestored(t *testing.T) {
	const rooms, minutes = 3, 150
	r := newRecorder(t)
	frames := busyDay(t, r, rooms, minutes)
	end := noon.Add(minutes * time.Minute)
	r.Count(roomNo(0), Counts{New: 5}, end)

	whole, err := r.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	fromWhole, fromFrames := newRecorder(t), newRecorder(t)
	if err := fromWhole.Restore(whole); err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		if err := fromFrames.Restore(f); err != nil {
			t.Fatal(err)
		}
	}
	for room := range rooms {
		want := r.dayBefore(t, room, end)
		for name, is := range map[string]*Recorder{"the whole": fromWhole, "frames": fromFrames} {
			if got := is.dayBefore(t, room, end); len(got) != minutes || !reflect.DeepEqual(got, want) {
				t.Errorf("room %d from %s: %d minutes that differ from the %d there were", room, name, len(got), len(want))
			}
		}
	}
	fromWhole.Count(roomNo(0), Counts{New: 2}, end.Add(30*time.Second))
	fromWhole.Advance(end.Add(time.Minute))
	if s := fromWhole.dayBefore(t, 0, end.Add(time.Minute)); s[len(s)-1].Counts.New != 7 || s[len(s)-1].Nodes != 1 {
		t.Errorf("got %+v, want 7 visitors of one node", s[len(s)-1])
	}
}

// TestRubbishIsRefusedWhole: an encoding that is cut off, or goes on, changes nothing.
func TestRubbishIsRefusedWhole(t *testing.T) {
	r := newRecorder(t)
	busyDay(t, r, 2, 3)
	whole, err := r.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	is := newRecorder(t)
	for n := range whole {
		if err := is.Restore(whole[:n]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(whole), err)
		}
	}
	if err := is.Restore(append(whole, 0)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a byte too many: %v", err)
	}
	good := appendRecord(nil, &Minute{At: 1, Nodes: 1}, mostHistogram)
	for name, records := range map[string][]byte{
		"a minute of two nodes":         appendRecord(nil, &Minute{At: 1, Nodes: 2}, mostHistogram),
		"a record longer than there is": append([]byte{good[0] + 1}, good[1:]...),
		"a record with more in it":      append(append([]byte{good[0] + 1}, good[1:]...), 0),
		"a length without an end":       bytes.Repeat([]byte{0xff}, 20),
	} {
		b, err := appendFrame(nil, []ofRoom{{room: roomNo(1), records: good}, {room: roomNo(2), records: records[:len(records):len(records)]}})
		if err != nil {
			t.Fatal(err)
		}
		if err := is.Restore(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(is.Rooms()) != 0 {
		t.Errorf("%d rooms of encodings that were refused", len(is.Rooms()))
	}
	s := r.dayBefore(t, 1, noon.Add(time.Hour))
	for name, wrong := range map[string]Series{
		"twice the same minute": {s[0], s[0]},
		"minutes back":          {s[1], s[0]},
		"nobody's":              {{At: 1}},
		"from beyond":           {{At: maxMinute + 1, Nodes: 1}},
		"too much in no sample": {{At: 1, Nodes: 1, Gauges: Gauges{Samples: 1, ActiveSum: 2, ActiveMax: 1}}},
		"too many samples":      {{At: 1, Nodes: 1, Gauges: Gauges{Samples: maxSamples + 1}}},
		"beyond all cells":      {{At: 1, Nodes: 1, Waits: Histogram{0, []cell{{cells, 1}}}}},
		"no such level":         {{At: 1, Nodes: 1, Waits: Histogram{maxLevel + 1, []cell{{1, 1}}}}},
		"a count of nothing":    {{At: 1, Nodes: 1, Waits: Histogram{0, []cell{{1, 0}}}}},
	} {
		b, err := wrong.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeSeries(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRestore(f *testing.F) {
	r := newRecorder(f)
	busyDay(f, r, 2, 3)
	whole, err := r.AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte{1, 0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRecorder(t)
		if r.Restore(data) != nil {
			if r.Bytes() != 0 || len(r.Rooms()) != 0 {
				t.Error("something was taken of what was refused")
			}
			return
		}
		// Whatever was taken can be read, written and taken again.
		for _, room := range r.Rooms() {
			for from := int64(0); from < maxMinute; from += maxMinute / 4 {
				if _, err := r.Read(room, time.Unix(from*60, 0), time.Unix(from*60, 0).Add(Span)); err != nil {
					t.Fatal(err)
				}
			}
		}
		b, err := r.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := newRecorder(t).Restore(b); err != nil {
			t.Errorf("what was written is refused: %v", err)
		}
	})
}

func FuzzDecodeSeries(f *testing.F) {
	s := Series{{At: 5, Nodes: 2, Gauges: Gauges{Samples: 2, ActiveSum: 3, ActiveMax: 2}, Waits: Of(time.Second, time.Hour), Stays: Of(time.Minute)}}
	b, err := s.AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := DecodeSeries(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("error %v does not say that the encoding is malformed", err)
			}
			return
		}
		if points, err := s.Steps(time.Hour); err != nil || len(AppendJSON(nil, points)) < 2 {
			t.Errorf("%d points (%v)", len(points), err)
		}
		again := recoded(t, s)
		if len(again) != len(s) {
			t.Fatalf("%d minutes, want %d", len(again), len(s))
		}
		for i := range s {
			if again[i].Waits.Count() != s[i].Waits.Count() || again[i].Counts != s[i].Counts || again[i].Gauges != s[i].Gauges {
				t.Errorf("got %+v, want %+v", again[i], s[i])
			}
		}
	})
}
