package node

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// TestExplanationsAgreeWithDecisions has a crowd come, and asks of everybody, at every node,
// why; then they ask, and get what was explained. Explaining changes nothing.
func TestExplanationsAgreeWithDecisions(t *testing.T) {
	for _, policy := range []room.Policy{room.Escrow, room.Even, room.Counter} {
		t.Run(string(policy), func(t *testing.T) {
			s := testSettings(20)
			s.Policy = policy
			w := newWorld(t, s, "a", "a", "b")
			w.run(10 * time.Second)
			people := w.crowd(60, w.spread)
			seen := map[string]bool{}
			for range 30 {
				for _, p := range people {
					r := p.at.core.order[0]
					x, again := r.Explain(p.pass, p.has, w.now), r.Explain(p.pass, p.has, w.now)
					if x.Action != again.Action || !slices.Equal(x.Steps, again.Steps) {
						t.Fatalf("explained twice: %+v and %+v", x, again)
					}
					seen[x.Action+" "+string(x.Reason)] = true
					v := w.decide(p.at, p.pass, p.has)
					if v.SetPass {
						p.pass, p.has = v.Pass, true
					}
					// Who may try may be too late; nobody gets in who is said to wait.
					if v.Admit && (x.Action == "wait" || x.Action == "too_early") {
						t.Errorf("%s was let in, and was to %s: %+v", p.name, x.Action, x.Steps)
					}
					if !v.Admit && x.Action == "enter" {
						t.Errorf("%s was not let in, and was to enter: %+v", p.name, x.Steps)
					}
				}
				w.run(2 * time.Second)
			}
			if len(seen) < 4 {
				t.Errorf("only %v was explained", seen)
			}
		})
	}
}

// TestAFullRoomIsExplained to somebody new while nobody waits: rights alone decide then, and
// none is left.
func TestAFullRoomIsExplained(t *testing.T) {
	w := newWorld(t, escrowSettings(10), "a", "a", "b")
	w.run(10 * time.Second)
	for _, m := range w.nodes {
		if x := m.core.order[0].Explain(Pass{}, false, w.now); x.Action != "compete" || x.Reason != room.ReasonOpen {
			t.Fatalf("somebody new in an empty room at %s is explained as %s, %s: %+v", m.id, x.Action, x.Reason, x.Steps)
		}
	}
	people := w.crowd(10, w.spread)
	w.askAll(people)
	if n := len(outside(people)); n > 0 {
		t.Fatalf("%d of 10 are not inside", n)
	}
	w.run(5 * time.Second)
	for _, m := range w.nodes {
		x, is := m.core.order[0].Explain(Pass{}, false, w.now), m.core.View(roomID)
		if wait, known := is.WaitOfNew(w.now); !is.Full() || known && wait == 0 {
			t.Errorf("somebody new is said to wait for %v in a full room at %s: full %v", wait, m.id, is.Full())
		}
		if v := w.decide(m, Pass{}, false); v.Admit || x.Action != "wait" || x.Reason != room.ReasonNoPlace {
			t.Errorf("somebody new in a full room at %s is explained as %s, %s: %+v", m.id, x.Action, x.Reason, x.Steps)
		}
	}
}

// inAtOnce returns those of people who are inside, and came to this without waiting.
func inAtOnce(people []*person) []*person {
	return slices.DeleteFunc(slices.Clone(people), func(p *person) bool {
		return !p.in || !p.pass.Arrival.Equal(p.pass.AcceptedAt)
	})
}

// TestVisitorsAreExplainedByTheirIDs asks all nodes about one who waits and one who is in.
func TestVisitorsAreExplainedByTheirIDs(t *testing.T) {
	w := newWorld(t, escrowSettings(10), "a", "a", "b")
	w.run(10 * time.Second)
	people := w.crowd(30, w.spread)
	for range 3 {
		w.askAll(outside(people))
		w.run(6 * time.Second)
	}
	waiting, inside := people[slices.IndexFunc(people, func(p *person) bool { return !p.in })], people[slices.IndexFunc(people, func(p *person) bool { return p.in })]
	var knows int
	for _, m := range w.nodes {
		x, err := m.core.ExplainVisitor(roomID, waiting.pass.Visitor, w.now)
		if errors.Is(err, ErrUnknownVisitor) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		knows++
		if x.Action == "enter" || x.Pass == nil || x.Place == nil || x.Pass.Owner != m.id.String() || x.Pass.AcceptedAt != nil ||
			x.Pass.Arrival.Sub(waiting.pass.Arrival).Abs() > time.Second || x.View.Active != 10 || x.View.TotalActiveUsers != 10 || x.Rights == nil {
			t.Errorf("who waits is explained as %+v", x)
		}
	}
	if knows != 1 {
		t.Errorf("%d nodes know who waits, want the owner alone", knows)
	}
	x := inside.at.core.order[0].Explain(inside.pass, true, w.now)
	if x.Action != "enter" || x.Reason != room.ReasonInside || x.Pass.Anchor == "" || x.Pass.LeaseEnd == nil {
		t.Errorf("who is inside is explained as %+v", x)
	}
	knows = 0
	for _, p := range inAtOnce(people) {
		for _, m := range w.nodes {
			x, err := m.core.ExplainVisitor(roomID, p.pass.Visitor, w.now)
			if errors.Is(err, ErrUnknownVisitor) {
				continue
			}
			if knows++; err != nil || x.Action != "enter" || x.Reason != room.ReasonInside || x.Pass.AcceptedAt == nil || !x.Pass.LeaseEnd.Equal(p.pass.LeaseEnd.UTC().Truncate(time.Millisecond)) {
				t.Errorf("who was let in at once is explained as %+v, %v; the pass is %+v", x, err, p.pass)
			}
		}
	}
	if want := len(inAtOnce(people)); want == 0 || knows != want {
		t.Errorf("of %d who were let in at once and are inside, nodes know %d", want, knows)
	}
	inside.at.core.order[0].End(inside.pass, w.now)
	if x := inside.at.core.order[0].Explain(inside.pass, true, w.now); !x.Pass.Over || x.Action == "enter" {
		t.Errorf("whose session the site has ended is explained as %+v", x)
	}
	c := w.nodes[0].core
	if _, err := c.ExplainVisitor(crdt.RoomID{1}, VisitorID{1}, w.now); !errors.Is(err, ErrUnknownRoom) {
		t.Errorf("another room: %v", err)
	}
	if _, err := c.ExplainVisitor(roomID, VisitorID{1}, w.now); !errors.Is(err, ErrUnknownVisitor) {
		t.Errorf("nobody: %v", err)
	}
}
