package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// replay shows a pass to a node and reports whether it was let in by it.
func (w *world) replay(m *machine, p Pass) bool {
	w.t.Helper()
	v := w.decide(m, p, true)
	return v.Admit && v.Pass.AcceptedAt.Equal(p.AcceptedAt)
}

func (w *world) end(m *machine, p Pass) { m.core.order[0].End(p, w.now) }

// activeAt returns what each node counts as active.
func (w *world) activeAt() (counts []int64) {
	for _, m := range w.nodes {
		if m.core != nil {
			counts = append(counts, m.core.order[0].status().Active)
		}
	}
	return counts
}

func (w *world) expectActive(want int64, when string) {
	w.t.Helper()
	for _, got := range w.activeAt() {
		if got != want {
			w.t.Errorf("active %s = %v, want %d everywhere", when, w.activeAt(), want)
			return
		}
	}
}

func TestOriginEndsASessionAtItsAnchor(t *testing.T) {
	w := newWorld(t, testSettings(1), "a")
	p, next := &person{name: "first", at: w.nodes[0]}, &person{name: "second", at: w.nodes[0]}
	if w.ask(p); !p.in {
		t.Fatal("not admitted to an empty room")
	}
	w.run(time.Second)
	if w.ask(next); next.in {
		t.Fatal("two are inside, the limit is one")
	}
	w.run(5 * time.Second)
	if w.ask(p); !p.in {
		t.Fatal("the session was lost")
	}
	w.end(p.at, p.pass)
	if w.replay(p.at, p.pass) {
		t.Error("the pass of an ended session is still good")
	}
	w.run(100 * time.Millisecond)
	if w.ask(next); !next.in {
		t.Error("the place is not free at once")
	}
	w.run(time.Second)
	w.expectActive(1, "after the second came in")
	if w.replay(p.at, p.pass) {
		t.Error("the pass of an ended session is good again")
	}
}

// TestEndBeforeTheLeaseIsOpen ends a session in the same instant in which it
// begins, before the loop has met it.
func TestEndBeforeTheLeaseIsOpen(t *testing.T) {
	w := newWorld(t, testSettings(10), "a")
	p := &person{name: "visitor", at: w.nodes[0]}
	w.ask(p)
	w.end(p.at, p.pass)
	w.run(time.Second)
	w.expectActive(0, "after the end")
}

func TestOriginEndsASessionElsewhere(t *testing.T) {
	w := newWorld(t, testSettings(10), "a", "a", "b")
	anchor, here, third := w.nodes[0], w.nodes[1], w.nodes[2]
	p := &person{name: "visitor", at: anchor}
	w.ask(p)
	w.run(2 * time.Second)
	w.expectActive(1, "before the end")
	w.end(here, p.pass)
	if w.replay(here, p.pass) {
		t.Error("the pass is good where the session was ended")
	}
	w.run(50 * time.Millisecond)
	w.run(2 * time.Second)
	// The replay above came in as somebody new.
	w.expectActive(1, "after the end")
	if w.replay(anchor, p.pass) {
		t.Error("the pass is good at the anchor")
	}
	// The third node has not heard: it lets the pass through, and learns.
	if !w.replay(third, p.pass) {
		t.Error("a node that cannot know refused the pass")
	}
	w.run(2 * time.Second)
	if w.replay(third, p.pass) {
		t.Error("the pass is good where the anchor's word has arrived")
	}
	w.run(2 * time.Second)
	for _, m := range []*machine{here, third} {
		if n := len(m.core.order[0].replaced); n != 0 {
			t.Errorf("an ended session was taken over at node %d", m.id[0])
		}
	}
	if n := here.core.order[0].endings.Len(); n != 0 {
		t.Errorf("%d ends are on their way though the anchor has answered", n)
	}
}

// TestEndIsToldUntilTheAnchorAnswers loses every message about it for a while.
func TestEndIsToldUntilTheAnchorAnswers(t *testing.T) {
	for name, lost := range map[string]uint8{"news": kindEnd, "answer": kindRenewAck} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, testSettings(10), "a", "a")
			p := &person{name: "visitor", at: w.nodes[0]}
			w.ask(p)
			w.run(2 * time.Second)
			w.lose = func(l letter) bool { return l.m.Kind == lost }
			w.end(w.nodes[1], p.pass)
			w.run(10 * time.Second)
			if w.nodes[1].core.order[0].endings.Len() != 1 {
				t.Fatal("given up while the lease may run")
			}
			w.lose = nil
			w.run(6 * time.Second)
			w.expectActive(0, "once messages arrive again")
			if n := w.nodes[1].core.order[0].endings.Len(); n != 0 {
				t.Errorf("%d ends are on their way though the anchor has answered", n)
			}
		})
	}
}

