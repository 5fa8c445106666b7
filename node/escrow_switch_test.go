package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// TestACounterThatJustBeganTurnsNobodyAway: its own rights are in use, those of its
// mates are free, and it has not been asked to move any yet.
func TestACounterThatJustBeganTurnsNobodyAway(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "a")
	w.run(20 * time.Second)
	m := w.counterOf("a")
	if in := w.askAll(w.crowd(30, at(m))); in != 30 {
		t.Fatalf("%d of 30 were let in", in)
	}
	if free := m.core.order[0].Rights().Free.Places; free > 3 {
		t.Fatalf("the counter has %d places left, want hardly any", free)
	}
	w.run(time.Second)
	w.configure(testSettings(90))
	w.configure(escrowSettings(90))
	if in := w.askAll(w.crowd(30, at(w.counterOf("a")))); in != 30 {
		t.Errorf("%d of 30 were let in by a counter that has just begun, want all: 60 places are free", in)
	}
}

// TestPoliciesThatChange has a room go through the policies, with sessions running at
// each change. Rights that were just switched on bind once the sessions of before have
// ended; until then whoever was let in is counted.
func TestPoliciesThatChange(t *testing.T) {
	const limit, nearly = 60, 66
	w := newWorld(t, testSettings(limit), "a", "a", "b")
	w.run(10 * time.Second)
	people := w.crowd(150, w.spread)
	for i := range 12 {
		s := testSettings(limit)
		s.Policy = []room.Policy{room.Even, room.Escrow, room.Counter, room.Escrow}[i%4]
		w.configure(s)
		for _, p := range people[i*10 : i*10+20] { // some stay
			if p.in {
				w.ask(p)
			}
		}
		if peak := w.press(people, 25*time.Second); peak > nearly {
			t.Errorf("%d were inside after change %d, to %s; the limit is %d", peak, i, s.Policy, limit)
		}
	}
	w.run(65 * time.Second) // nobody asks: the sessions of before end
	if peak := w.press(people, 70*time.Second); peak != limit {
		t.Errorf("%d were inside at most after the last change, want %d", peak, limit)
	}
	w.run(3 * time.Minute)
	w.holds(limit, 10_000, "at the end")
	for _, m := range w.nodes {
		if is := m.core.order[0].Rights(); is.InUse != 0 || is.InStock != 0 {
			t.Errorf("node %d at the end: %+v, want nothing in use", m.id[0], is)
		}
	}
}

// TestLoansComeBackWhenThePolicyChanges: what the counter has been lent is its
// lender's again in a moment, not a session later.
func TestLoansComeBackWhenThePolicyChanges(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "a")
	w.run(20 * time.Second)
	m := w.counterOf("a")
	w.askAll(w.crowd(30, at(m)))
	w.run(time.Second)
	if m.core.order[0].Rights().InStock == 0 {
		t.Fatal("nothing was lent")
	}
	w.configure(testSettings(90))
	w.run(time.Second)
	used := int64(0)
	for _, m := range w.nodes {
		is := m.core.order[0].Rights()
		used += is.InUse
		if is.Lent != 0 || is.InStock != 0 {
			t.Errorf("node %d: %+v, want nothing lent", m.id[0], is)
		}
	}
	if used != 30 {
		t.Errorf("%d places are in use, want 30", used)
	}
}

// TestEverybodyPassesForAWhile lets everybody into a room whose limit is rights, by
// its method or because it is suspended. Visitors who were let in by the method are
// counted, so that nobody follows them while they are inside; a suspended room counts
// nobody.
func TestEverybodyPassesForAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		open func(*room.Settings)
		peak int // of those who were let in by rights
	}{
		"passthrough": {func(s *room.Settings) { s.QueueingMethod = room.Passthrough }, 40},
		"suspended":   {func(s *room.Settings) { s.Suspended = true }, 60},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, escrowSettings(60), "a", "a", "b")
			w.run(10 * time.Second)
			all := w.crowd(40, w.spread)
			if in := w.askAll(all); in != 40 {
				t.Fatalf("%d of 40 were let in", in)
			}
			w.run(time.Second)
			s := escrowSettings(60)
			c.open(&s)
			w.configure(s)
			if s.Suspended {
				if w.nodes[0].core.Route("shop", "/") != nil {
					t.Error("a suspended room takes requests")
				}
			} else if in := w.askAll(w.crowd(100, w.spread)); in != 100 {
				t.Errorf("%d of 100 were let in, want all", in)
			}
			w.run(10 * time.Second)
			w.configure(escrowSettings(60))
			stay := all
			all = append(all, w.crowd(100, w.spread)...)
			peak := 0
			for range 45 {
				w.askAll(outside(all))
				for _, p := range stay {
					if v := w.ask(p); !v.Admit {
						t.Fatalf("%s, who is inside, was refused", p.name)
					}
				}
				w.run(time.Second)
				peak = max(peak, w.active(all))
			}
			if peak != c.peak {
				t.Errorf("%d were inside at most, want %d", peak, c.peak)
			}
			w.run(2 * time.Minute)
			if peak = w.press(all, 10*time.Second); peak != 60 {
				t.Errorf("%d were inside at most once all had gone, want 60", peak)
			}
		})
	}
}
