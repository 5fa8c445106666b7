package room

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// benchCounts is a small room with somebody everywhere.
func benchCounts(now time.Time) crdt.Counts {
	tick := crdt.TickOf(now)
	return crdt.Counts{
		Active:   3,
		Waiting:  map[int64]int64{now.Unix() - 200: 2, now.Unix() - 70: 3, now.Unix() - 5: 4},
		Seen:     map[int64]int64{tick - 12: 5, tick - 13: 2},
		Admitted: map[int64]int64{tick - 1: 2, tick - 9: 4},
	}
}

// TestEstimateNeverRises: whatever becomes of the line and of the rate, whoever
// stays is not told more than before, under any method, until the operator
// changes something. Then the truth is told again.
func TestEstimateNeverRises(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		now := clock(t, "12:00:31")
		s := Settings{Policy: Even, TotalActiveUsers: 50, NewUsersPerMinute: 50, QueueingMethod: []Method{FIFO, Random}[seed%2]}
		place := now.Add(-time.Duration(rng.IntN(200)) * time.Second)
		var shown Shown
		last := Estimate{}
		for range 60 {
			now = now.Add(10 * time.Second)
			changed := rng.IntN(15) == 0
			if changed {
				s.NewUsersPerMinute = 1 + rng.IntN(100)
			}
			tick := crdt.TickOf(now)
			c := crdt.Counts{Active: 50, Waiting: map[int64]int64{}, Admitted: map[int64]int64{}}
			for range rng.IntN(5) {
				c.Waiting[now.Unix()-rng.Int64N(400)] += rng.Int64N(300)
				c.Admitted[tick-rng.Int64N(30)] += rng.Int64N(20)
			}
			v := Build(s, oneSite(c, 1, 0), now)
			fresh, _ := v.Estimate(place, Shown{})
			e, told := v.Estimate(place, shown)
			before := shown
			shown = told
			if e.Known != fresh.Known || e.Ahead != fresh.Ahead {
				t.Fatalf("seed %d: %+v, to somebody new %+v", seed, e, fresh)
			}
			if !e.Known {
				continue
			}
			if s.QueueingMethod == Random && (e.P25 > e.Minutes || e.Minutes > e.P75) {
				t.Fatalf("seed %d: percentiles %+v", seed, e)
			}
			switch {
			case before.Terms != v.Terms:
				if e != fresh {
					t.Fatalf("seed %d: new terms, but %+v instead of %+v", seed, e, fresh)
				}
			case before.Minutes > 0 && (e.Minutes > last.Minutes || e.P25 > last.P25 || e.P75 > last.P75):
				t.Fatalf("seed %d: rose from %+v to %+v", seed, last, e)
			case e.Minutes > fresh.Minutes || e.P75 > fresh.P75:
				t.Fatalf("seed %d: told %+v, it is %+v", seed, e, fresh)
			}
			last = e
		}
	}
}

// TestTerms: what the operator sets and what an event does to it change the terms;
// a name or a page does not.
func TestTerms(t *testing.T) {
	now := clock(t, "10:30")
	at := func(change func(s *Settings)) uint32 {
		s := Settings{Policy: Even, TotalActiveUsers: 10, NewUsersPerMinute: 10}
		change(&s)
		return Build(s, Input{}, now).Terms
	}
	plain := at(func(*Settings) {})
	if plain == 0 {
		t.Error("terms are 0, which means none")
	}
	event := Event{Name: "sale", Start: now, End: now.Add(time.Hour)}
	for name, change := range map[string]func(s *Settings){
		"active users": func(s *Settings) { s.TotalActiveUsers++ },
		"new users":    func(s *Settings) { s.NewUsersPerMinute++ },
		"method":       func(s *Settings) { s.QueueingMethod = Random },
		"queue all":    func(s *Settings) { s.QueueAll = true },
		"event":        func(s *Settings) { s.Events = []Event{event} },
	} {
		if at(change) == plain {
			t.Errorf("%s: the terms are the same", name)
		}
	}
	for name, change := range map[string]func(s *Settings){
		"name":    func(s *Settings) { s.Name = "other" },
		"session": func(s *Settings) { s.SessionDuration = time.Minute },
		"pre-queue": func(s *Settings) {
			s.Events = []Event{{Name: "x", PrequeueStart: now, Start: now.Add(time.Hour), End: now.Add(2 * time.Hour)}}
		},
	} {
		if at(change) != plain {
			t.Errorf("%s: the terms change", name)
		}
	}
}

