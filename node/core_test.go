package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
)

func TestLimitHoldsAtOneNode(t *testing.T) {
	w := newWorld(t, testSettings(5), "a")
	people := w.crowd(12, w.spread)
	for i, p := range people {
		v := w.ask(p)
		if want := i < 5; v.Admit != want {
			t.Errorf("%s admitted = %v, want %v", p.name, v.Admit, want)
		}
		w.run(300 * time.Millisecond)
	}
	if got := w.nodes[0].core.order[0].status(); got.Active != 5 || got.Waiting != 7 {
		t.Errorf("active, waiting = %d, %d, want 5, 7", got.Active, got.Waiting)
	}
}

func TestEverybodyIsLetInAtLastInOrder(t *testing.T) {
	for _, sites := range [][]string{{"a"}, {"a", "a", "b"}} {
		t.Run(fmt.Sprint(sites), func(t *testing.T) {
			const limit = 6
			s := testSettings(limit)
			s.SessionDuration = 10 * time.Second
			w := newWorld(t, s, sites...)
			people := w.crowd(40, w.spread)
			begin := w.now
			var order []int
			peak := 0
			for range 6000 {
				for i, p := range people {
					came := w.now.Sub(begin) >= time.Duration(i)*500*time.Millisecond
					if !came || p.in || w.now.Before(p.next) {
						continue
					}
					if w.ask(p); p.in {
						order = append(order, i)
					}
					p.next = w.now.Add(5 * time.Second)
				}
				peak = max(peak, w.active(people))
				w.run(50 * time.Millisecond)
			}
			for _, p := range people {
				if !p.in {
					t.Errorf("%s was never let in", p.name)
				}
			}
			// A node of the policy even knows of the others' admissions within a
			// push; until then each may use a part that has gone.
			if over := peak - limit; over > len(sites)-1 {
				t.Errorf("peak of active visitors = %d, the limit is %d", peak, limit)
			}
			late := 0
			for i := range order {
				for j := i + 1; j < len(order); j++ {
					if order[i] > order[j] {
						late++
					}
				}
			}
			pairs := len(order) * (len(order) - 1) / 2
			if float64(late) > 0.1*float64(pairs) {
				t.Errorf("%d of %d pairs were let in against their order", late, pairs)
			}
		})
	}
}

func TestCutOfTenMinutesHeals(t *testing.T) {
	s := testSettings(1000)
	w := newWorld(t, s, "a", "a", "b", "b")
	people := w.crowd(24, w.spread)
	for _, p := range people[:8] {
		w.ask(p)
	}
	w.run(2 * time.Second)
	w.cut = true
	w.members()
	for minute := range 10 {
		for range 6 {
			w.run(10 * time.Second)
			for i, p := range people {
				if i < 8+minute {
					w.ask(p)
				}
			}
		}
	}
	w.cut = false
	w.members()
	w.run(10 * time.Second)
	want := int64(w.active(people))
	for _, m := range w.nodes {
		if got := m.core.order[0].status().Active; got != want {
			t.Errorf("active at node %d of site %s 10 s after the cut = %d, want %d", m.id[0], m.site, got, want)
		}
	}
	// What was counted stays counted.
	for range 30 {
		w.run(time.Second)
		for _, p := range people[:17] {
			w.ask(p)
		}
		for _, m := range w.nodes {
			if got := m.core.order[0].status().Active; got < want {
				t.Fatalf("active at node %d of site %s went back to %d from %d", m.id[0], m.site, got, want)
			}
		}
	}
}

// TestAbsenteesAreNotLetInUncounted keeps a queue from asking until nobody of it
// is counted, and then lets it all come back at once.
func TestAbsenteesAreNotLetInUncounted(t *testing.T) {
	const limit = 6
	s := testSettings(limit)
	s.SessionDuration = 20 * time.Second
	w := newWorld(t, s, "a", "a", "b")
	people := w.crowd(40, w.spread)
	for _, p := range people {
		w.ask(p)
		w.run(100 * time.Millisecond)
	}
	w.run(30 * time.Second)
	peak := 0
	for range 4 {
		for _, p := range people {
			w.ask(p)
			peak = max(peak, w.active(people))
		}
		w.run(5 * time.Second)
	}
	if peak > limit+len(w.nodes)-1 {
		t.Errorf("peak of active visitors = %d, the limit is %d", peak, limit)
	}
	if peak == 0 {
		t.Error("nobody was let in")
	}
}

func TestWaitingPassIsRedeemedOnce(t *testing.T) {
	s := testSettings(1)
	s.SessionDuration = 20 * time.Second
	w := newWorld(t, s, "a")
	first, second := &person{name: "first", at: w.nodes[0]}, &person{name: "second", at: w.nodes[0]}
	w.ask(first)
	w.run(time.Second)
	w.ask(second)
	waiting := second.pass
	for !second.in {
		w.run(5 * time.Second)
		waiting = second.pass
		w.ask(second)
	}
	again := &person{name: "the lost answer", at: w.nodes[0], pass: waiting, has: true}
	if v := again.at.core.order[0].Decide(waiting, true, w.now); !v.Admit || v.Pass.Ticket != second.pass.Ticket {
		t.Errorf("the same pass again got %+v, want the same ticket %+v", v, second.pass.Ticket)
	}
	w.run(time.Second)
	if got := w.nodes[0].core.replica.Own(roomID, w.now).Active; got != 1 {
		t.Errorf("active = %d, want 1", got)
	}
	w.run(s.SessionDuration)
	if v := w.ask(again); v.Admit && v.Pass.Visitor == second.pass.Visitor {
		t.Errorf("the same pass got %+v after its session was over, want a new visitor", v)
	}
}

func TestForeignMessagesChangeNothing(t *testing.T) {
	w := newWorld(t, testSettings(3), "a", "b")
	c := w.nodes[0].core
	stranger := replica.Peer{ID: crdt.NodeID{9}, Boot: 1, Site: "b", Ready: true}
	before := c.order[0].status()
	for kind := range uint8(8) {
		for _, payload := range [][]byte{nil, {0}, {0xdd, 0xff, 0xff, 0xff, 0xff}, []byte("rubbish"), encodeVisits(1, []visit{{visitor: VisitorID{1}, room: roomID, at: w.now, arrival: w.now}})} {
			if kind == kindVisitsAck && len(payload) == 1 {
				continue
			}
			if _, err := c.Receive(stranger, kind, payload, w.now); err == nil {
				t.Errorf("message of kind %d with %q was accepted", kind, payload)
			}
		}
	}
	w.run(time.Second)
	if after := c.order[0].status(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("status = %+v, want %+v", after, before)
	}
}

// TestStoppedProcessLetsNobodyInFromMemory stops a node for as long as it takes
// others to use the places that it knew of.
func TestStoppedProcessLetsNobodyInFromMemory(t *testing.T) {
	w := newWorld(t, testSettings(8), "a")
	r := w.nodes[0].core.order[0]
	if v := r.Decide(Pass{}, false, w.now); !v.Admit {
		t.Fatal("not admitted to an empty room")
	}
	w.now = w.now.Add(time.Minute)
	if v := r.Decide(Pass{}, false, w.now); v.Admit {
		t.Error("admitted from a view that is a minute old")
	}
	w.run(time.Second)
	if v := r.Decide(Pass{}, false, w.now); !v.Admit {
		t.Error("not admitted after the loop has come round")
	}
}
