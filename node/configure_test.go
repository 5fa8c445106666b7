package node

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// configure has every node take new settings over.
func (w *world) configure(s room.Settings) {
	w.t.Helper()
	for _, m := range w.nodes {
		if m.core == nil {
			continue
		}
		if err := m.core.Configure(s, w.now); err != nil {
			w.t.Fatal(err)
		}
	}
}

// poll has everybody who waits ask when it is time, for a while.
func (w *world) poll(people []*person, every, d time.Duration, each func()) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		for _, p := range people {
			if !p.in && !w.now.Before(p.next) {
				w.ask(p)
				p.next = w.now.Add(every)
			}
		}
		w.run(100 * time.Millisecond)
		if each != nil {
			each()
		}
	}
}

// letIn has somebody ask until they are let in, and the mesh hear of it.
func (w *world) letIn(p *person) {
	w.t.Helper()
	for range 50 {
		if w.ask(p); p.in {
			w.run(2 * time.Second)
			return
		}
		w.run(5 * time.Second)
	}
	w.t.Fatalf("%s is not let in", p.name)
}

func TestConfigureRefuses(t *testing.T) {
	rooms := openRooms(2)
	c, now := loneCore(t, rooms)
	before := c.order[0].settings.Load()
	unknown := rooms[0]
	unknown.ID = crdt.RoomID{99}
	if err := c.Configure(unknown, now); !errors.Is(err, ErrUnknownRoom) {
		t.Errorf("settings of a room that is not kept: %v", err)
	}
	bad := rooms[0]
	bad.TotalActiveUsers, bad.Path = 0, "no slash"
	err := c.Configure(bad, now)
	if field, ok := errors.AsType[*room.FieldError](err); !ok || field.Value == "" {
		t.Errorf("impossible settings: %v", err)
	}
	taken := rooms[0]
	taken.Path = rooms[1].Path
	if c.Configure(taken, now) == nil {
		t.Error("two rooms have one path")
	}
	if c.order[0].settings.Load() != before || c.Route("", rooms[0].Path) != c.order[0] {
		t.Error("what was refused has changed something")
	}
}

func TestConfigureMovesRoutes(t *testing.T) {
	rooms := openRooms(2)
	c, now := loneCore(t, rooms)
	s := rooms[1]
	s.Host, s.Path = "shop.example", "/sale"
	if err := c.Configure(s, now); err != nil {
		t.Fatal(err)
	}
	if r := c.Route("shop.example", "/sale/1"); r != c.order[1] || r.Settings().Path != "/sale" {
		t.Errorf("room of the new path = %v", r)
	}
	if r := c.Route("shop.example", rooms[1].Path); r != nil {
		t.Errorf("room of the old path = %v, want none", r.Settings().Name)
	}
	if r := c.Route("shop.example", rooms[0].Path); r != c.order[0] {
		t.Error("the other room has moved")
	}
}

// TestSuspendedRoomsAreUntouched suspends a room with visitors inside and goes on
// before their sessions are over.
func TestSuspendedRoomsAreUntouched(t *testing.T) {
	s := testSettings(1)
	w := newWorld(t, s, "a", "b")
	in, waits := &person{name: "inside", at: w.nodes[0]}, &person{name: "waiting", at: w.nodes[1]}
	w.letIn(in)
	if w.ask(waits); waits.in {
		t.Fatal("two are inside, the limit is one")
	}
	s.Suspended = true
	w.configure(s)
	for _, m := range w.nodes {
		if m.core.Route("shop", "/") != nil {
			t.Fatal("a suspended room takes requests")
		}
	}
	w.run(10 * time.Second)
	s.Suspended = false
	w.configure(s)
	if w.ask(in); !in.in {
		t.Error("a session did not outlive the pause")
	}
	arrival := waits.pass.Arrival
	if w.ask(waits); waits.in || waits.pass.Arrival != arrival {
		t.Errorf("who waited is inside: %v, arrived %v, want to wait since %v", waits.in, waits.pass.Arrival, arrival)
	}
	// Suspended for longer than a session, the room is empty.
	s.Suspended = true
	w.configure(s)
	w.run(2 * s.SessionDuration)
	w.expectActive(0, "after two sessions")
}

