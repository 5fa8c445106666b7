package node

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

var limiting = []room.Policy{room.Even, room.Curve, room.Counter, room.Escrow}

// turnComes fills a room of a site, has one more visitor wait there, and returns that
// visitor's pass and the mesh when the room is empty again.
func turnComes(t *testing.T, policy room.Policy) (*world, Pass) {
	t.Helper()
	s := testSettings(9)
	s.Policy = policy
	return turnComesIn(t, s)
}

func turnComesIn(t *testing.T, s room.Settings) (*world, Pass) {
	t.Helper()
	w := newWorld(t, s, "a", "a", "a")
	w.run(20 * time.Second)
	crowd := w.crowd(30, w.spread)
	w.poll(crowd, 5*time.Second, 20*time.Second, nil)
	p := &person{name: "visitor", at: w.nodes[0]}
	if w.ask(p).Admit {
		t.Fatalf("%s: the room is not full", s.Policy)
	}
	for i := 0; w.activeEverywhere() > 0 || i < 60; i++ {
		if i > 300 {
			t.Fatalf("%s: the room is never empty", s.Policy)
		}
		w.run(time.Second)
	}
	return w, p.pass
}

// TestAPassThatWaitedIsRedeemedOnce has copies of a pass come to all nodes when its turn
// comes: they are one visitor, for as long as they are shown, as they are with each request
// where cookies do not reach the visitor. After that they are of no use.
func TestAPassThatWaitedIsRedeemedOnce(t *testing.T) {
	for _, policy := range limiting {
		w, waited := turnComes(t, policy)
		var first Pass
		show := func(i int) {
			t.Helper()
			v := w.decide(w.nodes[i%3], waited, true)
			if i == 0 {
				first = v.Pass
			}
			if !v.Admit || !v.SetPass || v.Pass.Ticket != first.Ticket || v.Pass.Visitor != waited.Visitor || !v.Pass.Arrival.Equal(waited.Arrival) {
				t.Fatalf("%s: copy %d gets %+v, want the session of the first, %+v", policy, i, v, first)
			}
		}
		for i := range 9 {
			show(i)
			w.run(2 * tickInterval) // then the owner knows
		}
		w.run(3 * time.Second)
		if n := w.activeEverywhere(); n != 1 {
			t.Errorf("%s: %d are active, want 1", policy, n)
		}
		for i := range 60 { // some ten sessions
			w.run(10 * time.Second)
			show(i + 1)
		}
		if n := w.activeEverywhere(); n != 1 {
			t.Errorf("%s: %d are active at last, want 1", policy, n)
		}
		w.run(5 * time.Minute)
		for _, m := range w.nodes {
			if v := w.decide(m, waited, true); v.Pass.Visitor == waited.Visitor {
				t.Errorf("%s: long after, a copy gets %+v, want it to be somebody new", policy, v)
			}
		}
	}
}

// TestLateCopiesStandAtTheBack shows copies, again and again, of a pass whose session goes on.
func TestLateCopiesStandAtTheBack(t *testing.T) {
	for _, policy := range limiting {
		w, waited := turnComes(t, policy)
		p := &person{name: "holder", at: w.nodes[0], pass: waited, has: true}
		w.ask(p)
		for range 15 {
			w.run(10 * time.Second)
			w.ask(p)
		}
		fresh, copies := 0, uint64(0)
		for range 20 {
			w.run(31 * time.Second)
			w.ask(p)
			waited.LastPoll = w.now.Add(-10 * time.Second) // as if it had been polled elsewhere
			for _, m := range w.nodes {
				v := w.decide(m, waited, true)
				switch {
				case v.Pass.Visitor != waited.Visitor && !v.Pass.Arrival.Before(w.now.Add(-time.Second)):
					fresh++
				case v.Admit: // else there was no place even for who stands first
					t.Fatalf("%s: a late copy gets %+v, want it to be somebody new", policy, v)
				}
			}
		}
		if fresh < 50 || !p.in {
			t.Errorf("%s: %d of 60 late copies were somebody new, and the holder is in: %t", policy, fresh, p.in)
		}
		for _, m := range w.nodes {
			copies += m.core.order[0].tallied().copies.Load()
		}
		if copies > 3 {
			t.Errorf("%s: copies took %d tickets, want one per node at most", policy, copies)
		}
	}
}

