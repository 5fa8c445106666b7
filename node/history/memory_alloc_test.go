//go:build !race

package history

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

const busyRooms = 200

// fillDay has rooms as busy as they get for a day and an hour: hundreds come, wait and stay
// in every minute, from seconds to hours.
func fillDay(t testing.TB, rooms int) *Recorder {
	r := newRecorder(t)
	chance := rand.New(rand.NewPCG(1, 2))
	// One scattered minute is made up and recorded again and again: drawing each would
	// take most of the time.
	var waits, stays live
	for range 600 {
		waits.add(time.Duration(chance.ExpFloat64() * float64(10*time.Minute)))
		stays.add(time.Duration(chance.ExpFloat64() * float64(20*time.Minute)))
	}
	for i := range int(spanMinutes) + chunkMinutes {
		now := noon.Add(time.Duration(i) * time.Minute)
		for n := range rooms {
			for range 6 {
				r.See(roomNo(n), Seen{Active: 40_000 + int64(n), Waiting: 90_000, TotalActiveUsers: 50_000, NewUsersPerMinute: 4_000}, now)
			}
			r.Count(roomNo(n), Counts{New: 800, Admitted: 600, Ended: 600, Revoked: 3}, now)
			o := &r.rooms[roomNo(n)].open
			o.waits, o.stays = waits, stays
		}
	}
	r.Advance(noon.Add(Span + 2*time.Hour))
	return r
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestDayOfManyRoomsAllocatesLittle: 200 rooms that could not be busier take less than 40 MB, and
// all of the last day is there.
func TestDayOfManyRoomsAllocatesLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("to fill the day takes seconds; make test-all runs it")
	}
	before := heap()
	r := fillDay(t, busyRooms)
	took := heap() - before
	t.Logf("%d rooms take %.1f MB, of that %.1f MB of minutes", busyRooms, float64(took)/1e6, float64(r.Bytes())/1e6)
	if took > 40e6 {
		t.Errorf("%d rooms take %d bytes, want at most 40 MB", busyRooms, took)
	}
	for n := range busyRooms {
		s := r.dayBefore(t, n, noon.Add(Span+time.Hour))
		if len(s) != int(spanMinutes) {
			t.Fatalf("room %d has %d minutes, want a day", n, len(s))
		}
		b, err := s.AppendBinary(nil)
		if err != nil || len(b) > MaxSeries {
			t.Fatalf("a day takes %d bytes on the wire (%v)", len(b), err)
		}
		if n == 0 {
			part, _ := s[0].Waits.Error()
			t.Logf("%d bytes on the wire; percentiles within %.3f", len(b), part)
		}
	}
	runtime.KeepAlive(r)
}

func BenchmarkReadDay(b *testing.B) {
	r := fillDay(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		s := r.dayBefore(b, 0, noon.Add(Span+time.Hour))
		if _, err := s.Steps(15 * time.Minute); err != nil {
			b.Fatal(err)
		}
	}
}
