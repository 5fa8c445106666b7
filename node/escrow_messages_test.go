package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestAdmittedVisitorsWaitForNobody has visitors whose anchors are other nodes make
// many requests everywhere: each is answered at once, and the anchors hear of them
// in the background, in one message for each anchor and tick at most, and of each
// visitor once in it.
func TestAdmittedVisitorsWaitForNobody(t *testing.T) {
	w := newWorld(t, escrowSettings(240), "a", "a", "b")
	w.run(20 * time.Second)
	people := w.crowd(200, w.spread)
	if in := w.askAll(people); in != 200 {
		t.Fatalf("%d of 200 were let in", in)
	}
	w.run(2 * time.Second)
	type link struct{ from, to crdt.NodeID }
	lastTick, items, messages := map[link]time.Time{}, 0, 0
	w.note = func(what ...any) {
		if what[0] != "message" || what[3].(uint8) != kindRenew {
			return
		}
		l := link{what[1].(crdt.NodeID), what[2].(crdt.NodeID)}
		if last, ok := lastTick[l]; ok && w.now.Sub(last) < tickInterval {
			t.Errorf("two messages with check-ins from %s to %s within a tick", l.from, l.to)
		}
		lastTick[l] = w.now
		b, err := ticket.DecodeBatch(what[5].([]byte), w.now)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[ticket.Ticket]bool{}
		for _, item := range b.Items {
			if seen[item.Ticket] {
				t.Errorf("one visitor twice in a message")
			}
			seen[item.Ticket] = true
		}
		items, messages = items+len(b.Items), messages+1
	}
	const seconds, perSecond = 10, 20
	for i := range seconds * perSecond {
		for j, p := range people {
			m := w.nodes[(i/perSecond+j)%len(w.nodes)]
			v, ok := m.core.Route("shop", "/").Begin(p.pass, true, w.now, func(Verdict) {
				t.Error("the request of an admitted visitor had to wait")
			})
			if !ok || !v.Admit {
				t.Fatalf("request %d of %s: answered at once %v, let pass %v", i, p.name, ok, v.Admit)
			}
			if v.SetPass {
				p.pass = v.Pass
			}
			if out := m.core.Flush(w.now); len(out) > 0 {
				t.Fatalf("the request of an admitted visitor sent a message of kind %d at once", out[0].Kind)
			}
		}
		w.run(time.Second / perSecond)
	}
	// A visitor checks in with a foreign anchor once a second, at whichever node.
	if most := len(people) * (seconds + 3); items > most || items < len(people) {
		t.Errorf("%d check-ins in %d messages for %d requests, want %d at most", items, messages, len(people)*seconds*perSecond, most)
	}
	t.Logf("%d requests, %d check-ins in %d messages", len(people)*seconds*perSecond, items, messages)
}

// TestAFloodOfApplicantsCostsFewMessages has thousands of visitors come to a full
// room whose limit is rights.
func TestAFloodOfApplicantsCostsFewMessages(t *testing.T) {
	w := newWorld(t, escrowSettings(100), "a", "a", "b")
	w.run(20 * time.Second)
	m := w.other(w.counterOf("a"))
	if in := w.askAll(w.crowd(1000, at(m))); in < 99 {
		t.Fatalf("%d were let in, want all that there is room for", in)
	}
	w.run(3 * time.Second)
	count := 0
	w.note = func(what ...any) {
		if what[0] == "message" && what[3].(uint8) >= kindCall && what[3].(uint8) != kindClaims {
			count++
		}
	}
	const spans = 20
	for range spans {
		for _, p := range w.crowd(500, at(m)) {
			if w.ask(p).Admit {
				t.Fatal("somebody was let in to a full room")
			}
		}
		w.run(viewInterval)
	}
	if most := spans * 6; count > most {
		t.Errorf("%d messages about tickets for %d applicants, want %d at most", count, spans*500, most)
	}
	t.Logf("%d messages for %d applicants", count, spans*500)
}

// TestARefusedBorrowIsAnsweredOnce has a counter ask a node that has nothing to lend:
// a second answer could come late, and cancel a newer wish.
func TestARefusedBorrowIsAnsweredOnce(t *testing.T) {
	w := newWorld(t, escrowSettings(20), "a", "a")
	w.run(20 * time.Second)
	lead := w.counterOf("a")
	m := w.other(lead)
	r := m.core.order[0]
	for range 2 { // the first has the bound raised
		r.mu.Lock()
		r.rights.Open(r.rights.Free().Places, w.now)
		r.mu.Unlock()
		r.wake() // as whoever takes rights does
		w.run(time.Second)
	}
	if free := r.Rights().Free.Places; free != 0 {
		t.Fatalf("%d places are free at a node that is to have none", free)
	}
	answers := 0
	w.note = func(what ...any) {
		if what[0] == "message" && what[1] == m.id && what[3].(uint8) == kindLoanAnswer {
			answers++
		}
	}
	w.receive(lead, m, Message{
		Kind:    kindLoanCall,
		Payload: ticket.AppendLoanCall(nil, ticket.LoanCall{Room: r.id, Lender: m.core.self, Borrow: 5}),
	})
	w.run(200 * time.Millisecond)
	if answers != 1 {
		t.Errorf("%d answers to one wish, want 1", answers)
	}
}