// TestALostAnswerIsNoLostPlace has a visitor let in whose answer is lost, and who meets a
// node without a place the next time: the first session is theirs for as long as they ask.
func TestALostAnswerIsNoLostPlace(t *testing.T) {
	for _, policy := range limiting {
		w, waited := turnComes(t, policy)
		if !w.decide(w.nodes[0], waited, true).Admit {
			t.Fatal("no place")
		}
		w.run(5 * time.Second)
		w.poll(w.crowd(60, w.spread), 5*time.Second, 5*time.Second, nil) // all other places are taken
		p := &person{name: "visitor", at: w.nodes[1], pass: waited, has: true}
		for range 30 {
			if w.ask(p); p.pass.Visitor != waited.Visitor {
				t.Fatalf("%s: the place is lost", policy)
			} else if p.in {
				break
			}
			w.run(7 * time.Second)
		}
		if !p.in {
			t.Errorf("%s: not let in again", policy)
		}
	}
}

// TestCopiesAtOnce has copies of a pass asked about at the same moment.
func TestCopiesAtOnce(t *testing.T) {
	for _, policy := range limiting {
		w, waited := turnComes(t, policy)
		var got []Verdict
		const copies = 300
		for i := range copies {
			m := w.nodes[i%3]
			v, ok := m.core.order[0].Begin(waited, true, w.now, func(v Verdict) { got = append(got, v) })
			if ok {
				got = append(got, v)
			}
		}
		for _, m := range w.nodes {
			w.post(m, m.core.Flush(w.now))
		}
		w.run(3 * time.Second)
		in := 0
		for _, v := range got {
			switch {
			case !v.Admit && v.Pass.Visitor == waited.Visitor && v.Pass.Arrival.Equal(waited.Arrival): // while another node lets them in
				p := &person{name: "copy", at: w.nodes[0], pass: v.Pass, has: true}
				if w.ask(p); !p.in || p.pass.Ticket != w.decide(w.nodes[0], waited, true).Pass.Ticket {
					t.Errorf("%s: asking again, a copy gets %+v", policy, p)
				}
			case v.Admit && v.Pass.Ticket == w.decide(w.nodes[0], waited, true).Pass.Ticket:
				in++
			default:
				t.Errorf("%s: a copy gets %+v", policy, v)
			}
		}
		if len(got) != copies || in < copies/3 {
			t.Errorf("%s: %d answers, %d of them that let in, want %d and at least a third", policy, len(got), in, copies)
		}
		if n := w.activeEverywhere(); n != 1 {
			t.Errorf("%s: %d are active, want 1", policy, n)
		}
		taken := int64(0)
		for _, m := range w.nodes {
			if n := m.core.pendings.count.Load(); n != 0 {
				t.Errorf("%s: %d requests are counted as waiting at node %d, want 0", policy, n, m.id[0])
			}
			taken += int64(m.core.order[0].status().AdmittedPerMinute)
			for i := range m.core.stripes.all {
				if n := len(m.core.stripes.all[i].applying); n != 0 {
					t.Errorf("%s: %d passes are remembered as applying", policy, n)
				}
			}
		}
		if taken > 3 { // each node sees all
			t.Errorf("%s: %d tickets were taken, want one", policy, taken/3)
		}
	}
}

// TestASilentOwnerHoldsUpNobody loses all that owners are asked.
func TestASilentOwnerHoldsUpNobody(t *testing.T) {
	for _, policy := range limiting {
		w, waited := turnComes(t, policy)
		w.lose = func(l letter) bool { return l.m.Kind == kindRedeem }
		owner := w.nodes[0].core.owner(roomID, waited.Visitor)
		for _, m := range w.nodes {
			if m.id == owner {
				continue
			}
			began := w.now
			v := w.decide(m, waited, true)
			if took := w.now.Sub(began); !v.Admit || v.Pass.Visitor != waited.Visitor || took < redeemTimeout || took > redeemTimeout+2*tickInterval {
				t.Errorf("%s: after %v %+v, want the visitor in after %v", policy, took, v, redeemTimeout)
			}
			break
		}
	}
}