// TestEndOutlivesTheAnchor: who ended a session does not take it over when its
// anchor goes, and does not tell an anchor that is gone for ever.
func TestEndOutlivesTheAnchor(t *testing.T) {
	s := testSettings(10)
	w := newWorld(t, s, "a", "a")
	anchor, here := w.nodes[0], w.nodes[1]
	p := &person{name: "visitor", at: anchor}
	w.ask(p)
	w.run(2 * time.Second)
	w.kill(anchor)
	w.end(here, p.pass)
	for range 3 * int(s.SessionDuration/time.Second) {
		w.run(time.Second)
		if w.replay(here, p.pass) {
			t.Fatalf("an ended session was taken over %v after it began", w.now.Sub(p.pass.AcceptedAt))
		}
	}
	if n := here.core.order[0].endings.Len(); n != 0 {
		t.Errorf("%d ends are told to an anchor that is gone for three sessions", n)
	}
}

// TestEndOfASessionThatWasTakenOver ends it by its new pass and by its old one:
// neither is good afterwards, and nothing stays counted at the node.
func TestEndOfASessionThatWasTakenOver(t *testing.T) {
	for _, by := range []string{"new pass", "old pass"} {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t, testSettings(10), "a", "a")
			here := w.nodes[1]
			p := &person{name: "visitor", at: w.nodes[0]}
			w.ask(p)
			old := p.pass
			w.run(2 * time.Second)
			w.kill(w.nodes[0])
			p.at = here
			for range 5 {
				w.run(time.Second)
				if w.ask(p); !p.in {
					t.Fatal("the session was lost")
				}
			}
			if p.pass.Ticket == old.Ticket {
				t.Fatal("the session was not taken over")
			}
			if by == "new pass" {
				w.end(here, p.pass)
			} else {
				w.end(here, old)
			}
			w.run(200 * time.Millisecond)
			if got := here.core.replica.Own(roomID, w.now).Active; got != 0 {
				t.Errorf("active at the node = %d, want 0", got)
			}
			for name, pass := range map[string]Pass{"old": old, "new": p.pass} {
				if w.replay(here, pass) {
					t.Errorf("the %s pass is good after the end", name)
				}
			}
			if n := len(here.core.order[0].replaces) - len(here.core.order[0].replaced); n != 0 {
				t.Errorf("the two directions of what was taken over differ by %d", n)
			}
		})
	}
}

// TestEndTakesThePlaceAlong: the pass that waited brought its holder in for thirty
// seconds. It does not once the session was ended.
func TestEndTakesThePlaceAlong(t *testing.T) {
	w := newWorld(t, testSettings(1), "a")
	first, p := &person{name: "first", at: w.nodes[0]}, &person{name: "second", at: w.nodes[0]}
	w.ask(first)
	w.run(time.Second)
	w.ask(p)
	waited := p.pass
	w.end(first.at, first.pass)
	w.run(5 * time.Second)
	if w.ask(p); !p.in {
		t.Fatal("not let in though the room is empty")
	}
	w.run(time.Second)
	if !w.replay(p.at, p.pass) || !w.decide(p.at, waited, true).Admit {
		t.Fatal("an answer that was lost cannot be had again")
	}
	w.end(p.at, p.pass)
	if v := w.decide(p.at, waited, true); v.Admit && v.Pass.Ticket == p.pass.Ticket {
		t.Error("the pass that waited brings the ended session back")
	}
}

// TestEndedIsNeverReanchored asks for what no message brings about: whichever way
// it comes to that, an ended session gets no ticket.
func TestEndedIsNeverReanchored(t *testing.T) {
	w := newWorld(t, testSettings(10), "a")
	r := w.nodes[0].core.order[0]
	gone := ticket.Ticket{Anchor: crdt.NodeID{9}, Boot: 1, Seq: 1}
	r.End(Pass{Room: roomID, Ticket: gone, AcceptedAt: w.now, LeaseEnd: w.now.Add(time.Minute)}, w.now)
	lost := gone
	lost.Seq++
	r.reanchor(gone, w.now, w.now, w.now)
	r.reanchor(lost, w.now, w.now, w.now)
	w.run(time.Second)
	if _, ok := r.replaced[gone]; ok || len(r.replaced) != 1 {
		t.Errorf("taken over: %v, want the lost session alone", r.replaced)
	}
	w.expectActive(1, "after one was taken over")
}

