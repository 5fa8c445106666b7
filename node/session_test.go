package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

func TestSessionOutlivesItsAnchor(t *testing.T) {
	w := newWorld(t, testSettings(10), "a", "a", "b")
	p := &person{name: "visitor", at: w.nodes[0]}
	if !w.ask(p).Admit {
		t.Fatal("not admitted to an empty room")
	}
	anchor := p.pass.Ticket.Anchor
	w.run(2 * time.Second)
	w.kill(w.nodes[0])
	p.at = w.nodes[2]
	for range 60 { // three sessions
		w.run(3 * time.Second)
		if !w.ask(p).Admit {
			t.Fatalf("the session was lost at %v", w.now)
		}
	}
	if p.pass.Ticket.Anchor == anchor {
		t.Error("the session is still anchored at a node that is gone")
	}
}

// TestSessionOutlivesItsAnchorWhateverTheMoment has the anchor die at each moment
// of a session, and the visitor come back to another node at each later one.
func TestSessionOutlivesItsAnchorWhateverTheMoment(t *testing.T) {
	s := testSettings(10)
	s.SessionDuration = 8 * time.Second
	for dies := 0; dies < 8; dies += 2 {
		for pause := 1; pause <= 7; pause++ {
			w := newWorld(t, s, "a", "a")
			p := &person{name: "visitor", at: w.nodes[0]}
			w.ask(p)
			for range dies {
				w.run(time.Second)
				w.ask(p)
			}
			w.kill(w.nodes[0])
			p.at = w.nodes[1]
			for range 4 {
				w.run(time.Duration(pause) * time.Second)
				if !w.ask(p).Admit {
					t.Errorf("anchor dead after %d s, requests every %d s: the session was lost", dies, pause)
				}
			}
		}
	}
}

func TestReanchoringCountsOneMore(t *testing.T) {
	w := newWorld(t, testSettings(10), "a", "a")
	p := &person{name: "visitor", at: w.nodes[0]}
	w.ask(p)
	w.run(2 * time.Second)
	w.kill(w.nodes[0])
	p.at = w.nodes[1]
	old := p.pass
	for range 20 {
		w.run(time.Second)
		// A browser that does not take up the new cookie is still one visitor.
		if v := p.at.core.order[0].Decide(old, true, w.now); !v.Admit {
			t.Fatal("the session was lost")
		}
	}
	if got := w.nodes[1].core.replica.Own(roomID, w.now).Active; got != 1 {
		t.Errorf("active at the new anchor = %d, want 1", got)
	}
}

func TestSessionsSurviveTheRestartOfTheirNode(t *testing.T) {
	s := testSettings(4)
	w := newWorld(t, s, "a")
	people := w.crowd(6, w.spread)
	for _, p := range people {
		w.ask(p)
		w.run(time.Second)
	}
	w.kill(w.nodes[0])
	w.start(w.nodes[0], s)
	w.run(time.Second)
	for i, p := range people {
		p.next = w.now
		if i < 4 && !w.ask(p).Admit {
			t.Errorf("%s lost the session in a restart", p.name)
		}
	}
	if late := (&person{name: "newcomer", at: w.nodes[0]}); w.ask(late).Admit {
		t.Error("a newcomer was let in although four of four are active")
	}
	// The sessions end; those who waited before the restart come first.
	end := w.now.Add(3 * s.SessionDuration)
	for w.now.Before(end) && (!people[4].in || !people[5].in) {
		w.run(5 * time.Second)
		w.ask(people[4])
		w.ask(people[5])
	}
	if !people[4].in || !people[5].in {
		t.Error("those who waited were never let in after the restart")
	}
}

// TestCutOfTenMinutesHeals cuts the sites apart while visitors come to both, and
// expects one picture soon after.
func TestCookieIsSetRarely(t *testing.T) {
	w := newWorld(t, testSettings(10), "a", "a")
	p := &person{name: "visitor", at: w.nodes[0]}
	w.ask(p)
	for _, at := range w.nodes { // at the anchor, and elsewhere
		p.at = at
		sets := 0
		const requests = 240
		for range requests {
			w.run(500 * time.Millisecond)
			v := w.ask(p)
			if !v.Admit {
				t.Fatal("the session was lost")
			}
			if v.SetPass {
				sets++
			}
		}
		// Two minutes are two sessions: a later end is written each eighth.
		if sets < 8 || sets > 17 {
			t.Errorf("%d of %d answers set a cookie, want about 16", sets, requests)
		}
	}
}

func TestPassRunOutIsAskedForAtTheAnchor(t *testing.T) {
	s := testSettings(10)
	w := newWorld(t, s, "a", "b")
	p := &person{name: "visitor", at: w.nodes[0]}
	w.ask(p)
	old := p.pass
	w.run(s.SessionDuration / 2)
	w.ask(p) // the lease goes on, and the browser loses the answer
	w.run(s.SessionDuration * 3 / 4)
	p.pass, p.at = old, w.nodes[1]
	if v := w.ask(p); !v.Admit || v.Pass.Ticket != old.Ticket || !v.Pass.LeaseEnd.After(w.now) {
		t.Errorf("verdict = %+v, want the same session with a later end", v)
	}
	w.run(s.SessionDuration * 3 / 2)
	if v := w.ask(p); !v.Pass.AcceptedAt.IsZero() && v.Pass.Ticket == old.Ticket {
		t.Errorf("verdict = %+v, want a new session: the old one is over", v)
	}
}

// TestAnchorCannotGrantMoreThanASession has an anchor answer check-ins and
// questions with an end that no honest one agrees to.
func TestAnchorCannotGrantMoreThanASession(t *testing.T) {
	s := testSettings(10)
	w := newWorld(t, s, "a", "a")
	liar, here := w.nodes[0], w.nodes[1]
	p := &person{name: "visitor", at: liar}
	w.ask(p)
	never := w.now.Add(1000 * time.Hour)
	liar.core = nil // from here on, the test speaks for it

	p.at = here
	w.run(s.SessionDuration / 4)
	w.ask(p)
	w.run(time.Second)
	ack := ticket.Acks{Room: roomID, Anchor: liar.id, Items: []ticket.Ack{{Ticket: p.pass.Ticket, End: never}}}
	w.receive(liar, here, Message{Kind: kindRenewAck, Payload: ticket.AppendAcks(nil, ack)})
	latest := w.now.Add(s.SessionDuration + ticket.Guard)
	if v := w.ask(p); !v.SetPass || v.Pass.LeaseEnd.After(latest) {
		t.Errorf("after a check-in: pass set %v, to end at %v, want no later than %v", v.SetPass, v.Pass.LeaseEnd, latest)
	}

	w.now = p.pass.LeaseEnd.Add(time.Minute)
	latest = w.now.Add(s.SessionDuration + ticket.Guard + time.Second)
	var got Verdict
	if _, ok := here.core.order[0].Begin(p.pass, true, w.now, func(v Verdict) { got = v }); ok {
		t.Fatal("a pass that has run out was judged without its anchor")
	}
	for _, m := range here.core.Flush(w.now) {
		q, err := decodeQuestion(m.Payload)
		if err != nil {
			t.Fatal(err)
		}
		w.receive(liar, here, Message{Kind: kindAnswer, Payload: encodeReply(reply{q.number, never})})
	}
	if !got.Admit || got.Pass.LeaseEnd.After(latest) {
		t.Errorf("after a question: %+v, want no end later than %v", got, latest)
	}
}
