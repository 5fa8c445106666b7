package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// TestSessionsAreNotRenewed: the first end of a session is its last, wherever the
// visitor goes and however often, and no message is sent about it.
func TestSessionsAreNotRenewed(t *testing.T) {
	s := testSettings(10)
	s.DisableSessionRenewal = true
	w := newWorld(t, s, "a", "a", "b")
	renewals := 0
	w.lose = func(l letter) bool {
		if l.m.Kind == kindRenew {
			renewals++
		}
		return false
	}
	p := &person{name: "visitor", at: w.nodes[0]}
	w.ask(p)
	first := p.pass
	for i := 0; w.now.Before(first.LeaseEnd); i++ {
		p.at = w.nodes[i%3]
		v := w.ask(p)
		if !v.Admit || v.SetPass || p.pass != first {
			t.Fatalf("%v before the end: admitted %v, pass set %v", first.LeaseEnd.Sub(w.now), v.Admit, v.SetPass)
		}
		w.run(time.Second)
	}
	w.run(time.Second)
	if v := w.ask(p); !v.Admit || !v.SetPass || p.pass.Ticket == first.Ticket || p.pass.Visitor == first.Visitor {
		t.Errorf("after the end: %+v, want to be let in as somebody new", v.Pass)
	}
	if renewals > 0 {
		t.Errorf("%d messages about sessions that are not renewed", renewals)
	}
	w.run(3 * time.Second)
	w.expectActive(1, "in the second session")
}

// TestRenewalChangesLive turns renewal off and on under visitors who browse. Off,
// sessions last as long as was promised; on again, they go on.
func TestRenewalChangesLive(t *testing.T) {
	s := testSettings(100)
	w := newWorld(t, s, "a", "a", "b")
	people := w.crowd(12, w.spread)
	for i, p := range people {
		w.ask(p)
		p.at = w.nodes[(i+i/3)%3]
		w.run(time.Second)
	}
	browse := func(d time.Duration, each func(p *person, before Pass)) {
		t.Helper()
		for end := w.now.Add(d); w.now.Before(end); w.run(2 * time.Second) {
			for _, p := range people {
				before := p.pass
				w.ask(p)
				each(p, before)
			}
		}
	}
	same := func(p *person, before Pass) {
		if !p.in || p.pass.Visitor != before.Visitor {
			t.Errorf("%s lost a session that ran until %v at %v", p.name, before.LeaseEnd, w.now)
		}
	}
	browse(90*time.Second, same)
	s.DisableSessionRenewal = true
	w.configure(s)
	// Less than what the shortest pass has left: a cookie is an eighth behind.
	browse(40*time.Second, same)
	s.DisableSessionRenewal = false
	w.configure(s)
	browse(90*time.Second, same)
	s.DisableSessionRenewal = true
	w.configure(s)
	again := 0
	browse(70*time.Second, func(p *person, before Pass) {
		if p.pass.Visitor != before.Visitor {
			again++
			if !w.now.After(before.LeaseEnd) {
				t.Errorf("%s lost a session that runs until %v at %v", p.name, before.LeaseEnd, w.now)
			}
		}
	})
	if again != len(people) {
		t.Errorf("%d of %d sessions ended without renewal", again, len(people))
	}
}

// TestAnchorDiesWithoutRenewal: the pass alone carries a session to its end, and
// the place is counted until then.
func TestAnchorDiesWithoutRenewal(t *testing.T) {
	s := testSettings(10)
	s.DisableSessionRenewal = true
	s.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	w := newWorld(t, s, "a", "a")
	p := &person{name: "visitor", at: w.nodes[0]}
	w.ask(p)
	first := p.pass
	w.run(2 * time.Second)
	w.kill(w.nodes[0])
	p.at = w.nodes[1]
	for w.now.Before(first.LeaseEnd.Add(-time.Second)) {
		if w.ask(p); !p.in || p.pass != first {
			t.Fatal("the session was lost, or another was made of it")
		}
		w.expectActive(1, "while the session lasts")
		w.run(time.Second)
	}
}

// TestVisitsThatAreToldExtendNothing: the place is free when the pass ends, though
// the anchor heard of every visit.
func TestVisitsThatAreToldExtendNothing(t *testing.T) {
	s := testSettings(10)
	s.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	w := newWorld(t, s, "a", "a")
	told := 0
	w.lose = func(l letter) bool {
		if l.m.Kind == kindRenew {
			told++
		}
		return false
	}
	p := &person{name: "visitor", at: w.nodes[0]}
	w.ask(p)
	s.DisableSessionRenewal = true
	w.configure(s)
	p.at = w.nodes[1]
	for w.now.Before(p.pass.LeaseEnd.Add(-time.Second)) {
		w.run(time.Second)
		w.ask(p)
	}
	if told == 0 {
		t.Fatal("the anchor heard of no visit")
	}
	w.run(3 * time.Second)
	w.expectActive(0, "after the end of the pass")
}

// TestEndReachesOthersWithoutRenewal: where the origin may end sessions, visits
// are told to the anchor although they extend nothing.
func TestEndReachesOthersWithoutRenewal(t *testing.T) {
	s := testSettings(10)
	s.DisableSessionRenewal = true
	s.EnabledOriginCommands = []room.OriginCommand{room.Revoke}
	w := newWorld(t, s, "a", "a", "b")
	p := &person{name: "visitor", at: w.nodes[0]}
	w.ask(p)
	w.run(2 * time.Second)
	w.end(w.nodes[1], p.pass)
	w.run(3 * time.Second)
	w.expectActive(0, "after the end")
	w.replay(w.nodes[2], p.pass) // it cannot know yet
	w.run(2 * time.Second)
	if w.replay(w.nodes[2], p.pass) {
		t.Error("an ended session goes on at a node that had its anchor's word")
	}
}
