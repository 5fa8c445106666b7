package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// answersOf has n requests with the same pass begin at m at once, and returns their answers
// as they come.
func answersOf(w *world, m *machine, p Pass, n int) *[]Verdict {
	got := &[]Verdict{}
	for range n {
		if v, ok := m.core.order[0].Begin(p, true, w.now, func(v Verdict) { *got = append(*got, v) }); ok {
			*got = append(*got, v)
		}
	}
	return got
}

// checkNobodyIsLeft fails if requests still wait at m, or others would wait for them.
func checkNobodyIsLeft(t *testing.T, m *machine) {
	t.Helper()
	applying := 0
	for i := range m.core.stripes.all {
		applying += len(m.core.stripes.all[i].applying)
	}
	if n := m.core.pendings.count.Load(); n != 0 || applying != 0 {
		t.Errorf("%d requests wait, and others would wait for %d", n, applying)
	}
}

// TestLateCopiesAtOnce has copies come together of a pass that was redeemed long ago, while
// places are free: they turn out to be of somebody new on the way.
func TestLateCopiesAtOnce(t *testing.T) {
	for _, policy := range limiting {
		for at := range 3 {
			w, waited := turnComes(t, policy)
			if v := w.decide(w.nodes[(at+1)%3], waited, true); !v.Admit {
				t.Fatalf("%s: the visitor is not let in: %+v", policy, v)
			}
			w.run(150 * time.Second)
			m := w.nodes[at]
			got := answersOf(w, m, waited, 5)
			w.post(m, m.core.Flush(w.now))
			w.run(5 * time.Second)
			if len(*got) != 5 {
				t.Errorf("%s, node %d: %d of 5 are answered", policy, at, len(*got))
			}
			checkNobodyIsLeft(t, m)
			for i, v := range *got {
				if v.Pass.Visitor == waited.Visitor {
					t.Errorf("%s, node %d: copy %d gets %+v, want it to be somebody new", policy, at, i, v)
				}
			}
		}
	}
}

// TestCopiesWhereTooManyWait has the node be full of requests at the moment at which the
// owner has said that a pass of several copies is free: all of them keep the place.
func TestCopiesWhereTooManyWait(t *testing.T) {
	for _, policy := range []room.Policy{room.Counter, room.Escrow} {
		for at := range 3 {
			w, waited := turnComes(t, policy)
			m := w.nodes[at]
			got := answersOf(w, m, waited, 3)
			m.core.pendings.count.Add(maxPendings)
			w.post(m, m.core.Flush(w.now))
			w.run(2 * time.Second)
			m.core.pendings.count.Add(-maxPendings)
			w.run(time.Second)
			if len(*got) != 3 {
				t.Errorf("%s, node %d: %d of 3 are answered", policy, at, len(*got))
			}
			checkNobodyIsLeft(t, m)
			first := w.decide(m, waited, true)
			if !first.Admit {
				t.Errorf("%s, node %d: after that the pass gets %+v", policy, at, first)
			}
			for i, v := range *got {
				if v.Admit && v.Pass.Ticket != first.Pass.Ticket || v.Pass.Visitor != waited.Visitor || !v.Pass.Arrival.Equal(waited.Arrival) {
					t.Errorf("%s, node %d: copy %d has %+v, want %+v", policy, at, i, v.Pass, first.Pass)
				}
			}
		}
	}
}

// TestCloseAnswersCopies closes a node while copies of a pass wait for one ticket, or for
// the word of the visitor's owner.
func TestCloseAnswersCopies(t *testing.T) {
	for _, policy := range []room.Policy{room.Counter, room.Escrow} {
		for _, later := range []time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond} {
			for at := range 3 {
				w, waited := turnComes(t, policy)
				m := w.nodes[at]
				w.lose = func(l letter) bool { return l.m.Kind == kindRedeemed }
				got := answersOf(w, m, waited, 4)
				w.post(m, m.core.Flush(w.now))
				if later > 0 {
					w.run(later)
				}
				m.core.Close(w.now)
				if len(*got) != 4 {
					t.Errorf("%s, node %d, closed after %v: %d of 4 are answered", policy, at, later, len(*got))
				}
				checkNobodyIsLeft(t, m)
			}
		}
	}
}

// TestASwallowedAdmissionLastsASession has a visitor show the waiting pass with each
// request, some of them nearly a session apart: the session is theirs all the time.
func TestASwallowedAdmissionLastsASession(t *testing.T) {
	s := testSettings(9)
	s.SessionDuration = 5 * time.Minute
	for _, policy := range limiting {
		s.Policy = policy
		w := newWorld(t, s, "a", "a", "a")
		w.run(20 * time.Second)
		waited := Pass{Visitor: VisitorID{7}, Room: roomID, Arrival: w.now.Add(-time.Minute), LastPoll: w.now.Add(-20 * time.Second), Refresh: 20 * time.Second}
		first := w.decide(w.nodes[0], waited, true)
		for i := range 6 {
			w.run(4*time.Minute + 50*time.Second)
			if v := w.decide(w.nodes[0], waited, true); !v.Admit || v.Pass.Ticket != first.Pass.Ticket {
				t.Fatalf("%s: request %d gets %+v, want the session of the first, %+v", policy, i+2, v, first)
			}
		}
	}
}

// TestAWaitingPassEndsTheSessionItWasExchangedFor: the site tells of the cookies that came
// with the request, and that may be the very one that let the visitor in.
func TestAWaitingPassEndsTheSessionItWasExchangedFor(t *testing.T) {
	for _, policy := range limiting {
		w, waited := turnComes(t, policy)
		m := w.nodes[1]
		r := m.core.order[0]
		if r.End(waited, w.now) {
			t.Errorf("%s: somebody who waits has a session to end", policy)
		}
		in := w.decide(m, waited, true)
		w.run(2 * time.Second)
		if !in.Admit || w.activeEverywhere() != 1 {
			t.Fatalf("%s: %d are active, the visitor got %+v", policy, w.activeEverywhere(), in)
		}
		if !r.End(waited, w.now) {
			t.Errorf("%s: the session is not found", policy)
		}
		w.run(3 * time.Second)
		if n := w.activeEverywhere(); n != 0 {
			t.Errorf("%s: %d are active after the end", policy, n)
		}
	}
}
