package history

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ropeline/ropeline/crdt"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func roomNo(n int) (id crdt.RoomID) {
	binary.BigEndian.PutUint32(id[:], uint32(n)+1)
	return id
}

func newRecorder(t interface{ Fatal(...any) }) *Recorder {
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// dayBefore reads the day that ends at a time.
func (r *Recorder) dayBefore(t interface{ Fatal(...any) }, room int, end time.Time) Series {
	s, err := r.Read(roomNo(room), end.Add(-Span), end)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMinuteIsReadAsItWasRecorded: what is said in a minute is read when it has closed, and
// not before.
func TestMinuteIsReadAsItWasRecorded(t *testing.T) {
	r := newRecorder(t)
	for i := range 6 {
		now := noon.Add(time.Duration(i) * 10 * time.Second)
		r.See(roomNo(1), Seen{Active: int64(10 * i), Waiting: 5, TotalActiveUsers: 100, NewUsersPerMinute: int64(20 + i)}, now)
		r.Count(roomNo(1), Counts{New: 3, Admitted: 2}, now)
	}
	r.Waited(roomNo(1), 90*time.Second, noon)
	r.Stayed(roomNo(1), 10*time.Minute, noon.Add(59*time.Second))
	if s := r.dayBefore(t, 1, noon.Add(time.Hour)); len(s) != 0 {
		t.Errorf("the open minute is read: %+v", s)
	}
	if r.Advance(noon.Add(59 * time.Second)); len(r.closed) > 0 {
		t.Error("the minute is closed before its end")
	}
	if !r.Advance(noon.Add(time.Minute)) {
		t.Error("the minute is not closed at its end")
	}
	got := r.dayBefore(t, 1, noon.Add(time.Hour))
	want := Series{{
		At: noon.Unix() / 60, Nodes: 1,
		Gauges: Gauges{Samples: 6, ActiveSum: 150, ActiveMax: 50, WaitingSum: 30, WaitingMax: 5, TotalActiveUsers: 100, NewUsersPerMinute: 25},
		Counts: Counts{New: 18, Admitted: 12}, Waits: Of(90 * time.Second), Stays: Of(10 * time.Minute),
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if s := r.dayBefore(t, 2, noon.Add(time.Hour)); len(s) != 0 {
		t.Errorf("another room has %+v", s)
	}
}

func TestRangeAndStepAreBounded(t *testing.T) {
	r := newRecorder(t)
	for _, span := range []time.Duration{0, -time.Hour, Span + time.Minute} {
		if _, err := r.Read(roomNo(1), noon, noon.Add(span)); err == nil {
			t.Errorf("a range of %s is read", span)
		}
	}
	for _, step := range []time.Duration{0, -time.Minute, time.Second, 90 * time.Second, Span + time.Minute} {
		if _, err := (Series{}).Steps(step); err == nil {
			t.Errorf("a step of %s is taken", step)
		}
	}
	for _, c := range []Config{{Rooms: -1}, {Rooms: 100_001}, {Bytes: 1}, {Bytes: 2 << 30}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// TestStepsAddUp: a step has the sums of its minutes, the average of their averages, and the
// limits of the last of them; steps in which nothing was recorded are left out.
func TestStepsAddUp(t *testing.T) {
	r := newRecorder(t)
	for i, active := range []int64{10, 20, 60} {
		now := noon.Add(time.Duration(i) * time.Minute)
		for range i + 1 { // a minute counts once, however often it was looked at
			r.See(roomNo(1), Seen{Active: active, TotalActiveUsers: 100 + int64(i)}, now)
		}
		r.Count(roomNo(1), Counts{New: uint64(i), Admitted: 4}, now)
		r.Waited(roomNo(1), time.Duration(i)*time.Minute, now)
	}
	r.Count(roomNo(1), Counts{Ended: 1}, noon.Add(time.Hour))
	r.Advance(noon.Add(2 * time.Hour))
	points, err := r.dayBefore(t, 1, noon.Add(2*time.Hour)).Steps(15 * time.Minute)
	if err != nil || len(points) != 2 {
		t.Fatalf("%d points (%v), want 2", len(points), err)
	}
	p := points[0]
	if !p.At.Equal(noon) || p.Minutes != 3 || p.Nodes != 1 || p.ActiveAvg != 30 || p.ActiveMax != 60 || p.TotalActiveUsers != 102 ||
		p.Counts != (Counts{New: 3, Admitted: 12}) || p.Waits.Count() != 3 {
		t.Errorf("got %+v", p)
	}
	if p := points[1]; !p.At.Equal(noon.Add(time.Hour)) || p.Minutes != 1 || p.Seen || p.Counts.Ended != 1 {
		t.Errorf("got %+v", p)
	}
}

// TestGaugesOfTheWholeRoomAreTakenOnce: three nodes look at the same room; who looked most
// often is believed, and what each did itself adds up.
func TestGaugesOfTheWholeRoomAreTakenOnce(t *testing.T) {
	var all []Series
	for node, active := range []int64{1000, 40, 41} {
		r := newRecorder(t)
		for range 1 + 2*node {
			r.See(roomNo(1), Seen{Active: active}, noon)
		}
		r.Count(roomNo(1), Counts{Admitted: 7}, noon)
		r.Advance(noon.Add(time.Minute))
		all = append(all, r.dayBefore(t, 1, noon.Add(time.Minute)))
	}
	got := Merge(all...)
	if len(got) != 1 || got[0].Gauges.ActiveMax != 41 || got[0].Gauges.Samples != 5 || got[0].Counts.Admitted != 21 || got[0].Nodes != 3 {
		t.Errorf("got %+v, want the gauges of the third and the counts of all", got)
	}
}

// TestRoomsAreBounded: the third of two rooms is counted and forgotten, and has a place when
// another one is forgotten.
func TestRoomsAreBounded(t *testing.T) {
	r, err := New(Config{Rooms: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r.Count(roomNo(i), Counts{New: 1}, noon)
	}
	if r.Refused() != 1 || len(r.Rooms()) != 2 {
		t.Errorf("%d refused of 3, and %d rooms, want 1 and 2", r.Refused(), len(r.Rooms()))
	}
	r.Advance(noon.Add(time.Minute))
	r.Forget(roomNo(0))
	r.Forget(roomNo(1))
	if r.Bytes() != 0 {
		t.Errorf("%d bytes of no room", r.Bytes())
	}
	if r.Count(roomNo(2), Counts{New: 1}, noon.Add(time.Minute)); len(r.Rooms()) != 1 {
		t.Error("a room that was forgotten still takes a place")
	}
}

func genDuration() *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		// Evenly over the octaves, and the odd ones.
		top := time.Duration(math.Exp2(rapid.Float64Range(0, 50).Draw(t, "octave")))
		return rapid.SampledFrom([]time.Duration{top, 0, -time.Second, time.Second, time.Minute, longest, 10 * longest}).Draw(t, "duration")
	})
}

func genSeries() *rapid.Generator[Series] {
	return rapid.Custom(func(t *rapid.T) Series {
		var s Series
		for at := range int64(4) {
			if rapid.Bool().Draw(t, "recorded") {
				s = append(s, genMinute(at+100).Draw(t, "minute"))
			}
		}
		return s
	})
}

func genMinute(at int64) *rapid.Generator[Minute] {
	return rapid.Custom(func(t *rapid.T) Minute {
		m := Minute{At: at, Nodes: rapid.Int64Range(1, 3).Draw(t, "nodes")}
		for range rapid.IntRange(0, 3).Draw(t, "samples") {
			m.Gauges.see(Seen{
				Active: rapid.Int64Range(-1, 3).Draw(t, "active"), Waiting: rapid.Int64().Draw(t, "waiting"),
				TotalActiveUsers: rapid.Int64Range(0, 2).Draw(t, "limit"),
			})
		}
		small := rapid.Uint64Range(0, 1000)
		m.Counts = Counts{small.Draw(t, "new"), small.Draw(t, "admitted"), small.Draw(t, "ended"), small.Draw(t, "revoked")}
		level := rapid.Uint8Range(0, maxLevel)
		m.Waits = Of(rapid.SliceOfN(genDuration(), 0, 40).Draw(t, "waits")...).coarsened(level.Draw(t, "level"))
		m.Stays = Of(rapid.SliceOfN(genDuration(), 0, 40).Draw(t, "stays")...)
		return m
	})
}

func TestMergeIsCommutativeAndAssociative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := genSeries().Draw(t, "a"), genSeries().Draw(t, "b"), genSeries().Draw(t, "c")
		before := [][]Minute{slices.Clone(a), slices.Clone(b), slices.Clone(c)}
		same := func(law string, x, y Series) {
			if len(x)+len(y) > 0 && !reflect.DeepEqual(x, y) {
				t.Errorf("%s:\n%+v\n%+v", law, x, y)
			}
		}
		same("a+b = b+a", Merge(a, b), Merge(b, a))
		same("(a+b)+c = a+(b+c)", Merge(Merge(a, b), c), Merge(a, Merge(b, c)))
		same("a+b+c at once", Merge(a, b, c), Merge(c, Merge(b, a)))
		same("a+nothing = a", Merge(a, nil), a)
		same("a is not changed", a, before[0])
		same("b is not changed", b, before[1])
		same("c is not changed", c, before[2])
	})
}

// TestNodesAddUpToOne: what happens at several nodes, and is merged, is what one node would
// have recorded at which all of it happened.
func TestNodesAddUpToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := newRecorder(t)
		nodes := []*Recorder{newRecorder(t), newRecorder(t), newRecorder(t)}
		now := noon
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "later"))
			room, d := roomNo(rapid.IntRange(0, 1).Draw(t, "room")), genDuration().Draw(t, "duration")
			for _, r := range []*Recorder{one, rapid.SampledFrom(nodes).Draw(t, "node")} {
				r.Count(room, Counts{Admitted: 1, Ended: 2}, now)
				r.Waited(room, d, now)
				r.Stayed(room, 2*d, now)
			}
		}
		end := now.Add(2 * time.Minute)
		for _, r := range append(nodes, one) {
			r.Advance(end)
		}
		for room := range 2 {
			var parts []Series
			for _, r := range nodes {
				parts = append(parts, r.dayBefore(t, room, end))
			}
			got, want := Merge(parts...), one.dayBefore(t, room, end)
			for i := range got {
				got[i].Nodes = 1
			}
			if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	})
}

