package history

import (
	"testing"
	"time"
)

// TestBytesAreBounded: with too little memory the oldest hours go, of all rooms alike, and
// never more is taken than was allowed.
func TestBytesAreBounded(t *testing.T) {
	r, err := New(Config{Bytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	const minutes = 1200
	for i := range minutes {
		for n := range 5 {
			r.See(roomNo(n), Seen{Active: 100}, noon.Add(time.Duration(i)*time.Minute))
		}
		if r.Bytes() > 64<<10 {
			t.Fatalf("%d bytes after %d minutes", r.Bytes(), i)
		}
	}
	r.Advance(noon.Add(minutes * time.Minute))
	for n := range 5 {
		s := r.dayBefore(t, n, noon.Add(minutes*time.Minute))
		if len(s) < 300 || len(s) >= minutes || s[len(s)-1].At != minuteOf(noon.Add((minutes-1)*time.Minute)) {
			t.Errorf("room %d has %d minutes, the newest at %d", n, len(s), s[len(s)-1].At)
		}
	}
}

// TestRestoredBytesAreBounded: what does not fit is missing of all rooms alike, and of their
// oldest hours.
func TestRestoredBytesAreBounded(t *testing.T) {
	const rooms, minutes = 5, 1200
	from := newRecorder(t)
	busyDay(t, from, rooms, minutes)
	b, err := from.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(Config{Bytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Restore(b); err != nil {
		t.Fatal(err)
	}
	fewest, most := minutes, 0
	for n := range rooms {
		s := r.dayBefore(t, n, noon.Add(minutes*time.Minute))
		if len(s) == 0 || s[len(s)-1].At != minuteOf(noon.Add((minutes-1)*time.Minute)) {
			t.Fatalf("room %d has %d minutes, and not the newest", n, len(s))
		}
		fewest, most = min(fewest, len(s)), max(most, len(s))
	}
	if r.Bytes() > 64<<10 || most == minutes || most-fewest > chunkMinutes {
		t.Errorf("%d bytes, and %d to %d minutes", r.Bytes(), fewest, most)
	}
}

// TestPastOfARoomIsBounded: whatever the clock does, a room has a day and an hour at most.
func TestPastOfARoomIsBounded(t *testing.T) {
	r := newRecorder(t)
	for i := range 5000 {
		now := noon.Add(time.Duration(i%2) * 100 * time.Hour)
		r.Count(roomNo(1), Counts{New: 1}, now)
	}
	records := 0
	for _, c := range r.rooms[roomNo(1)].chunks {
		records += c.records
	}
	if records > int(spanMinutes)+chunkMinutes {
		t.Errorf("%d records", records)
	}
}

func BenchmarkMinute(b *testing.B) {
	r := newRecorder(b)
	now := noon
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Minute)
		for n := range 200 {
			r.See(roomNo(n), Seen{Active: 100}, now)
			r.Waited(roomNo(n), time.Minute, now)
		}
	}
}
