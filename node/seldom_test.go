package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// TestWhoAsksSeldomIsNotOvertakenForEver: a room stays full, and more come all the
// time who ask as soon as they are told to. Among them wait some who do not, such as
// programs with an interval of their own. They are passed by no more than are let in
// between two of their requests, and a few more of whom they could not know.
func TestWhoAsksSeldomIsNotOvertakenForEver(t *testing.T) {
	const session, places = 40 * time.Second, 4
	for name, every := range map[string]time.Duration{"as told": 0, "every 20 s": 20 * time.Second, "every 45 s": 45 * time.Second} {
		t.Run(name, func(t *testing.T) {
			s := testSettings(places)
			s.Policy, s.RefreshInterval, s.SessionDuration = room.Escrow, 20*time.Second, session
			w := newWorld(t, s, "a", "a")
			var people, seldom []*person
			overtaken := map[*person]int{}
			end := w.now.Add(15 * time.Minute)
			for i := 0; w.now.Before(end); i++ {
				if i%140 == 0 { // one comes every 7 s, and one leaves every 10 s
					p := &person{name: name, at: w.spread(len(people)), next: w.now}
					if people = append(people, p); len(people)%8 == 0 && len(seldom) < 6 {
						seldom = append(seldom, p)
					}
				}
				for _, p := range people {
					if p.in || w.now.Before(p.next) {
						continue
					}
					v := w.ask(p)
					p.next = w.now.Add(v.Refresh)
					for _, q := range seldom {
						switch {
						case q == p && every > 0:
							p.next = w.now.Add(every)
						case q != p && p.in && q.has && !q.in && p.pass.Arrival.After(q.pass.Arrival):
							overtaken[q]++
						}
					}
				}
				w.run(50 * time.Millisecond)
			}
			most := 3 + int(2*every*places/session)
			for i, q := range seldom {
				if !q.in || overtaken[q] > most {
					t.Errorf("number %d: in: %v, and %d who came later were sooner, want %d at most", i, q.in, overtaken[q], most)
				}
			}
		})
	}
}