// TestEqualInputGivesEqualState: down to the byte, whatever the order of maps.
func TestEqualInputGivesEqualState(t *testing.T) {
	var first []byte
	for range 5 {
		r, err := New(Config{Bytes: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		busyDay(t, r, 20, 200)
		b, err := r.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if string(b) != string(first) {
			t.Fatal("the same input gave another state")
		}
	}
}

// TestPercentilesAreWithinTheStatedError holds them against sorted durations, of one node
// and of several, as they come out of memory.
func TestPercentilesAreWithinTheStatedError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []time.Duration
		var parts []Series
		for range rapid.IntRange(1, 3).Draw(t, "nodes") {
			r := newRecorder(t)
			for _, d := range rapid.SliceOfN(genDuration(), 0, 150).Draw(t, "durations") {
				r.Waited(roomNo(1), d, noon)
				all = append(all, min(max(d, 0), longest))
			}
			r.Advance(noon.Add(time.Minute))
			part := r.dayBefore(t, 1, noon.Add(time.Minute))
			if len(part) > 0 { // as if the node had other rooms as well
				part[0].Waits = part[0].Waits.coarsened(rapid.Uint8Range(0, maxLevel).Draw(t, "level"))
			}
			parts = append(parts, part)
		}
		points, err := Merge(parts...).Steps(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			return
		}
		slices.Sort(all)
		h := points[0].Waits
		if h.Count() != uint64(len(all)) {
			t.Fatalf("%d durations were counted, want %d", h.Count(), len(all))
		}
		part, least := h.Error()
		for _, p := range []float64{0, .01, .5, .75, .95, .99, 1} {
			want := all[max(1, int(math.Ceil(p*float64(len(all)))))-1]
			got, _ := h.Percentile(p)
			if off := (got - want).Abs(); off > max(least, time.Duration(part*float64(want))) {
				t.Errorf("p%g is %s, want %s within %g or %s", 100*p, got, want, part, least)
			}
		}
	})
}

