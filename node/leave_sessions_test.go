package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// TestWhoseAnchorLeavesTakesOnePlace has visitors come again and again while the anchor
// of their tickets leaves: its heir counts their places, and they need no others.
func TestWhoseAnchorLeavesTakesOnePlace(t *testing.T) {
	w := newWorld(t, escrowSettings(40), "a", "a")
	w.run(20 * time.Second)
	lead := w.counterOf("a")
	m := w.other(lead)
	people := w.crowd(30, at(m))
	for range 10 {
		w.askAll(outside(people))
		w.run(50 * time.Millisecond)
	}
	if in := w.active(people); in != 30 {
		t.Fatalf("%d of 30 were let in", in)
	}
	w.run(2 * time.Second)
	if err := lead.core.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	slow := w.now.Add(2 * time.Second) // the hand-over is lost at first
	w.lose = func(l letter) bool { return l.m.Kind == kindHandover && w.now.Before(slow) }
	for range 50 {
		if in := w.askAll(people); in != 30 {
			t.Fatalf("%d of 30 are let pass while the anchor leaves", in)
		}
		w.run(100 * time.Millisecond)
	}
	more := w.crowd(10, at(m))
	in := 0
	for range 5 {
		in += w.askAll(outside(more))
		w.run(200 * time.Millisecond)
	}
	if in != 10 {
		t.Errorf("%d of 10 more are let in, with places for all: %+v", in, m.core.order[0].Rights())
	}
}

// TestAGrantWithoutRightsIsRefused has the counter grant as under another policy, as
// while a change of it spreads: tickets that the asker numbers itself, which have no
// right behind them.
func TestAGrantWithoutRightsIsRefused(t *testing.T) {
	w := newWorld(t, escrowSettings(20), "a", "a")
	w.run(20 * time.Second)
	lead := w.counterOf("a")
	m := w.other(lead)
	r := m.core.order[0]
	in, answered := 0, 0
	for range 30 {
		take := func(v Verdict) {
			answered++
			if v.Admit {
				in++
			}
		}
		if v, ok := r.Begin(Pass{}, false, w.now, take); ok {
			take(v)
		}
	}
	granted := false
	for _, out := range m.core.Flush(w.now) {
		if out.Kind != kindCall {
			continue
		}
		call, err := ticket.DecodeCall(out.Payload)
		if err != nil {
			t.Fatal(err)
		}
		granted = true
		w.receive(lead, m, Message{
			Kind:    kindGrant,
			Payload: ticket.AppendGrant(nil, ticket.Grant{Room: call.Room, Scope: call.Scope, Number: call.Number, Given: call.Want}),
		})
	}
	if !granted {
		t.Fatal("nobody asked the counter")
	}
	for end := w.now.Add(3 * time.Second); w.now.Before(end); w.run(100 * time.Millisecond) {
		if is := r.Rights().InUse + lead.core.order[0].Rights().InUse; int64(in) > is || len(r.stranded) > 0 {
			t.Fatalf("%d were let in, %d places are in use, and %d sessions have none", in, is, len(r.stranded))
		}
	}
	if answered != 30 {
		t.Errorf("%d of 30 have an answer", answered)
	}
}
