package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/node/room"
)

// newRememberingWorld is newWorld whose nodes remember what happens.
func newRememberingWorld(t *testing.T, s room.Settings, sites ...string) *world {
	t.Helper()
	w := newStoppedWorld(t)
	w.remember = true
	w.begin(s, sites...)
	return w
}

// past returns what all nodes together remember of the last minutes, closed.
func (w *world) past(last time.Duration) history.Point {
	w.t.Helper()
	all := map[crdt.NodeID]history.Answer{}
	for _, m := range w.nodes {
		if m.core == nil {
			continue
		}
		m.core.CloseHistory(w.now)
		a, err := m.core.History(history.Question{Room: roomID, From: w.now.Add(-last), To: w.now.Add(time.Minute)})
		if err != nil {
			w.t.Fatal(err)
		}
		all[m.id] = a
	}
	points, err := history.Join(all).Steps(24 * time.Hour)
	if err != nil || len(points) != 1 {
		w.t.Fatalf("%d steps, %v", len(points), err)
	}
	return points[0]
}

func near(d, want time.Duration) bool {
	off := (d - want).Abs()
	return off <= want/16+100*time.Millisecond
}

// TestPastOfARoom has visitors come in sites of several nodes, wait, stay for a while, and be
// ended by the site, and looks at what the nodes together remember: each visitor once.
func TestPastOfARoom(t *testing.T) {
	for _, s := range []room.Settings{escrowSettings(10), counterSettings(10), testSettings(10)} {
		w := newRememberingWorld(t, s, "a", "a", "b")
		people := w.crowd(40, w.spread)
		stayed := map[*person]bool{}
		for range 40 { // 200 s
			for _, p := range people {
				if !p.in || p.name < "visitor 2" { // some of those who are in say nothing more
					w.ask(p)
				}
				stayed[p] = stayed[p] || p.in
			}
			w.run(5 * time.Second)
		}
		came, let := len(people), len(stayed)
		for _, in := range stayed {
			if !in {
				let--
			}
		}
		w.run(2 * time.Minute) // all sessions end
		p := w.past(10 * time.Minute)
		// Whose session ran out while they waited for nothing comes anew.
		if p.Counts.New < uint64(came) || p.Counts.Admitted < uint64(let) || p.Counts.Admitted > p.Counts.New {
			t.Errorf("%s: %d came, %d were let in; remembered are %+v", s.Policy, came, let, p.Counts)
		}
		if p.Counts.Ended != p.Counts.Admitted || p.Counts.Revoked != 0 {
			t.Errorf("%s: all sessions ended by themselves; remembered are %+v", s.Policy, p.Counts)
		}
		if p.Stays.Count() == 0 || p.Stays.Count() > p.Counts.Ended {
			t.Errorf("%s: %d lengths of %d sessions", s.Policy, p.Stays.Count(), p.Counts.Ended)
		}
		most := int64(10)
		if s.Policy == room.Even {
			most = 20 // counts, and is late
		}
		if !p.Seen || p.ActiveMax > most || p.ActiveMax < 5 || p.WaitingMax < 20 || p.TotalActiveUsers != 10 || p.Nodes != 3 {
			t.Errorf("%s: seen was %+v", s.Policy, p)
		}
	}
}

// TestPastOfOneVisitor: how long a visitor waited, how long the visitor stayed, wherever the
// session is anchored, and that the site has ended it.
func TestPastOfOneVisitor(t *testing.T) {
	w := newRememberingWorld(t, escrowSettings(1), "a", "a")
	first, second := &person{name: "first", at: w.nodes[0]}, &person{name: "second", at: w.nodes[1]}
	w.ask(first)
	if !first.in {
		t.Fatal("the first visitor is not let in")
	}
	begin := w.now
	for w.now.Sub(begin) < 30*time.Second {
		w.run(5 * time.Second)
		w.ask(first)
	}
	came := w.now
	for !second.in && w.now.Sub(came) < 3*time.Minute {
		w.ask(second)
		w.run(5 * time.Second)
	}
	if !second.in {
		t.Fatal("the second visitor is not let in")
	}
	waited := second.pass.AcceptedAt.Sub(came)
	w.run(10 * time.Second)
	w.ask(second)
	w.nodes[1].core.Route("shop", "/").End(second.pass, w.now)
	stayed := w.now.Sub(second.pass.AcceptedAt)
	w.run(5 * time.Second)

	p := w.past(10 * time.Minute)
	if want := (history.Counts{New: 2, Admitted: 2, Ended: 2, Revoked: 1}); p.Counts != want {
		t.Errorf("remembered are %+v, want %+v", p.Counts, want)
	}
	if d, _ := p.Waits.Percentile(1); p.Waits.Count() != 1 || !near(d, waited) {
		t.Errorf("%d waited, %v at most; want one who waited %v", p.Waits.Count(), d, waited)
	}
	short, _ := p.Stays.Percentile(0)
	long, _ := p.Stays.Percentile(1)
	if p.Stays.Count() != 2 || !near(short, stayed) || !near(long, 30*time.Second) {
		t.Errorf("%d stayed, from %v to %v; want two, of %v and 30s", p.Stays.Count(), short, long, stayed)
	}
}

// TestPastOfRoomsThatAreGone: a room that is no more makes room for others.
func TestPastOfRoomsThatAreGone(t *testing.T) {
	w := newRememberingWorld(t, testSettings(10), "a")
	m := w.nodes[0]
	w.run(2 * time.Minute)
	if n := len(m.core.past.recorder.Rooms()); n != 1 {
		t.Fatalf("%d rooms are remembered", n)
	}
	m.core.setRooms(nil)
	w.run(2 * time.Minute)
	if n := len(m.core.past.recorder.Rooms()); n != 0 {
		t.Errorf("%d rooms are remembered that are gone", n)
	}
}

// BenchmarkPast measures the look at a thousand rooms that a node takes each second.
func BenchmarkPast(b *testing.B) {
	w := newStoppedWorld(b)
	w.remember = true
	for i := range 999 {
		s := testSettings(10)
		s.ID, s.Name, s.Path = crdt.RoomID{1, byte(i), byte(i >> 8)}, fmt.Sprint("room", i), fmt.Sprint("/", i)
		w.more = append(w.more, s)
	}
	w.begin(testSettings(10), "a")
	core := w.nodes[0].core
	b.ReportAllocs()
	for b.Loop() {
		w.now = w.now.Add(pastInterval)
		core.tickPast(w.now)
		core.TakeHistory()
	}
}
