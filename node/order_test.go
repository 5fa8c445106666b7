package node

import (
	"testing"
	"time"
)

// TestNobodyGoesUncountedOnTheWayIn lets a queue in bit by bit and expects every
// node to see each visitor waiting or inside at any moment, wherever the two are
// counted: who is seen as neither leaves a place that seems free.
func TestNobodyGoesUncountedOnTheWayIn(t *testing.T) {
	const visitors = 60
	s := testSettings(1000)
	s.SessionDuration = time.Hour
	s.NewUsersPerMinute = 20
	w := newWorld(t, s, "a", "a", "a")
	people := w.crowd(visitors, w.spread)
	for i, p := range people {
		w.ask(p)
		p.next = w.now.Add(s.RefreshInterval + time.Duration(i)*70*time.Millisecond)
	}
	w.run(2 * time.Second)
	worst := 0
	for end := w.now.Add(4 * time.Minute); w.now.Before(end); {
		for _, p := range people {
			if !p.in && !w.now.Before(p.next) {
				w.ask(p)
				p.next = w.now.Add(s.RefreshInterval)
			}
		}
		w.run(10 * time.Millisecond)
		for _, m := range w.nodes {
			st := m.core.order[0].status()
			worst = max(worst, visitors-int(st.Active+st.Waiting))
		}
	}
	if worst > 0 {
		t.Errorf("up to %d of %d visitors were counted neither as waiting nor as inside", worst, visitors)
	}
	for _, p := range people {
		if !p.in {
			t.Errorf("%s was never let in", p.name)
		}
	}
}
