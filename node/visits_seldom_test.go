package node

import (
	"testing"
	"time"
)

// TestVisitsAreToldSeldom has a crowd come to one of three nodes, and counts in how many messages
// the others, who own two thirds of it, hear of that.
func TestVisitsAreToldSeldom(t *testing.T) {
	s := testSettings(10)
	s.QueueAll = true
	s.RefreshInterval = 10 * time.Second
	w := newWorld(t, s, "a", "a", "a")
	told := 0
	w.lose = func(l letter) bool {
		if l.m.Kind == kindVisits {
			told++
		}
		return false
	}
	const crowd, span = 200, 2 * time.Second
	people := w.crowd(crowd, at(w.nodes[0]))
	for _, p := range people {
		w.ask(p)
		w.run(span / crowd)
	}
	w.run(time.Second)
	if most := 2 * int((span+visitsEvery)/visitsEvery+1); told > most {
		t.Errorf("%d visits in %v were told of in %d messages, want at most %d", crowd, span, told, most)
	}
	for _, m := range w.nodes {
		if got := m.core.Route("shop", "/").View().Waiting; got != crowd {
			t.Errorf("node %s counts %d who wait, want %d", m.id, got, crowd)
		}
	}
	told = 0
	const rounds = 4
	for range rounds {
		w.run(s.RefreshInterval - span)
		for _, p := range people {
			w.ask(p)
			w.run(span / crowd)
		}
	}
	if most := rounds * 2 * int((span+againEvery)/againEvery+1); told > most {
		t.Errorf("%d polls each of %d visitors were told of in %d messages, want at most %d", rounds, crowd, told, most)
	}
	for _, m := range w.nodes {
		if got := m.core.Route("shop", "/").View().Waiting; got != crowd {
			t.Errorf("node %s counts %d who wait and have polled, want %d", m.id, got, crowd)
		}
	}
}

// TestWhoPollsInTimeIsCountedThroughout has somebody poll at a node that is not the owner, in
// many rhythms.
func TestWhoPollsInTimeIsCountedThroughout(t *testing.T) {
	for _, refresh := range []time.Duration{2 * time.Second, 3 * time.Second, 5 * time.Second} {
		for _, part := range []float64{0.8, 1, 1.3, 1.8} {
			s := testSettings(10)
			s.QueueAll = true
			s.RefreshInterval = refresh
			w := newWorld(t, s, "a", "a", "a")
			m := w.nodes[0]
			p := &person{at: m}
			for w.ask(p); m.core.owner(roomID, p.pass.Visitor) == m.id; {
				p = &person{at: m}
				w.ask(p)
			}
			w.run(5 * refresh) // the others are gone
			rhythm := time.Duration(part * float64(refresh))
			p = &person{at: m, pass: p.pass, has: true}
			w.ask(p)
			w.run(time.Second)
			for range 20 {
				for end := w.now.Add(rhythm); w.now.Before(end); w.run(50 * time.Millisecond) {
					if got := w.nodes[1].core.Route("shop", "/").View().Waiting; got != 1 {
						t.Fatalf("told %v, asking every %v: %d are counted, want 1", refresh, rhythm, got)
					}
				}
				w.ask(p)
			}
		}
	}
}
