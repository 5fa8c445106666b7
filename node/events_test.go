package node

import (
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// TestPrequeueAcrossSites has a crowd come to two sites before an event starts.
func TestPrequeueAcrossSites(t *testing.T) {
	for name, shuffle := range map[string]bool{"shuffled": true, "first come": false} {
		t.Run(name, func(t *testing.T) {
			const crowd, limit = 60, 12
			start := time.Unix(1_700_000_000, 0).Add(6 * time.Minute)
			s := testSettings(1000)
			s.SessionDuration = 30 * time.Second
			s.Events = []room.Event{{
				Name: "sale", PrequeueStart: start.Add(-5 * time.Minute), Start: start,
				End: start.Add(30 * time.Minute), Shuffle: shuffle,
				TotalActiveUsers: new(limit), NewUsersPerMinute: new(limit),
			}}
			w := newWorld(t, s, "a", "a", "b", "b")
			early := &person{name: "early", at: w.nodes[0]}
			if w.ask(early); !early.in {
				t.Fatal("not admitted to an empty room before the pre-queue")
			}
			// Nobody slips in at the first moment, before any node has looked at the time.
			w.run(start.Sub(w.now) - 5*time.Minute - time.Millisecond)
			w.now = s.Events[0].PrequeueStart
			people := w.crowd(crowd, w.spread)
			if v := w.ask(people[0]); people[0].in || v.Estimate.Known || v.Estimate.Position > 0 {
				t.Fatalf("as the pre-queue begins: inside %v, estimate %+v", people[0].in, v.Estimate)
			}
			people[0].next = w.now.Add(s.RefreshInterval)
			w.run(2 * tickInterval)
			for _, p := range people[1:] {
				v := w.ask(p)
				if p.in || v.Estimate.Known {
					t.Fatalf("%s before the start: inside %v, estimate %+v", p.name, p.in, v.Estimate)
				}
				if v.View == nil || !v.View.Event.Prequeueing || v.View.Event.Shuffle != shuffle {
					t.Fatalf("the verdict tells of %+v", v.View.Event)
				}
				if shuffle && v.Estimate.Position != 0 {
					t.Fatal("a place that will be drawn is told in advance")
				}
				p.next = w.now.Add(s.RefreshInterval)
				w.run(4 * time.Second)
			}
			w.poll(people, s.RefreshInterval, start.Sub(w.now), func() {
				for _, p := range people {
					if p.in && w.now.Before(start) {
						t.Fatalf("%s was let in before the start", p.name)
					}
				}
			})
			var order []int
			known := map[int]bool{}
			w.poll(people, s.RefreshInterval, 6*time.Minute, func() {
				for i, p := range people {
					if p.in && !known[i] {
						known[i] = true
						order = append(order, i)
					}
				}
				if n := w.active(people); n > limit+4 { // even: a place or two per node
					t.Fatalf("%d are inside, the event's limit is %d", n, limit)
				}
			})
			if len(order) < crowd {
				t.Fatalf("%d of %d were let in", len(order), crowd)
			}
			// Let in by place, wherever they asked. Places within one bucket are as good.
			place := func(i int) time.Time {
				p := w.nodes[0].core.places
				return s.Place(p, people[i].pass.Visitor, people[i].pass.Arrival)
			}
			against := func(of func(int) time.Time) (n int) {
				for i := range order {
					for j := i + 1; j < len(order); j++ {
						if of(order[i]).Sub(of(order[j])) > s.BucketSpan {
							n++
						}
					}
				}
				return n
			}
			pairs := crowd * (crowd - 1) / 2
			if n := against(place); n > pairs/10 {
				t.Errorf("%d of %d pairs were let in against their places", n, pairs)
			}
			n := against(func(i int) time.Time { return people[i].pass.Arrival })
			if shuffle && n < pairs/4 {
				t.Errorf("only %d of %d pairs were let in against their arrival: nothing was shuffled", n, pairs)
			}
			if !shuffle && n > pairs/10 {
				t.Errorf("%d of %d pairs were let in against their arrival", n, pairs)
			}
		})
	}
}

// TestEventOverridesAtItsEdges looks at what holds around the edges of an event.
func TestEventOverridesAtItsEdges(t *testing.T) {
	start := time.Unix(1_700_000_000, 0).Add(10 * time.Second)
	s := testSettings(1000)
	s.Events = []room.Event{{
		Name: "night", Start: start, End: start.Add(time.Minute),
		TotalActiveUsers: new(5), NewUsersPerMinute: new(5), SessionDuration: new(20 * time.Second),
		QueueingMethod: new(room.Random), DisableSessionRenewal: new(true),
	}}
	w := newWorld(t, s, "a")
	r := w.nodes[0].core.order[0]
	long := &person{name: "long", at: w.nodes[0]}
	w.ask(long)
	views := func(when string, active bool, limit int, session time.Duration) {
		t.Helper()
		got := r.Settings()
		if got.TotalActiveUsers != limit || got.SessionDuration != session || (got.QueueingMethod == room.Random) != active {
			t.Errorf("%s: limit %d, sessions of %v, %s", when, got.TotalActiveUsers, got.SessionDuration, got.QueueingMethod)
		}
		if v := r.view.Load().View; v.Event.Active != active {
			t.Errorf("%s: event is active = %v", when, v.Event.Active)
		}
		st := r.status()
		if (st.Event != nil) != active || st.TotalActiveUsers != limit || st.SessionSeconds != session.Seconds() || st.DisableSessionRenewal != active {
			t.Errorf("%s: status = %+v, event %+v", when, st, st.Event)
		}
		if active && (st.Event.Name != "night" || !st.Event.Start.Equal(start) || st.Event.PrequeueStart != nil) {
			t.Errorf("%s: status of the event = %+v", when, st.Event)
		}
	}
	w.run(start.Sub(w.now) - 10*time.Millisecond)
	views("before the start", false, 1000, time.Minute)
	// The next tick after an edge, not the next view, brings it about.
	w.run(tickInterval + 20*time.Millisecond)
	views("at the start", true, 5, 20*time.Second)
	short := &person{name: "short", at: w.nodes[0]}
	w.ask(short)
	if got := short.pass.LeaseEnd.Sub(w.now); got != 20*time.Second {
		t.Errorf("a session of the event lasts %v", got)
	}
	if w.ask(long); !long.in || !long.pass.LeaseEnd.After(start.Add(40*time.Second)) {
		t.Error("a session that began before the event was cut short")
	}
	w.run(time.Minute)
	views("after the end", false, 1000, time.Minute)
}

// TestMethodsChangeLive sends one queue through all methods and expects everybody
// to keep their place.
func TestMethodsChangeLive(t *testing.T) {
	const crowd = 24
	s := testSettings(1)
	s.SessionDuration = 24 * time.Hour
	w := newWorld(t, s, "a", "a", "b")
	first := &person{name: "inside", at: w.nodes[0]}
	w.letIn(first)
	people := w.crowd(crowd, w.spread)
	for _, p := range people {
		w.ask(p)
		p.next = w.now.Add(s.RefreshInterval)
		w.run(time.Second)
	}
	arrivals := make([]time.Time, crowd)
	for i, p := range people {
		arrivals[i] = p.pass.Arrival
	}
	late := &person{name: "late", at: w.nodes[1]}
	for _, method := range []room.Method{room.Random, room.Reject, room.FIFO, room.Reject, room.Random, room.FIFO} {
		s.QueueingMethod = method
		w.configure(s)
		told := map[time.Duration]bool{}
		for range 4 {
			w.run(7 * time.Second) // longer than any interval that is told
			for i, p := range people {
				v := w.ask(p)
				told[v.Refresh] = true
				if p.in || p.pass.Arrival != arrivals[i] || !v.SetPass {
					t.Fatalf("%s: %s is inside %v, arrived %v, want to wait since %v", method, p.name, p.in, p.pass.Arrival, arrivals[i])
				}
				if (v.Refresh == 0) != (method == room.Reject) {
					t.Fatalf("%s: told to ask again in %v", method, v.Refresh)
				}
			}
		}
		if spread := len(told) > 1; spread != (method == room.Random) {
			t.Errorf("%s: intervals told = %v", method, told)
		}
		if method == room.Reject {
			late.pass, late.has = Pass{}, false
			if v := w.ask(late); v.Admit || v.SetPass || v.ClearPass || v.Refresh != 0 {
				t.Errorf("reject: a new visitor got %+v", v)
			}
			// A pass whose place is gone is taken away.
			stale := people[0].pass
			stale.LastPoll = w.now.Add(-time.Hour)
			if v := w.decide(w.nodes[0], stale, true); v.Admit || v.SetPass || !v.ClearPass {
				t.Errorf("reject: who came back too late got %+v", v)
			}
		}
		w.run(time.Second)
		if got := w.nodes[0].core.order[0].status().Waiting; got != crowd {
			t.Errorf("%s: waiting = %d, want %d", method, got, crowd)
		}
	}
	s.TotalActiveUsers = 1 + crowd/2
	w.configure(s)
	for _, p := range people {
		p.next = w.now
	}
	w.poll(people, s.RefreshInterval, 6*s.RefreshInterval, nil)
	inside := slices.IndexFunc(people, func(p *person) bool { return !p.in })
	if n := w.active(people); n < crowd/2-1 || inside < crowd/2-4 {
		t.Errorf("%d of %d were let in, the first %d of them in order", n, crowd/2, inside)
	}
}

// TestEstimateNeverRises has a queue whose room is full one day, so that the rate
// falls. What is told then would rise, if nobody remembered.
func TestEstimateNeverRises(t *testing.T) {
	s := testSettings(80)
	s.NewUsersPerMinute = 30
	s.SessionDuration = 24 * time.Hour
	w := newWorld(t, s, "a", "b")
	people := w.crowd(200, w.spread)
	last := map[*person]int{}
	rose, fell, would := 0, 0, 0
	ask := func(p *person) {
		v := w.ask(p)
		if p.in || !v.Estimate.Known {
			return
		}
		before, ok := last[p]
		switch {
		case ok && v.Estimate.Minutes > before:
			rose++
		case ok && v.Estimate.Minutes < before:
			fell++
		}
		last[p] = v.Estimate.Minutes
		if e, _ := v.View.Estimate(p.pass.Arrival, room.Shown{}); e.Minutes > v.Estimate.Minutes {
			would++
		}
	}
	for i := range 400 {
		for _, p := range people[:min(i, len(people))] {
			if !p.in && !w.now.Before(p.next) {
				ask(p)
				p.next = w.now.Add(2500 * time.Millisecond) // every other poll is too early
			}
		}
		w.run(500 * time.Millisecond)
	}
	if rose > 0 {
		t.Errorf("an estimate rose %d times", rose)
	}
	if fell == 0 || would == 0 {
		t.Errorf("estimates fell %d times and would have risen %d times: nothing was tested", fell, would)
	}
	// Under other limits it may.
	s.NewUsersPerMinute = 1
	w.configure(s)
	w.run(s.RefreshInterval)
	higher := 0
	for _, p := range people {
		if before, ok := last[p]; ok && !p.in {
			if v := w.ask(p); !p.in && v.Estimate.Minutes > before && p.pass.Shown.Terms == v.View.Terms {
				higher++
			}
		}
	}
	if higher == 0 {
		t.Error("estimates under new limits are held down by those under the old ones")
	}
}

// TestPrequeueOfARoomThatRejects: it is open during its event only. Who comes to its
// pre-queue keeps the place by asking, for longer than one request does, and is let in
// at the start; nobody is told to ask again before the pre-queue or after the event.
func TestPrequeueOfARoomThatRejects(t *testing.T) {
	start := time.Unix(1_700_000_000, 0).Add(8 * time.Minute)
	s := testSettings(1000)
	s.QueueingMethod, s.PlaceKept = room.Reject, time.Minute
	s.Events = []room.Event{{
		Name: "night", PrequeueStart: start.Add(-7 * time.Minute), Start: start,
		End: start.Add(time.Minute), QueueingMethod: new(room.FIFO),
	}}
	w := newWorld(t, s, "a")
	closed := func(when string) {
		t.Helper()
		if v := w.decide(w.nodes[0], Pass{}, false); v.Admit || v.SetPass || v.Refresh != 0 {
			t.Errorf("%s: got %+v, want nothing but a no", when, v)
		}
	}
	closed("before the pre-queue")
	w.run(start.Sub(w.now) - 6*time.Minute)
	p := &person{name: "early", at: w.nodes[0]}
	v := w.ask(p)
	arrival := p.pass.Arrival
	for w.now.Before(start) {
		if p.in || v.Refresh != s.RefreshInterval || v.Estimate.Position != 1 || !p.pass.Arrival.Equal(arrival) {
			t.Fatalf("%v before the start: told %+v, want a place that is kept", start.Sub(w.now), v)
		}
		w.run(v.Refresh / 2) // too early
		if early := w.decide(w.nodes[0], p.pass, true); w.now.Before(start) && early.Refresh != s.RefreshInterval {
			t.Fatalf("too early, told to ask again in %v", early.Refresh)
		}
		w.run(v.Refresh - v.Refresh/2)
		v = w.ask(p)
	}
	w.run(v.Refresh)
	if v = w.ask(p); !p.in || !p.pass.Arrival.Equal(arrival) {
		t.Errorf("after the start: %+v", v)
	}
	w.run(2 * time.Minute)
	closed("after the event")
}
