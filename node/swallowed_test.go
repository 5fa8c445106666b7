package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// TestASessionSlidesWithoutCookies has a visitor ask all over the mesh with the pass of
// the first answer, as behind a front end that swallows cookies: it is one session, for
// as long as they ask.
func TestASessionSlidesWithoutCookies(t *testing.T) {
	for _, policy := range []room.Policy{room.Even, room.Escrow} {
		s := testSettings(10)
		s.Policy = policy
		w := newWorld(t, s, "a", "a", "b")
		w.run(20 * time.Second)
		p := &person{name: "visitor", at: w.nodes[1]}
		if !w.ask(p).Admit {
			t.Fatalf("%s: not admitted to an empty room", policy)
		}
		first := p.pass
		for i := range 100 { // some 16 sessions
			w.run(10 * time.Second)
			// For a session each at one node; the others have forgotten it by then.
			m := w.nodes[i/6%3]
			if v := w.decide(m, first, true); !v.Admit || v.Pass.Visitor != first.Visitor || v.Pass.Ticket != first.Ticket {
				t.Fatalf("%s: after %v node %d says %+v", policy, time.Duration(i+1)*10*time.Second, m.id[0], v)
			}
		}
		w.run(3 * time.Second)
		if n := w.activeEverywhere(); n != 1 {
			t.Errorf("%s: %d are active, want 1", policy, n)
		}
		w.run(s.SessionDuration + 20*time.Second)
		if n := w.activeEverywhere(); n != 0 {
			t.Errorf("%s: %d are active a session later, want none", policy, n)
		}
		for _, m := range w.nodes {
			if v := w.decide(m, first, true); v.Pass.Visitor == first.Visitor {
				t.Errorf("%s: a session that is over goes on at node %d", policy, m.id[0])
			}
		}
	}
}

// activeEverywhere is how many sessions all nodes count.
func (w *world) activeEverywhere() (n int64) {
	for _, m := range w.nodes {
		n += int64(m.core.replica.Own(roomID, w.now).Active)
	}
	return n
}

// TestAnOldPassIsNoReasonToStandFirst: nobody can tell whether the session of a pass
// goes on that is long past and whose anchor is gone, and so its holder is new.
func TestAnOldPassIsNoReasonToStandFirst(t *testing.T) {
	s := testSettings(2)
	w := newWorld(t, s, "a", "a")
	p := &person{name: "visitor", at: w.nodes[0]}
	if !w.ask(p).Admit {
		t.Fatal("not admitted to an empty room")
	}
	old := p.pass
	w.run(3*s.SessionDuration + time.Second)
	w.kill(w.nodes[0])
	w.run(2 * time.Second)
	for range 2 {
		if !w.ask(&person{name: "somebody else", at: w.nodes[1]}).Admit {
			t.Fatal("not admitted to an empty room")
		}
	}
	w.run(2 * time.Second)
	if v := w.decide(w.nodes[1], old, true); v.Admit || v.Pass.Visitor == old.Visitor || w.now.Sub(v.Pass.Arrival) > 2*time.Second {
		t.Errorf("got %+v, want a new place", v)
	}
}