// TestManyAreRedeemedWithAFewMessages has a queue of hundreds let in at once.
func TestManyAreRedeemedWithAFewMessages(t *testing.T) {
	s := escrowSettings(300)
	w := newWorld(t, s, "a", "a", "a")
	w.run(20 * time.Second)
	w.poll(w.crowd(400, w.spread), 5*time.Second, 20*time.Second, nil)
	queue := w.crowd(300, func(int) *machine { return w.nodes[0] })
	w.poll(queue, 5*time.Second, 5*time.Second, nil)
	if slices.ContainsFunc(queue, func(p *person) bool { return p.in }) {
		t.Fatal("the room is not full")
	}
	w.run(75 * time.Second)
	messages := 0
	w.note = func(what ...any) {
		if what[0] == "message" && what[3].(uint8) == kindRedeem {
			messages++
		}
	}
	in := 0
	for _, p := range queue {
		w.nodes[0].core.order[0].Begin(p.pass, true, w.now, func(v Verdict) {
			if v.Admit {
				in++
			}
		})
	}
	w.post(w.nodes[0], w.nodes[0].core.Flush(w.now))
	w.run(2 * time.Second)
	if in < 290 || messages > 20 {
		t.Errorf("%d were let in with %d messages, want nearly all with a few", in, messages)
	}
}

func TestRedemptionsOfOthers(t *testing.T) {
	w := newWorld(t, testSettings(10), "a", "b")
	ask := []redemption{{number: 1, key: visitKey{roomID, VisitorID{1}}, word: isInside, admission: admission{ticket.Ticket{Seq: 1}, w.now, w.now, w.now}}}
	other := replica.Peer{ID: w.nodes[1].id, Boot: 1, Site: "b", Ready: true}
	if out, err := w.nodes[0].core.Receive(other, kindRedeem, encodeRedeems(ask), w.now); !errors.Is(err, errMalformed) || len(out) > toldRefused(out) {
		t.Errorf("a node of another site asks: %d messages, %v", len(out), err)
	}
	if out, err := w.nodes[0].core.Receive(other, kindRedeemed, encodeRedeems(ask), w.now); !errors.Is(err, errMalformed) || len(out) > toldRefused(out) {
		t.Errorf("a node of another site answers: %d messages, %v", len(out), err)
	}
	other.Site = "a"
	for is := range words {
		for _, kind := range []uint8{kindRedeem, kindRedeemed} {
			ask[0].word = is
			out, err := w.nodes[0].core.Receive(other, kind, encodeRedeems(ask), w.now)
			if answered := kind == kindRedeem && is == isItFree; err != nil || (len(out) > 0) != answered {
				t.Errorf("word %d of kind %d, that nobody waits for: %d messages, %v", is, kind, len(out), err)
			}
		}
	}
}

func redemptionsOf(n int) (all []redemption) {
	at := time.UnixMilli(1_700_000_000_123)
	for i := range n {
		q := redemption{number: uint64(i) << 20, key: visitKey{crdt.RoomID{byte(i)}, VisitorID{3}}, word: word(n-i) % words}
		if q.word == isInside {
			q.admission = admission{ticket.Ticket{Anchor: crdt.NodeID{4}, Boot: 5, Block: 1<<32 - 1, Seq: 1 << 63}, at, at.Add(time.Second), at.Add(time.Hour)}
		}
		all = append(all, q)
	}
	return all
}

func TestRedemptionsAreTakenApart(t *testing.T) {
	for _, n := range []int{0, 1, 4, maxRedeems} {
		whole := encodeRedeems(redemptionsOf(n))
		if got, err := decodeRedeems(whole); err != nil || !slices.Equal(got, redemptionsOf(n)) {
			t.Errorf("%d became %d, %v", n, len(got), err)
		}
		if len(whole) > 250<<10 {
			t.Errorf("%d take %d bytes", n, len(whole))
		}
	}
	whole := encodeRedeems(redemptionsOf(5))
	for n := range len(whole) {
		if _, err := decodeRedeems(whole[:n]); !errors.Is(err, errMalformed) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	never := redemptionsOf(int(isInside))
	never[0].end = time.UnixMilli(maxMillis + 1)
	nobodys := redemptionsOf(int(isInside))
	nobodys[0].ticket = ticket.Ticket{}
	unheard := redemptionsOf(1)
	unheard[0].word = words
	for what, message := range map[string][]byte{
		"too many":            encodeRedeems(redemptionsOf(maxRedeems + 1)),
		"an end too far":      encodeRedeems(never),
		"no ticket":           encodeRedeems(nobodys),
		"no word":             encodeRedeems(unheard),
		"something behind it": append(slices.Clone(whole), 0),
	} {
		if _, err := decodeRedeems(message); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzDecodeRedeems(f *testing.F) {
	f.Add(encodeRedeems(redemptionsOf(5)))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := decodeRedeems(data)
		if err != nil {
			return
		}
		if again, err := decodeRedeems(encodeRedeems(items)); err != nil || !slices.Equal(again, items) {
			t.Errorf("%v became %v, %v", items, again, err)
		}
	})
}
