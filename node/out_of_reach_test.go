package node

import (
	"testing"
	"time"
)

// acrossCut lets a visitor in at one site, who then goes on to the other and is let pass
// there. The anchor never hears of it, so that the second site takes the session over.
func acrossCut(t *testing.T) (w *world, p *person, home, away *machine) {
	t.Helper()
	w = newWorld(t, escrowSettings(90), "a", "b")
	w.run(20 * time.Second)
	home, away = w.nodes[0], w.nodes[1]
	p = &person{name: "visitor", at: home}
	if v := w.ask(p); !v.Admit || p.pass.Ticket.Anchor != home.id {
		t.Fatalf("let in %t by %+v, want a place of the node itself", v.Admit, p.pass.Ticket)
	}
	w.run(25 * time.Second)
	w.cutOff = func(a, b *machine) bool { return true }
	p.at = away
	w.ask(p)
	w.run(10 * time.Second)
	if n := away.core.order[0].Rights().InUse; n != 1 {
		t.Fatalf("%d places of the second site are in use, want one by who came from the first", n)
	}
	return w, p, home, away
}

// TestPassGetsNoShorter: the first site has renewed the session after the second one has
// taken it over. There, the visitor gets the ticket of the second, but for no shorter time.
func TestPassGetsNoShorter(t *testing.T) {
	w, p, home, away := acrossCut(t)
	p.at = home
	w.ask(p)
	before := p.pass
	if before.Ticket.Anchor != home.id || before.LeaseEnd.Sub(w.now) < 59*time.Second {
		t.Fatalf("renewed where the anchor is: %+v", before)
	}
	w.run(2 * time.Second)
	p.at = away
	if v := w.ask(p); !v.Admit || p.pass.LeaseEnd.Before(before.LeaseEnd) {
		t.Errorf("admitted %t with %v left, want no less than %v", v.Admit, p.pass.LeaseEnd.Sub(w.now), before.LeaseEnd.Sub(w.now))
	}
	if p.pass.Ticket.Anchor != away.id || p.pass.AcceptedAt != before.AcceptedAt {
		t.Errorf("got %+v, want the session with a ticket of the second site", p.pass)
	}
	if n := away.core.order[0].Rights().InUse; n != 1 {
		t.Errorf("%d places are in use, want 1", n)
	}
}

// TestPassThatRanOutGetsASession: the pass is past, and the place that the session has by
// now nearly so. This request counts as any other.
func TestPassThatRanOutGetsASession(t *testing.T) {
	w, p, _, away := acrossCut(t)
	before := p.pass
	w.run(away.core.order[0].replaced[before.Ticket].end.Sub(w.now) - time.Second)
	if left := before.LeaseEnd.Sub(w.now); left >= 0 {
		t.Fatalf("the pass has %v left", left)
	}
	if v := w.ask(p); !v.Admit || p.pass.AcceptedAt != before.AcceptedAt || p.pass.LeaseEnd.Sub(w.now) < 59*time.Second {
		t.Errorf("admitted %t with %v left, want a session", v.Admit, p.pass.LeaseEnd.Sub(w.now))
	}
}

// TestWhoLosesASessionStandsFirst: the pass of a session is past, though its lease may
// run, and nobody can be asked. If there is a place the session goes on, by which no rate
// right is used. If there is none the visitor waits, as one who came when they did,
// also at the node that has let them in, which knows their place to be used.
func TestWhoLosesASessionStandsFirst(t *testing.T) {
	for name, full := range map[string]bool{"with a place": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			s := escrowSettings(8)
			s.SessionDuration, s.RefreshInterval = 12*time.Second, time.Second
			w := newWorld(t, s, "a", "a")
			w.run(20 * time.Second)
			var there *machine // lets in by a ticket of the other node
			var p *person
			for i := 0; there == nil && i < 8; i++ {
				p = &person{name: "visitor", at: w.nodes[0], has: true, pass: Pass{
					Visitor: VisitorID{byte(i + 1)}, Room: roomID,
					Arrival: w.now.Add(-3 * time.Second), LastPoll: w.now.Add(-time.Second), Refresh: time.Second,
				}}
				if v := w.ask(p); v.Admit && p.pass.Ticket.Anchor != p.at.id {
					there = p.at
				}
			}
			if there == nil {
				t.Fatal("nobody was let in by a ticket of another node")
			}
			before := p.pass
			w.cutOff = func(a, b *machine) bool { return true }
			crowd := w.crowd(12, at(there))
			for end := before.LeaseEnd.Add(3 * time.Second); w.now.Before(end); w.run(time.Second) {
				if full {
					w.askAll(crowd)
				}
			}
			r := there.core.order[0]
			spent := r.rights.Spent()
			v := w.ask(p)
			after := r.Rights()
			if full {
				if v.Admit || p.pass.Arrival != before.Arrival || p.pass.Accepted() {
					t.Fatalf("let in %t, now %+v; want to wait, and to have come at %v", v.Admit, p.pass, before.Arrival)
				}
				w.run(time.Second)
				if v := w.ask(p); p.pass.Arrival != before.Arrival {
					t.Errorf("let in %t a second later, as who came at %v, want %v", v.Admit, p.pass.Arrival, before.Arrival)
				}
				return
			}
			if !v.Admit || p.pass.AcceptedAt != before.AcceptedAt || p.pass.Ticket.Anchor != there.id {
				t.Errorf("let in %t, now %+v; want the session to go on", v.Admit, p.pass)
			}
			if after.InUse != 1 || r.rights.Spent() != spent {
				t.Errorf("%d places and %d rate rights are used, want 1 and %d", after.InUse, r.rights.Spent(), spent)
			}
		})
	}
}

// TestIDsAfterASession: one browser gets one id, as cookies have the time, and another for
// each session that it loses.
func TestIDsAfterASession(t *testing.T) {
	id, now := VisitorID{1, 15: 2}, time.UnixMilli(1_700_000_000_000)
	first := id.after(now)
	if first != id.after(now.Add(time.Millisecond-1)) {
		t.Error("what is less than a millisecond makes another id")
	}
	seen := map[VisitorID]bool{id: true}
	for _, x := range []VisitorID{first, id.after(now.Add(time.Millisecond)), VisitorID{2}.after(now), first.after(now)} {
		if seen[x] {
			t.Errorf("%x is there twice", x)
		}
		seen[x] = true
	}
}