// TestAnchorTellsEndedFromLost asks an anchor about three sessions in one message.
func TestAnchorTellsEndedFromLost(t *testing.T) {
	w := newWorld(t, testSettings(10), "a", "a")
	anchor, here := w.nodes[0], w.nodes[1]
	runs, gone := &person{name: "runs", at: anchor}, &person{name: "ended", at: anchor}
	w.ask(runs)
	w.ask(gone)
	w.run(time.Second)
	w.end(anchor, gone.pass)
	w.run(time.Second)
	lost := runs.pass.Ticket
	lost.Seq += 100
	batch := ticket.Batch{Room: roomID, Anchor: anchor.id}
	for _, tk := range []ticket.Ticket{runs.pass.Ticket, gone.pass.Ticket, lost} {
		batch.Items = append(batch.Items, ticket.Renewal{Ticket: tk, PassEnd: runs.pass.LeaseEnd, At: w.now})
	}
	var got ticket.Acks
	w.lose = func(l letter) bool {
		if l.m.Kind == kindRenewAck {
			got, _ = ticket.DecodeAcks(l.m.Payload)
		}
		return false
	}
	w.receive(here, anchor, Message{Kind: kindRenew, Payload: ticket.AppendBatch(nil, batch, w.now)})
	w.run(50 * time.Millisecond)
	if len(got.Items) != 3 {
		t.Fatalf("answers = %+v, want three", got)
	}
	if a := got.Items[0]; a.End.IsZero() || a.Ended {
		t.Errorf("of a session that runs: %+v", a)
	}
	if a := got.Items[1]; !a.End.IsZero() || !a.Ended {
		t.Errorf("of an ended session: %+v", a)
	}
	if a := got.Items[2]; !a.End.IsZero() || a.Ended {
		t.Errorf("of a session that is not known: %+v", a)
	}
}

// TestEndedSessionsAreBounded ends more sessions than are remembered: the newest
// stay ended, and memory stays what it is.
func TestEndedSessionsAreBounded(t *testing.T) {
	c, now := loneCore(t, openRooms(1))
	r := c.order[0]
	s := &c.stripes.all[0]
	var keys []ticket.Ticket
	for tk := (ticket.Ticket{Anchor: crdt.NodeID{9}, Boot: 1}); len(keys) < maxOvers+10; tk.Seq++ {
		if c.stripes.ofSession(sessionKey{r.id, tk}) == s {
			keys = append(keys, tk)
			r.End(Pass{Room: r.id, Ticket: tk, AcceptedAt: now, LeaseEnd: now.Add(time.Hour)}, now)
		}
	}
	if len(s.renewals) != maxOvers {
		t.Errorf("%d ended sessions are remembered, want %d", len(s.renewals), maxOvers)
	}
	if r.over(keys[0]) || !r.over(keys[10]) || !r.over(keys[len(keys)-1]) {
		t.Error("not the oldest ones were forgotten")
	}
	s.forget(now.Add(1000 * time.Hour))
	if len(s.renewals) != 0 {
		t.Errorf("%d are remembered although no pass can claim them", len(s.renewals))
	}
}

// TestEndBeforeTheSessionWasSeenAgain ends a session that its anchor issued
// before it started again, and then asks it about that session.
func TestEndBeforeTheSessionWasSeenAgain(t *testing.T) {
	c, now := loneCore(t, openRooms(1))
	r := c.order[0]
	p := Pass{Visitor: VisitorID{1}, Room: r.id, Arrival: now, AcceptedAt: now, LeaseEnd: now.Add(time.Minute)}
	p.Ticket.Anchor, p.Ticket.Boot, p.Ticket.Seq = c.self.Node, c.self.Boot-1, 1
	r.End(p, now)
	q := question{1, r.id, p.Ticket, p.LeaseEnd, 0}
	out, err := c.Receive(replica.Peer{ID: crdt.NodeID{9}, Boot: 1, Site: "b", Ready: true}, kindAsk, encodeQuestion(q), now)
	if err != nil || len(out) != 1 {
		t.Fatalf("%d answers, %v", len(out), err)
	}
	if a, err := decodeReply(out[0].Payload); err != nil || !a.end.IsZero() {
		t.Errorf("answer %+v, %v, want that the session is over", a, err)
	}
}

// TestEndTakesEarlierTicketsAlong ends a session that this node took over, and
// shows the pass from before, which has run out, before the loop has come round.
func TestEndTakesEarlierTicketsAlong(t *testing.T) {
	for _, gone := range []bool{false, true} {
		c, old, _, now := asker(t)
		r := c.order[0]
		old.LeaseEnd = now.Add(-time.Millisecond)
		p := old
		p.Ticket, p.LeaseEnd = r.newTicket(), now.Add(time.Minute)
		k := sessionKey{r.id, old.Ticket}
		c.stripes.ofSession(k).renewed(k, renewal{ticket: p.Ticket, end: p.LeaseEnd})
		r.End(p, now)
		if gone {
			c.SetPeers(nil, now)
		}
		var later []Verdict
		v, ok := r.Begin(old, true, now, func(v Verdict) { later = append(later, v) })
		if !ok {
			c.Flush(now)
		}
		for _, v := range append(later, v) {
			if v.Pass.Ticket == p.Ticket || v.Pass.Ticket == old.Ticket && v.Admit {
				t.Errorf("anchor gone %v: the session that was ended goes on", gone)
			}
		}
	}
}
