package node

import (
	"testing"
	"time"
)

// TestWhoComesBackTakesNoPlaceTwice: a visitor whose session is over asks again, with
// the old pass, here or elsewhere. That session gets no place, only the next one does.
func TestWhoComesBackTakesNoPlaceTwice(t *testing.T) {
	for name, there := range map[string]func(w *world, m *machine) *machine{
		"here":      func(_ *world, m *machine) *machine { return m },
		"elsewhere": func(w *world, m *machine) *machine { return w.other(m) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, escrowSettings(90), "a", "a", "a")
			w.run(20 * time.Second)
			people := w.crowd(12, w.spread)
			if in := w.askAll(people); in != 12 {
				t.Fatalf("%d of 12 were let in", in)
			}
			w.run(61 * time.Second)
			for _, p := range people {
				p.at = there(w, p.at)
				if v := w.ask(p); !v.Admit {
					t.Errorf("%s was not let in again", p.name)
				}
			}
			w.run(5 * time.Second)
			used := int64(0)
			for _, m := range w.nodes {
				is := m.core.order[0].Rights()
				used += is.InUse - is.Lent
			}
			if used != 12 {
				t.Errorf("%d places are in use by 12 visitors", used)
			}
		})
	}
}
