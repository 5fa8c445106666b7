package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// TestLeavingSoonAfterARoomWasMade: a node with a slow disk leaves at some moment after a room was
// made, and its disk is lost as soon as anybody says that it has left. By then its heir has all that
// it had in both rooms, and takes what is given to it in a room of which it had not heard.
func TestLeavingSoonAfterARoomWasMade(t *testing.T) {
	for _, sites := range [][]string{{"a", "b", "a"}, {"a", "b", "c"}, {"a", "a", "a"}} {
		step := 100 * time.Millisecond
		if testing.Short() {
			step *= 4
		}
		for moment := time.Duration(0); moment < 1500*time.Millisecond; moment += step {
			w := newCatalogWorld(t, elsewhere(40), sites...)
			w.run(10 * time.Second)
			maker, leaver := w.nodes[0], w.nodes[1]
			leaver.disk.delay = 300 * time.Millisecond
			next := shopSettings(40)
			next.NewUsersPerMinute = 40
			w.add(maker, next)
			w.run(moment)
			if err := leaver.core.Leave(w.now); err != nil {
				t.Fatal(err)
			}
			said := func() bool {
				for _, m := range w.nodes {
					if _, left := m.core.facts.left[leaver.id]; left && m != leaver {
						return true
					}
				}
				return false
			}
			for end := w.now.Add(20 * time.Second); !said(); w.run(10 * time.Millisecond) {
				if w.now.After(end) {
					t.Fatalf("%v, %v: it has not left in 20 s", sites, moment)
				}
			}
			w.kill(leaver)
			w.run(2 * time.Minute)
			for _, want := range []ticket.Amount{{Places: 40, Rate: 10_000}, {Places: 40, Rate: 40}} {
				var held ticket.Amount
				for _, m := range []*machine{maker, w.nodes[2]} {
					for _, r := range m.core.order {
						if is := r.Rights(); is.Limit == want {
							held = held.Add(is.Held)
						}
					}
				}
				if held != want {
					t.Errorf("%v, leaves after %v: %v are held, want %v", sites, moment, held, want)
				}
			}
		}
	}
}