// TestBucketSpanChangesWhileManyWait changes the span and expects that at no
// moment somebody is counted twice or not at all, on any node, and that the order
// stays.
func TestBucketSpanChangesWhileManyWait(t *testing.T) {
	const crowd = 30
	s := testSettings(1)
	s.SessionDuration = time.Hour
	w := newWorld(t, s, "a", "a", "b")
	first := &person{name: "inside", at: w.nodes[0]}
	w.letIn(first)
	people := w.crowd(crowd, w.spread)
	for _, p := range people {
		w.ask(p)
		p.next = w.now.Add(s.RefreshInterval)
		w.run(300 * time.Millisecond)
	}
	w.poll(people, s.RefreshInterval, 3*s.RefreshInterval, nil)
	check := func() {
		t.Helper()
		for _, m := range w.nodes {
			if got := m.core.order[0].status().Waiting; got != crowd {
				t.Fatalf("waiting at node %d with buckets of %v = %d, want %d", m.id[0], s.BucketSpan, got, crowd)
			}
		}
	}
	check()
	for _, span := range []time.Duration{time.Second, 60 * time.Second, 7 * time.Second, 12 * time.Second} {
		s.BucketSpan = span
		w.configure(s)
		check()
		w.poll(people, s.RefreshInterval, 3*s.RefreshInterval, check)
	}
	// All are let in, in order.
	s.TotalActiveUsers = 1 + crowd/2
	w.configure(s)
	w.poll(people, s.RefreshInterval, 4*s.RefreshInterval, nil)
	for i, p := range people {
		if early := i < crowd/2-3; early && !p.in {
			t.Errorf("%s waits while %d are inside", p.name, w.active(people))
		}
		if late := i > crowd/2+3; late && p.in {
			t.Errorf("%s was let in before others", p.name)
		}
	}
	s.TotalActiveUsers = 2 * crowd
	w.configure(s)
	w.poll(people, s.RefreshInterval, 4*s.RefreshInterval, nil)
	for _, m := range w.nodes {
		if got := m.core.order[0].status().Waiting; got != 0 {
			t.Errorf("waiting at node %d = %d after all were let in", m.id[0], got)
		}
	}
}

// TestShorterSessionsEndTheOldOnesLate: sessions keep the end that they had.
func TestShorterSessionsEndTheOldOnesLate(t *testing.T) {
	s := testSettings(10)
	s.SessionDuration = 3 * time.Minute
	w := newWorld(t, s, "a", "a")
	old := &person{name: "old", at: w.nodes[0]}
	w.ask(old)
	w.run(time.Second)
	s.SessionDuration = 2 * time.Second
	w.configure(s)
	w.run(30 * time.Second)
	w.expectActive(1, "half a minute later")
	w.kill(w.nodes[0])
	w.run(time.Minute)
	// The dead node's row counts the old lease until it can have ended.
	w.expectActive(1, "while a dead node's lease may run")
	w.run(3 * time.Minute)
	w.expectActive(0, "after the old session")
	fresh := &person{name: "fresh", at: w.nodes[1]}
	w.ask(fresh)
	if got := fresh.pass.LeaseEnd.Sub(w.now); got != 2*time.Second {
		t.Errorf("a new session lasts %v, want 2 s", got)
	}
}

// TestConfigureWhileRequestsRun changes every kind of setting under many
// requests. It is for the race detector; and nobody inside is turned away.
func TestConfigureWhileRequestsRun(t *testing.T) {
	rooms := openRooms(1)
	c, now := loneCore(t, rooms)
	r := c.order[0]
	inside := r.Decide(Pass{}, false, now).Pass
	c.Tick(now.Add(tickInterval))
	clock := atomic.Int64{}
	var wg sync.WaitGroup
	var stop atomic.Bool
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			p, known := Pass{}, false
			for !stop.Load() {
				at := now.Add(time.Duration(clock.Load()))
				if r := c.Route("shop", "/1"); r != nil {
					v := r.Decide(p, known, at)
					if p, known = v.Pass, v.SetPass; rng.IntN(4) == 0 {
						p, known = Pass{}, false
					}
					if v.Admit && rng.IntN(8) == 0 {
						r.End(v.Pass, at)
					}
				}
				if v := c.order[0].Decide(inside, true, at); !v.Admit {
					t.Error("a session was lost to a change of settings")
					return
				}
			}
		})
	}
	s := rooms[0]
	methods := []room.Method{room.FIFO, room.Random, room.Reject, room.Passthrough}
	policies := []room.Policy{room.Even, room.Curve, room.Open}
	for i := range 300 {
		s.QueueingMethod, s.Policy = methods[i%4], policies[i%3]
		s.Suspended, s.QueueAll, s.DisableSessionRenewal = i%7 == 0, i%5 == 0, i%2 == 0
		s.TotalActiveUsers = 1 + i%40
		s.BucketSpan = time.Duration(1+i%60) * time.Second
		s.Path = []string{"/1", "/2"}[i%2]
		s.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
		at := now.Add(time.Duration(clock.Add(int64(20 * time.Millisecond))))
		if err := c.Configure(s, at); err != nil {
			t.Error(err)
			break
		}
		c.Tick(at)
	}
	stop.Store(true)
	// Whoever waits for a ticket then is answered by ticks, as in a node that runs on.
	ended := make(chan struct{})
	go func() {
		wg.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return
		default:
			c.Tick(now.Add(time.Duration(clock.Add(int64(time.Millisecond)))))
		}
	}
}
