package node

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// visited runs a world in which rooms of all policies are quiet, are visited, crowded, left
// alone, changed and visited again, and returns what visitors were told and what nodes have
// at the end. Between all that is time in which rooms sleep, and waking them comes at any
// moment of a nap.
func visited(t *testing.T, restless bool, sites ...string) (j *transcript, slept int) {
	var rooms []room.Settings
	for i, p := range []room.Policy{room.Escrow, room.Even, room.Counter, room.Escrow, room.Escrow} {
		s := escrowSettings(12)
		s.Host, s.Name, s.Policy = fmt.Sprint("shop", i), fmt.Sprint("room", i), p
		s.ID[0], s.SessionDuration = byte(7+i), 12*time.Second
		rooms = append(rooms, s)
	}
	start := time.Unix(1_700_000_000, 0)
	more := 30
	rooms[3].Events = []room.Event{{Name: "sale", TotalActiveUsers: &more, Start: start.Add(47 * time.Second), PrequeueStart: start.Add(33 * time.Second), End: start.Add(70 * time.Second)}}
	w := newStoppedWorld(t)
	w.restless, w.more, w.remember = restless, rooms[1:], true
	w.begin(rooms[0], sites...)
	w.run(17 * time.Second) // until nothing has happened for long
	j = &transcript{}
	for _, m := range w.nodes {
		for _, r := range m.core.order {
			if r.escrow() && !r.still {
				t.Errorf("%v of node %v is not still", r.id, m.id)
			}
		}
	}
	choose := rand.New(rand.NewPCG(3, 4))
	people := w.crowd(100, w.spread)
	for step := range 1500 {
		if step == 700 {
			rooms[0].TotalActiveUsers = 20
			if err := w.nodes[0].core.Configure(rooms[0], w.now); err != nil {
				t.Fatal(err)
			}
		}
		burst := step%500 > 300 && step%500 < 400 // else somebody comes now and then
		for i, p := range people {
			if chance := choose.IntN(2000); !burst && chance > 0 || burst && chance > 40 {
				continue
			}
			r := p.at.core.Route(fmt.Sprint("shop", i%len(rooms)), "/")
			v, ok := r.Begin(p.pass, p.has, w.now, func(v Verdict) {
				j.note("later", step, i, v.Admit, v.SetPass, v.Pass, v.Estimate, v.Refresh)
				if v.SetPass {
					p.pass, p.has = v.Pass, true
				}
			})
			if !ok {
				w.post(p.at, p.at.core.Flush(w.now))
				continue
			}
			j.note("answer", step, i, v.Admit, v.SetPass, v.Pass, v.Estimate, v.Refresh)
			if v.SetPass {
				p.pass, p.has = v.Pass, true
			}
			if v.Admit && choose.IntN(4) == 0 {
				r.End(v.Pass, w.now)
			}
		}
		w.run(60 * time.Millisecond)
		for _, m := range w.nodes {
			for _, r := range m.core.order {
				if !slices.Contains(m.core.naps.awake, r) { // the last tick left it out
					slept++
				}
				if is := r.Rights(); r.escrow() && is.Held.Places < is.InUse {
					t.Fatalf("%v of node %v: %d places are in use, of %d", r.id, m.id, is.InUse, is.Held.Places)
				}
			}
		}
	}
	for _, m := range w.nodes {
		for _, x := range m.core.Stored() {
			if x.Object != factsObject {
				j.note("stored", m.id, x)
			}
		}
		j.note("issued", m.id, m.core.issued.Load())
		for _, r := range m.core.order {
			j.note("room", m.id, r.id, r.Rights(), r.spent, r.held)
		}
	}
	return j, slept
}

// TestSleepingRoomsAreAsThoseAwake runs the same with rooms that may sleep and with rooms that
// never do, and compares every answer and what is left in the end.
func TestSleepingRoomsAreAsThoseAwake(t *testing.T) {
	for _, sites := range [][]string{{"a"}, {"a", "a"}, {"a", "a", "b"}} {
		t.Run(fmt.Sprint(sites), func(t *testing.T) {
			is, slept := visited(t, false, sites...)
			want, never := visited(t, true, sites...)
			if slept < 300 || never > 0 {
				t.Errorf("rooms slept %d times, and %d times where they never should", slept, never)
			}
			for i := range min(len(is.lines), len(want.lines)) {
				if is.lines[i] != want.lines[i] {
					t.Fatalf("of %d lines, line %d differs:\n%s\n%s", len(is.lines), i, is.lines[i], want.lines[i])
				}
			}
			if len(is.lines) != len(want.lines) {
				t.Errorf("one run has %d lines, another %d", len(is.lines), len(want.lines))
			}
		})
	}
}

// TestAStillRoomTurnsNobodyAway has a visitor come where nothing has happened for long, at each node and at any moment
// between two looks at the room, and a crowd after that: the first gets in as soon as in any other room, and no more
// of the others than the limit says.
func TestAStillRoomTurnsNobodyAway(t *testing.T) {
	for i := range 12 {
		w := newWorld(t, escrowSettings(100), "a", "a", "b")
		w.run(stillAfter + 3*time.Second + time.Duration(i)*430*time.Millisecond)
		first := w.crowd(1, func(int) *machine { return w.nodes[i%3] })
		r := first[0].at.core.order[0]
		if !r.still {
			t.Fatalf("the room is not still at node %v", first[0].at.id)
		}
		v := r.view.Load()
		if now, stands := r.outdated(v, w.now), r.outdated(v, w.now.Add(viewKept+tickInterval)); now || !stands {
			t.Errorf("a view is outdated = %v while the loop comes round, and %v when it stands", now, stands)
		}
		asked := w.now
		if v := w.ask(first[0]); !v.Admit || w.now.Sub(asked) > 2*w.delay+2*tickInterval {
			t.Errorf("let in = %v, after %v", v.Admit, w.now.Sub(asked))
		}
		more := w.crowd(130, w.spread)
		in := 1 + w.askAll(more)
		for range 3 {
			w.run(5 * time.Second)
			in += w.askAll(outside(more))
		}
		if in < 98 || in > 100 {
			t.Errorf("%d are inside, want nearly 100 and no more", in)
		}
	}
}
