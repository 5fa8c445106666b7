package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// expectRoomFor has first go on until the sessions of the length that others keep them
// for are over, has others come, and fails if more are on the site than there are
// places.
func (w *world) expectRoomFor(first []*person, in, places int) {
	w.t.Helper()
	if in == 0 {
		w.t.Fatal("nobody was let in")
	}
	w.run(62 * time.Second)
	more := w.crowd(places, at(w.nodes[0]))
	for range 5 {
		w.askAll(outside(more))
		w.run(200 * time.Millisecond)
	}
	w.askAll(first)
	if n := w.active(append(more, first...)); n > places {
		w.t.Errorf("%d are on the site, of %d places", n, places)
	}
}

// longerAtOne returns a site of two nodes with sessions of a minute, and which of them has
// just been given longer ones: not the counter.
func longerAtOne(t *testing.T, session time.Duration) (*world, *machine) {
	s := escrowSettings(20)
	s.SessionDuration = time.Minute
	w := newWorld(t, s, "a", "a")
	w.run(20 * time.Second)
	m := w.other(w.counterOf("a"))
	s.SessionDuration = session
	if err := m.core.Configure(s, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(time.Second)
	return w, m
}

// TestALongerSessionAtOneNode raises the session at the node that lets visitors in, while
// the anchors of their tickets have not heard of it.
func TestALongerSessionAtOneNode(t *testing.T) {
	w, m := longerAtOne(t, 10*time.Minute)
	first := w.crowd(20, at(m))
	w.expectRoomFor(first, w.askAll(first), 20)
}

// TestAnEventBeginsAtOneNodeFirst has an event with longer sessions begin at nodes whose
// clocks differ by nearly as much as they may.
func TestAnEventBeginsAtOneNodeFirst(t *testing.T) {
	s := escrowSettings(20)
	s.SessionDuration = time.Minute
	w := newWorld(t, s, "a", "a")
	w.run(20 * time.Second)
	start := w.now.Add(10 * time.Second)
	s.Events = []room.Event{{Name: "sale", Start: start, End: start.Add(time.Hour), SessionDuration: new(10 * time.Minute)}}
	early := s
	early.Events = []room.Event{s.Events[0]}
	early.Events[0].Start = start.Add(-390 * time.Millisecond)
	m := w.other(w.counterOf("a"))
	for _, o := range w.nodes {
		settings := s
		if o == m {
			settings = early
		}
		if err := o.core.Configure(settings, w.now); err != nil {
			t.Fatal(err)
		}
	}
	w.run(start.Sub(w.now) - 330*time.Millisecond)
	first, in := w.crowd(20, at(m)), 0
	for in < 20 && w.now.Before(start.Add(-100*time.Millisecond)) {
		in += w.askAll(outside(first))
		w.run(20 * time.Millisecond)
	}
	w.expectRoomFor(first, in, 20)
}

// TestAShorterSessionRightAfter lowers the session at a node that has let visitors in at
// this very moment.
func TestAShorterSessionRightAfter(t *testing.T) {
	s := escrowSettings(20)
	s.SessionDuration = 10 * time.Minute
	w := newWorld(t, s, "a")
	w.run(20 * time.Second)
	first := w.crowd(20, at(w.nodes[0]))
	for _, p := range first {
		w.ask(p)
	}
	in := w.active(first)
	short := s
	short.SessionDuration = time.Minute
	if err := w.nodes[0].core.Configure(short, w.now); err != nil {
		t.Fatal(err)
	}
	w.expectRoomFor(first, in, 20)
}

// TestALongerSessionIsRenewed has a visitor stay at a node whose sessions are longer than
// those of the anchor: the pass has to be made longer before it ends.
func TestALongerSessionIsRenewed(t *testing.T) {
	w, m := longerAtOne(t, 20*time.Minute)
	first := w.crowd(20, at(m))
	w.askAll(first)
	for range 20 {
		w.run(10 * time.Second)
		for _, p := range first {
			v, ok := m.core.Route("shop", "/").Begin(p.pass, true, w.now, func(Verdict) {})
			if !ok || !v.Admit {
				t.Fatalf("a visitor who goes on was answered at once: %v, let pass: %v", ok, v.Admit)
			}
			if v.SetPass {
				p.pass = v.Pass
			}
		}
	}
}

// TestLongerSessionsOfALostNode loses a node whose sessions were longer, after which the
// mesh was told of shorter ones: whoever recovers its rights keeps them aside for as long
// as the lost one's visitors may be inside.
func TestLongerSessionsOfALostNode(t *testing.T) {
	s := escrowSettings(40)
	s.SessionDuration = time.Minute
	w := newWorld(t, s, "a", "a", "a")
	w.run(20 * time.Second)
	lost := w.other(w.counterOf("a"))
	long := s
	long.SessionDuration = 10 * time.Minute
	if err := lost.core.Configure(long, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(2 * time.Second)
	first := w.crowd(30, at(lost))
	for range 5 {
		w.askAll(outside(first))
		w.run(200 * time.Millisecond)
	}
	theirs := 0
	for _, p := range first {
		if p.pass.Ticket.Anchor == lost.id && p.pass.LeaseEnd.Sub(w.now) > 9*time.Minute {
			theirs++
		}
	}
	if theirs == 0 {
		t.Fatal("nobody has a long session of the node that is to be lost")
	}
	w.kill(lost)
	stay := w.nodes[:0:0]
	for _, m := range w.nodes {
		if m != lost {
			stay = append(stay, m)
		}
	}
	w.run(5 * time.Second)
	for _, m := range stay {
		if err := m.core.Configure(s, w.now); err != nil {
			t.Fatal(err)
		}
	}
	if err := stay[0].core.DeclareDead(lost.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(4 * time.Minute)
	if held, _ := w.rights(); held.Places != 40 {
		t.Fatalf("those who live hold %d places, want 40: nothing was recovered", held.Places)
	}
	more := w.crowd(40, func(i int) *machine { return stay[i%2] })
	for range 10 {
		w.askAll(outside(more))
		w.run(200 * time.Millisecond)
	}
	if n := w.active(append(more, first...)); n > 40 {
		t.Errorf("%d are inside, of 40: %d have a session of the lost node", n, theirs)
	}
	w.run(7 * time.Minute)
	late := w.crowd(40, func(i int) *machine { return stay[i%2] })
	for range 10 {
		w.askAll(outside(late))
		w.run(200 * time.Millisecond)
	}
	if n := w.active(late); n < 38 {
		t.Errorf("%d are inside when all sessions are over, want 40 or nearly", n)
	}
}