func TestAppendFormatted(t *testing.T) {
	for _, c := range []struct {
		e      Estimate
		method Method
		want   string
	}{
		{Estimate{}, FIFO, "unavailable"},
		{Estimate{}, Random, "unavailable"},
		{Estimate{Known: true, Minutes: 1}, FIFO, "1 minute"},
		{Estimate{Known: true, Minutes: 5}, FIFO, "5 minutes"},
		{Estimate{Known: true, Minutes: 60}, FIFO, "1 hour"},
		{Estimate{Known: true, Minutes: 65}, FIFO, "1 hour and 5 minutes"},
		{Estimate{Known: true, Minutes: 121}, FIFO, "2 hours and 1 minute"},
		{Estimate{Known: true, Minutes: 65535}, FIFO, "1092 hours and 15 minutes"},
		{Estimate{Known: true, Minutes: 8, P25: 5, P75: 12}, Random, "5 minutes - 12 minutes"},
		{Estimate{Known: true, Minutes: 50, P25: 20, P75: 90}, Random, "20 minutes - 1 hour and 30 minutes"},
		{Estimate{Known: true, Minutes: 1, P25: 1, P75: 1}, Random, "1 minute"},
	} {
		if got := string(c.e.AppendFormatted([]byte("> "), c.method)); got != "> "+c.want {
			t.Errorf("%+v, %s: got %q, want %q", c.e, c.method, got, c.want)
		}
	}
	if got := string(AppendMinutes(nil, -3)); got != "0 minutes" {
		t.Errorf("got %q for less than nothing", got)
	}
}

func TestRandomWait(t *testing.T) {
	if got := randomWait(10, 10, 0.75); got != 0 {
		t.Errorf("all are let in within a minute, but it takes %f more", got)
	}
	// By hand: with half let in per minute, three quarters are in after two.
	if got := randomWait(5, 10, 0.75); got < 1.999 || got > 2.001 {
		t.Errorf("got %f minutes, want 2", got)
	}
	for waiting := 1.0; waiting < 1e9; waiting *= 3 {
		if a, b := randomWait(7, waiting, 0.5), randomWait(7, waiting*3, 0.5); a > b {
			t.Errorf("%f minutes with %f waiting, %f with three times as many", a, waiting, b)
		}
	}
}

// TestPlaceBeforeAnEvent: who waits for the start has a place in an order if there is
// one from the start on, whatever goes until then. Who came before the pre-queue goes on
// by what holds until then.
func TestPlaceBeforeAnEvent(t *testing.T) {
	now := clock(t, "09:45")
	for _, c := range []struct {
		name         string
		room, event  Method // event: "" is the room's
		change       func(s *Settings)
		before, held int // positions
		want         Method
	}{
		{"in order", FIFO, "", nil, 1, 3, FIFO},
		{"shuffled", FIFO, "", func(s *Settings) { s.Events[0].Shuffle = true }, 1, 0, FIFO},
		{"a room at random", Random, "", nil, 0, 0, Random},
		{"an event at random", FIFO, Random, nil, 1, 0, Random},
		{"of a room that lets all in, at random", Passthrough, Random, nil, 1, 0, Random},
		{"in order, of a room at random", Random, FIFO, nil, 0, 3, FIFO},
		{"in order, of a room that lets all in", Passthrough, FIFO, nil, 1, 3, FIFO},
		{"in order, of a room that rejects", Reject, FIFO, nil, 1, 3, FIFO},
		{"in order, while nobody is let in", FIFO, "", func(s *Settings) { s.QueueAll = true }, 1, 3, FIFO},
		{"all are let in", FIFO, Passthrough, nil, 1, 0, Passthrough},
		{"all are let in, by policy", FIFO, "", func(s *Settings) { s.Policy = Open }, 1, 0, Passthrough},
		{"closed", Passthrough, Reject, nil, 1, 0, Reject},
		{"closed, by policy as well", FIFO, Reject, func(s *Settings) { s.Policy = Open }, 1, 0, Reject},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := eventRoom(t, nil)
			s.QueueingMethod = c.room
			if c.event != "" {
				s.Events[0].QueueingMethod = new(c.event)
			}
			if c.change != nil {
				c.change(&s)
			}
			early, late := clock(t, "09:30"), clock(t, "09:44")
			v := Build(s, oneSite(crdt.Counts{Waiting: map[int64]int64{early.Unix(): 2, late.Unix(): 1}}, 1, 0), now)
			if v.Event.Method != c.want {
				t.Errorf("from the start on the method is %q, want %q", v.Event.Method, c.want)
			}
			if e, _ := v.Estimate(early, Shown{}); e.Position != c.before {
				t.Errorf("who came before is told %+v, want position %d", e, c.before)
			}
			if e, _ := v.Estimate(late, Shown{}); e.Position != c.held || e.Known {
				t.Errorf("who waits for the start is told %+v, want position %d", e, c.held)
			}
		})
	}
}
