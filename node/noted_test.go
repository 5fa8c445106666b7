package node

import (
	"testing"
	"time"
)

// TestWhatIsNotNotedMayBeUndone changes limits, and ends the room, on a slow disk: a
// crash undoes neither once it is noted. Before, nothing says that it is.
func TestWhatIsNotNotedMayBeUndone(t *testing.T) {
	limits := func(m *machine) int64 { return m.core.order[0].Rights().Limit.Places }
	for name, c := range map[string]struct {
		order func(w *world, m *machine) error
		done  func(m *machine) bool
	}{
		"limits": {
			func(w *world, m *machine) error { return m.core.Configure(escrowSettings(80), w.now) },
			func(m *machine) bool { return limits(m) == 80 },
		},
		"retire": {
			func(w *world, m *machine) error { return m.core.Retire(roomID, w.now) },
			func(m *machine) bool { return m.core.facts.room(roomID).retired },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, escrowSettings(60), "a")
			w.run(10 * time.Second)
			m := w.nodes[0]
			order := func(wait time.Duration) (noted bool) {
				m.disk.delay = 500 * time.Millisecond
				if err := c.order(w, m); err != nil {
					t.Fatal(err)
				}
				told := m.core.Told()
				if m.core.Noted(told) {
					t.Error("it is noted before anything was written")
				}
				w.run(wait)
				noted = m.core.Noted(told)
				m.disk.delay = 0
				w.kill(m)
				m.snapshot = nil // of the counts, which may hold it by chance
				w.start(m, escrowSettings(60))
				w.run(10 * time.Second)
				return noted
			}
			if order(300*time.Millisecond) || c.done(m) {
				t.Errorf("after a crash in the middle of the write: done %v, want neither that nor noted", c.done(m))
			}
			if !order(2*time.Second) || !c.done(m) {
				t.Errorf("after a crash behind the write: done %v, want that and noted", c.done(m))
			}
		})
	}
}
