package room

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// eventRoom has an event from 10 to 11 with a pre-queue from 9:30:10 on.
func eventRoom(t testing.TB, change func(e *Event)) Settings {
	t.Helper()
	e := Event{Name: "sale", PrequeueStart: clock(t, "09:30:10"), Start: clock(t, "10:00"), End: clock(t, "11:00")}
	if change != nil {
		change(&e)
	}
	s := Settings{Name: "shop", Policy: Even, TotalActiveUsers: 10, NewUsersPerMinute: 10, Events: []Event{e}}.WithDefaults()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAtHoldsFromStartUpToEnd(t *testing.T) {
	s := eventRoom(t, func(e *Event) {
		e.TotalActiveUsers, e.NewUsersPerMinute = new(7), new(5)
		e.QueueingMethod, e.SessionDuration, e.DisableSessionRenewal = new(Random), new(time.Minute), new(true)
	})
	for _, c := range []struct {
		at             string
		active, queues bool
	}{
		{"09:30:09.999", false, false},
		{"09:30:10", false, true},
		{"09:59:59.999", false, true},
		{"10:00", true, false},
		{"10:59:59.999", true, false},
		{"11:00", false, false},
	} {
		got, e := s.At(clock(t, c.at))
		if e.Active != c.active || e.Prequeueing != c.queues || (e.Name == "sale") != (c.active || c.queues) {
			t.Errorf("%s: %+v", c.at, e)
		}
		want := s
		if c.active {
			want.TotalActiveUsers, want.NewUsersPerMinute, want.QueueingMethod = 7, 5, Random
			want.SessionDuration, want.DisableSessionRenewal = time.Minute, true
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: settings %+v, want %+v", c.at, got, want)
		}
	}
	for name, change := range map[string]func(s *Settings){
		"the event is suspended": func(s *Settings) { s.Events = []Event{s.Events[0]}; s.Events[0].Suspended = true },
		"the room is suspended":  func(s *Settings) { s.Suspended = true },
	} {
		other := s
		change(&other)
		if got, e := other.At(clock(t, "10:30")); e != (EventState{}) || got.TotalActiveUsers != 10 {
			t.Errorf("%s, but %+v is under way", name, e)
		}
	}
}

// TestEventsAreChecked: each mistake in an event is one error that names its field.
func TestEventsAreChecked(t *testing.T) {
	for field, damage := range map[string]func(s *Settings){
		"events[0].name":                   func(s *Settings) { s.Events[0].Name = "" },
		"events[0].event-start-time":       func(s *Settings) { s.Events[0] = Event{Name: "e", End: clock(t, "11:00")} },
		"events[0].event-end-time":         func(s *Settings) { s.Events[0].End = s.Events[0].Start.Add(time.Minute - 1) },
		"events[0].prequeue-start-time":    func(s *Settings) { s.Events[0].PrequeueStart = s.Events[0].Start.Add(-12*time.Hour - 1) },
		"events[0].shuffle-at-event-start": func(s *Settings) { s.Events[0].PrequeueStart, s.Events[0].Shuffle = time.Time{}, true },
		"events[0].new-users-per-minute":   func(s *Settings) { s.Events[0].TotalActiveUsers = new(5) },
		"events[0].total-active-users":     func(s *Settings) { s.Events[0].TotalActiveUsers, s.Events[0].NewUsersPerMinute = new(0), new(1) },
		"events[0].session-duration":       func(s *Settings) { s.Events[0].SessionDuration = new(time.Millisecond) },
		"events[0].queueing-method":        func(s *Settings) { s.Events[0].QueueingMethod = new(Method("lifo")) },
		"events[1].event-start-time": func(s *Settings) { // ends inside the pre-queue of the first
			s.Events = append(s.Events, Event{Name: "e", Start: clock(t, "09:00"), End: clock(t, "09:30:11")})
		},
	} {
		s := eventRoom(t, nil)
		damage(&s)
		err := s.Validate()
		fe, ok := errors.AsType[*FieldError](err)
		joined, _ := err.(interface{ Unwrap() []error })
		if !ok || fe.Field != field || fe.Allowed == "" || len(joined.Unwrap()) != 1 {
			t.Errorf("%s: got error %v", field, err)
		}
	}
	for name, change := range map[string]func(s *Settings){
		"one ends as the other begins": func(s *Settings) {
			s.Events = append(s.Events, Event{Name: "e", Start: clock(t, "09:00"), End: clock(t, "09:30:10")})
		},
		"one of two is suspended": func(s *Settings) {
			s.Events = append(s.Events, s.Events[0])
			s.Events[1].Suspended = true
		},
		"limits of one": func(s *Settings) { s.Events[0].TotalActiveUsers, s.Events[0].NewUsersPerMinute = new(1), new(1) },
	} {
		s := eventRoom(t, nil)
		change(&s)
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlaceKeepsOrder: without shuffle nobody overtakes, and those of the
// pre-queue stand in buckets of their own, behind who came before and ahead of who
// comes after.
func TestPlaceKeepsOrder(t *testing.T) {
	for _, span := range []time.Duration{time.Second, 7 * time.Second, time.Minute} {
		s := eventRoom(t, nil)
		s.BucketSpan = span
		before := clock(t, "09:20")
		last := s.Place(nil, visitorID(0), before)
		for at := before; at.Before(clock(t, "10:10")); at = at.Add(777 * time.Millisecond) {
			p := s.Place(nil, visitorID(1), at)
			if p.Before(last) {
				t.Fatalf("%v: place %v is before %v", at, p, last)
			}
			member := s.Events[0].queued(at)
			if !member && !p.Equal(at) || member && (p.Before(at) || !p.Before(s.Events[0].Start)) {
				t.Fatalf("%v: place %v", at, p)
			}
			if member && BucketOf(p, span) <= BucketOf(s.Events[0].PrequeueStart.Add(-time.Nanosecond), span) {
				t.Fatalf("%v: %v shares a bucket with who came before", at, p)
			}
			last = p
		}
	}
}

// TestShuffleIsFair: places are even over the pre-queue, and know nothing of the
// arrival; another event, another key or another visitor draws another one.
func TestShuffleIsFair(t *testing.T) {
	s := eventRoom(t, func(e *Event) { e.Shuffle = true })
	e := s.Events[0]
	from, key := e.held(s.BucketSpan), []byte("a key")
	const n = 20_000
	var tenths [10]int
	var sx, sy, sxx, syy, sxy float64
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		arrival := e.PrequeueStart.Add(time.Duration(rng.Int64N(int64(e.Start.Sub(e.PrequeueStart)))))
		p := s.Place(key, visitorID(i), arrival)
		y := float64(p.Sub(from)) / float64(e.Start.Sub(from))
		if y < 0 || y >= 1 {
			t.Fatalf("place %v is outside", p)
		}
		tenths[int(y*10)]++
		x := float64(arrival.Sub(e.PrequeueStart))
		sx, sy, sxx, syy, sxy = sx+x, sy+y, sxx+x*x, syy+y*y, sxy+x*y
	}
	for i, got := range tenths {
		if math.Abs(float64(got)-n/10) > 5*math.Sqrt(n/10) {
			t.Errorf("%d of %d in tenth %d", got, n, i)
		}
	}
	r := (n*sxy - sx*sy) / math.Sqrt((n*sxx-sx*sx)*(n*syy-sy*sy))
	if math.Abs(r) > 4/math.Sqrt(n) {
		t.Errorf("correlation of place and arrival %f", r)
	}
	arrival := clock(t, "09:40")
	p := s.Place(key, visitorID(1), arrival)
	if !p.Equal(s.Place(key, visitorID(1), arrival.Add(time.Minute))) {
		t.Error("the place depends on the arrival")
	}
	later := eventRoom(t, func(e *Event) { e.Shuffle, e.Start = true, clock(t, "10:00:01") })
	for name, q := range map[string]time.Time{
		"key":     s.Place([]byte("b key"), visitorID(1), arrival),
		"visitor": s.Place(key, visitorID(2), arrival), "event": later.Place(key, visitorID(1), arrival),
	} {
		if p.Equal(q) {
			t.Errorf("another %s draws the same place", name)
		}
	}
}

// TestPlaceHoldsThroughout: the place of a visitor is the same before, during and
// after the event, with the settings that hold at each time.
func TestPlaceHoldsThroughout(t *testing.T) {
	s := eventRoom(t, func(e *Event) { e.Shuffle, e.QueueingMethod = true, new(Random) })
	want := s.Place(nil, visitorID(3), clock(t, "09:45"))
	for _, at := range []string{"09:45", "10:30", "11:30"} {
		now, _ := s.At(clock(t, at))
		if got := now.Place(nil, visitorID(3), clock(t, "09:45")); !got.Equal(want) {
			t.Errorf("at %s: %v, want %v", at, got, want)
		}
	}
}

func TestJitter(t *testing.T) {
	at := clock(t, "12:00")
	for _, every := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 20 * time.Second, 10 * time.Minute} {
		s := Settings{QueueingMethod: Random, RefreshInterval: every}.WithDefaults()
		least, most := s.refreshRange()
		got := map[time.Duration]int{}
		sum := time.Duration(0)
		const n = 5000
		for i := range n {
			j := s.Jitter(visitorID(i%50), at.Add(time.Duration(i)*time.Second))
			got[j]++
			sum += j
			if j < least || j > most || j%time.Second != 0 || j < time.Second {
				t.Fatalf("%v: interval %v is not within %v and %v", every, j, least, most)
			}
		}
		if want := int((most-least)/time.Second) + 1; len(got) != want {
			t.Errorf("%v: %d different intervals, want %d", every, len(got), want)
		}
		if mean := float64(sum) / n / float64(least+most) * 2; mean < 0.97 || mean > 1.03 {
			t.Errorf("%v: mean interval %v", every, sum/n)
		}
		s.QueueingMethod = FIFO
		if s.Jitter(visitorID(1), at) != every {
			t.Errorf("%v: under fifo the interval is %v", every, s.Jitter(visitorID(1), at))
		}
	}
}

// FuzzAt: nothing that events may hold makes settings or places panic, and a
// valid one never overlaps another.
func FuzzAt(f *testing.F) {
	f.Add(int64(0), int64(600), int64(3600), int64(300), true, []byte("x"))
	f.Add(int64(-1<<62), int64(1<<62), int64(0), int64(1), false, []byte{})
	f.Fuzz(func(t *testing.T, a, b, c, arrival int64, shuffle bool, key []byte) {
		base := time.Unix(1_767_268_800, 0)
		at := func(s int64) time.Time { return base.Add(time.Duration(s) * time.Second) }
		s := Settings{Policy: Even, TotalActiveUsers: 5, NewUsersPerMinute: 5, BucketSpan: time.Duration(uint8(a)) * time.Second, Events: []Event{
			{Name: "a", PrequeueStart: at(a), Start: at(b), End: at(c), Shuffle: shuffle},
			{Name: "b", Start: at(b + 1), End: at(c), QueueingMethod: new(Method("?"))},
		}}
		for i := range s.Events {
			s.Events[i].Suspended = binary.LittleEndian.Uint64(append(key, 0, 0, 0, 0, 0, 0, 0, 0))>>i&1 == 1
		}
		now := at(arrival)
		_, e := s.At(now)
		if e.Active && e.Prequeueing {
			t.Error("an event is active before its start")
		}
		p := s.Place(key, visitorID(int(arrival)), now)
		for i := range s.Events {
			if ev := &s.Events[i]; ev.queued(now) && (p.Before(ev.PrequeueStart) || !p.Before(ev.Start)) && s.Validate() == nil {
				t.Errorf("place %v is outside the pre-queue", p)
			}
		}
		in := oneSite(benchCounts(now), 2, 0)
		v := Build(s, in, now)
		checkView(t, v, &in)
		v.Estimate(p, Shown{Terms: uint32(a), Minutes: uint16(b)})
	})
}