// TestDurationsAreKeptAsFinelyAsMemoryAllows: what a first come first served room gives in a
// minute is kept finely however many rooms there are; what is scattered, where few rooms
// are.
func TestDurationsAreKeptAsFinelyAsMemoryAllows(t *testing.T) {
	for _, c := range []struct {
		rooms          int
		close, distant uint8 // levels
	}{{1, 0, 0}, {20, 0, 0}, {200, 0, 3}} {
		r := newRecorder(t)
		for n := range c.rooms {
			for i := range 500 {
				r.Waited(roomNo(n), 10*time.Minute+time.Duration(i)*time.Second/4, noon)
				r.Stayed(roomNo(n), time.Duration(i*i*i)*time.Millisecond, noon)
			}
		}
		r.Advance(noon.Add(time.Minute))
		m := r.dayBefore(t, 0, noon.Add(time.Minute))[0]
		if m.Waits.level != c.close || m.Stays.level > c.distant {
			t.Errorf("with %d rooms kept at levels %d and %d, want %d and at most %d", c.rooms, m.Waits.level, m.Stays.level, c.close, c.distant)
		}
	}
	if _, ok := (Histogram{}).Percentile(.5); ok {
		t.Error("an empty histogram has a median")
	}
}

// TestClockThatJumpsLosesNothing walks the clock back and forth, and finds every visitor
// under the minute that the clock showed.
func TestClockThatJumpsLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRecorder(t)
		want := map[int64]uint64{}
		now, open := noon, int64(0)
		jump := rapid.SampledFrom([]time.Duration{
			time.Second, time.Minute, -time.Second, -time.Minute, -2 * time.Minute,
			-time.Hour, time.Hour, 25 * time.Hour, -25 * time.Hour, 90_000 * time.Hour, -90_000 * time.Hour, -900_000 * time.Hour,
		})
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(jump.Draw(t, "jump"))
			if m := minuteOf(now); m != open && m != open-1 {
				open = m
			}
			r.Count(roomNo(1), Counts{New: 1}, now)
			want[open]++
		}
		delete(want, open) // is not closed
		if len(r.rooms[roomNo(1)].chunks) >= int(maxChunks) {
			t.Fatal("the test fills the memory")
		}
		for at, n := range want {
			s, err := r.Read(roomNo(1), time.Unix(at*60, 0), time.Unix(at*60+60, 0))
			if err != nil {
				t.Fatal(err)
			}
			if len(s) != 1 || s[0].Counts.New != n || s[0].Nodes != 1 {
				t.Errorf("minute %d is %+v, want %d visitors", at, s, n)
			}
		}
	})
}
