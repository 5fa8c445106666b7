package node

import (
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestAWordThatComesTooLate stops a node just when it has asked an owner: when it goes on,
// it lets nobody in on that word, and asks again.
func TestAWordThatComesTooLate(t *testing.T) {
	for _, policy := range limiting {
		for _, stop := range []time.Duration{300 * time.Millisecond, time.Second, 5 * time.Second, 3 * time.Minute} {
			if testing.Short() && stop == 3*time.Minute && policy != room.Escrow {
				continue // minutes of a mesh
			}
			w, waited := turnComes(t, policy)
			owner := w.nodes[0].core.owner(roomID, waited.Visitor)
			others := slices.DeleteFunc(slices.Clone(w.nodes), func(m *machine) bool { return m.id == owner })
			at := others[0]
			if (policy == room.Counter || policy == room.Escrow) && at == w.counterOf("a") {
				at = others[1] // the counter's own view is too old after a stop, whatever it was told
			}
			spent := func() (n uint64) {
				for _, m := range w.nodes {
					n += m.core.order[0].rights.Spent()
				}
				return n
			}
			before, stopped := spent(), false
			w.note = func(what ...any) {
				if what[0] == "message" && what[1] == at.id && what[3].(uint8) == kindRedeem && !stopped {
					stopped, at.stopped = true, true
				}
			}
			var got []Verdict
			at.core.order[0].Begin(waited, true, w.now, func(v Verdict) { got = append(got, v) })
			w.post(at, at.core.Flush(w.now))
			w.run(stop)
			if !stopped || len(got) > 0 || spent() != before {
				t.Fatalf("%s, %v: stopped: %t, answers: %+v, %d rate rights used", policy, stop, stopped, got, spent()-before)
			}
			at.stopped = false
			w.run(time.Second)
			if len(got) != 1 || got[0].Admit && stop > claimKept {
				t.Fatalf("%s, %v: %+v, want the visitor to wait", policy, stop, got)
			}
			p := &person{name: "visitor", at: at, pass: got[0].Pass, has: true, in: got[0].Admit}
			for i := 0; i < 5 && !p.in; i++ { // who has just woken up may have to look around first
				w.run(2 * time.Second)
				w.ask(p)
			}
			if !p.in || p.pass.Visitor != waited.Visitor && stop < time.Minute {
				t.Fatalf("%s, %v: %+v, want the visitor in", policy, stop, p)
			}
			w.run(3 * time.Second)
			if n := w.activeEverywhere(); n != 1 {
				t.Errorf("%s, %v: %d are active, want 1", policy, stop, n)
			}
		}
	}
}

// TestAStopLosesNoPlaces stops a node, at which all wait, when it asks their owners as their
// turn comes: all are let in about as soon as without that, and nobody begins again.
func TestAStopLosesNoPlaces(t *testing.T) {
	for _, policy := range limiting {
		settings := testSettings(9)
		settings.Policy = policy
		all := queueWithAStop(t, settings, 0)
		for _, stop := range []time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 3 * time.Second} {
			if took := queueWithAStop(t, settings, stop); took > all+stop+10*time.Second {
				t.Errorf("%s, stopped for %v: all are in after %v, without a stop after %v", policy, stop, took, all)
			}
		}
	}
}

// queueWithAStop has nine wait at one node of a site that is full with nine, stops it when
// it first asks an owner, and returns when all are in.
func queueWithAStop(t *testing.T, settings room.Settings, stop time.Duration) time.Duration {
	t.Helper()
	w := newWorld(t, settings, "a", "a", "a")
	w.run(20 * time.Second)
	w.poll(w.crowd(9, w.spread), 5*time.Second, 5*time.Second, nil)
	m := w.nodes[1]
	queue := w.crowd(9, func(int) *machine { return m })
	w.poll(queue, 5*time.Second, 15*time.Second, nil)
	began, stopped, in := w.now, time.Time{}, 0
	w.note = func(what ...any) {
		if stopped.IsZero() && what[0] == "message" && what[1] == m.id && what[3].(uint8) == kindRedeem {
			stopped, m.stopped = w.now, stop > 0
		}
	}
	for end := w.now.Add(100 * time.Second); w.now.Before(end) && in < len(queue); w.run(10 * time.Millisecond) {
		if m.stopped = m.stopped && w.now.Sub(stopped) < stop; m.stopped {
			continue
		}
		for _, p := range queue {
			if p.in || w.now.Before(p.next) {
				continue
			}
			p.next = w.now.Add(time.Minute) // until the answer is there
			take := func(v Verdict) {
				if v.Pass.Visitor != p.pass.Visitor {
					t.Fatalf("%s, %v: a visitor is %v, who was %v", settings.Policy, stop, v.Pass.Visitor, p.pass.Visitor)
				}
				if p.pass, p.next = v.Pass, w.now.Add(5100*time.Millisecond); v.Admit {
					p.in = true
					in++
				}
			}
			if v, ok := m.core.order[0].Begin(p.pass, true, w.now, take); ok {
				take(v)
			}
		}
		w.post(m, m.core.Flush(w.now))
	}
	if stopped.IsZero() || in < len(queue) {
		t.Fatalf("%s, %v: stopped at %v, %d of %d are in", settings.Policy, stop, stopped, in, len(queue))
	}
	return w.now.Sub(began)
}

// TestAWordOfLongAgoIsForNobody stops a node just when it has asked an owner. The visitor gets
// in elsewhere; a copy that comes when the node goes on is not let in on the word of before.
func TestAWordOfLongAgoIsForNobody(t *testing.T) {
	for _, policy := range limiting {
		for _, lost := range []bool{false, true} {
			w, waited := turnComes(t, policy)
			owner := w.nodes[0].core.owner(roomID, waited.Visitor)
			others := slices.DeleteFunc(slices.Clone(w.nodes), func(m *machine) bool { return m.id == owner })
			at, other := others[0], others[1]
			if (policy == room.Counter || policy == room.Escrow) && at == w.counterOf("a") {
				at, other = other, at
			}
			stopped := false
			w.note = func(what ...any) {
				if what[0] == "message" && what[1] == at.id && what[3].(uint8) == kindRedeem && !stopped {
					stopped, at.stopped = true, true
				}
			}
			w.lose = func(l letter) bool { return lost && l.m.Kind == kindRedeemed && l.to == at.id }
			var got []Verdict
			show := func() {
				if v, ok := at.core.order[0].Begin(waited, true, w.now, func(v Verdict) { got = append(got, v) }); ok {
					got = append(got, v)
				}
				w.post(at, at.core.Flush(w.now))
			}
			show()
			w.run(2 * time.Second)
			w.members()
			w.run(4 * time.Second)
			in := w.decide(other, waited, true)
			for i := 0; i < 10 && !in.Admit; i++ {
				w.run(6 * time.Second)
				in = w.decide(other, waited, true)
			}
			if !in.Admit {
				t.Fatalf("%s: not let in elsewhere: %+v", policy, in)
			}
			w.run(time.Second)
			at.stopped = false
			w.members()
			show() // before the word is read that has waited there
			w.run(5 * time.Second)
			if len(got) != 2 {
				t.Errorf("%s, lost %t: %d answers, want 2", policy, lost, len(got))
			}
			for i, v := range got {
				if v.Admit && v.Pass.Ticket != in.Pass.Ticket || v.Pass.Visitor != waited.Visitor {
					t.Errorf("%s, lost %t: copy %d gets %+v, want the session of the first or the place", policy, lost, i, v)
				}
			}
			if n := w.activeEverywhere(); n != 1 {
				t.Errorf("%s, lost %t: %d are active, want 1", policy, lost, n)
			}
		}
	}
}

// TestNoTicketIsTakenUpWithoutAClaim: the ticket is free again, and the visitor keeps the place.
func TestNoTicketIsTakenUpWithoutAClaim(t *testing.T) {
	w, waited := turnComes(t, room.Escrow)
	m := w.counterOf("a")
	r := m.core.order[0]
	s, k := m.core.stripes.ofVisitor(waited.Visitor), visitKey{roomID, waited.Visitor}
	r.openTickets(nil, 1, w.now) // what that needs is on the disk soon
	w.run(time.Second)
	r.mu.Lock()
	r.rights.Close(r.rights.Tokens())
	r.mu.Unlock()
	free := r.Rights().Free.Places
	for what, q := range map[string]redeemed{
		"none":           {},
		"another node's": {is: claimed, by: w.other(m).id, kept: claimHeld},
		"one of before":  {is: claimed, by: m.id},
	} {
		s.remember(k, q, w.now)
		ranges := r.openTickets(nil, 1, w.now)
		if len(ranges) != 1 || r.Rights().Free.Places != free-1 {
			t.Fatalf("%s: %v, %d places free of %d", what, ranges, r.Rights().Free.Places, free)
		}
		r.used[reserved].Add(1)
		var v Verdict
		n := r.letIn(&v, &gotten{class: reserved, ticket: ranges[0].Ticket(0), session: ranges[0].Session}, &waited, w.now)
		if v.Admit || n != nothing || v.Pass.Visitor != waited.Visitor || !v.Pass.Arrival.Equal(waited.Arrival) {
			t.Errorf("claim %s: %+v, %d, want the visitor to wait", what, v, n)
		}
		if now := r.Rights().Free.Places; now != free {
			t.Errorf("claim %s: %d places are free afterwards, want %d", what, now, free)
		}
	}
}

// TestAClaimIsHeldUntilItsOutcomeIsKnown: longer than its node may use it, and than it takes
// to hear of that, and no longer than needed.
func TestAClaimIsHeldUntilItsOutcomeIsKnown(t *testing.T) {
	w, waited := turnComes(t, room.Even)
	r := w.machine(w.nodes[0].core.owner(roomID, waited.Visitor)).core.order[0]
	a, b := crdt.NodeID{8}, crdt.NodeID{9}
	at := func(after time.Duration, by crdt.NodeID, want word) {
		t.Helper()
		if is, _ := r.claim(waited.Visitor, by, uint64(after), w.now.Add(after)); is != want {
			t.Errorf("%v after the claim node %d is told %d, want %d", after, by[0], is, want)
		}
	}
	at(0, a, itIsFree)
	at(claimKept+admittedHeld+visitsResend, b, isElsewhere)
	at(5*time.Second, b, itIsFree)
	at(6*time.Second, a, isElsewhere)
	at(6*time.Second, b, itIsFree)
}

// TestAVisitTellsOfTheSession: where the word that somebody is inside is lost, the owner
// hears of it with all other visits.
func TestAVisitTellsOfTheSession(t *testing.T) {
	for _, policy := range limiting {
		w, waited := turnComes(t, policy)
		w.lose = func(l letter) bool {
			items, err := decodeRedeems(l.m.Payload)
			return l.m.Kind == kindRedeem && err == nil && items[0].word == isInside
		}
		owner := w.nodes[0].core.owner(roomID, waited.Visitor)
		others := slices.DeleteFunc(slices.Clone(w.nodes), func(m *machine) bool { return m.id == owner })
		first := w.decide(others[0], waited, true)
		w.run(2 * time.Second)
		if v := w.decide(others[1], waited, true); !first.Admit || !v.Admit || v.Pass.Ticket != first.Pass.Ticket {
			t.Errorf("%s: a copy gets %+v, want the session of the first, %+v", policy, v, first)
		}
	}
}

// TestAClaimEndsByItsOwnNumber: what is said of an older claim, or of another node's, may
// come late.
func TestAClaimEndsByItsOwnNumber(t *testing.T) {
	var all stripes
	all.init(func() {})
	k := visitKey{roomID, VisitorID{1}}
	s := all.ofVisitor(k.visitor)
	self, other := crdt.NodeID{1}, crdt.NodeID{2}
	s.remember(k, redeemed{is: claimed, by: self, number: 2, kept: claimHeld}, noon)
	for _, c := range []claim{{k, self, 1}, {k, other, 2}, {visitKey{roomID, VisitorID{2}}, self, 2}} {
		s.unclaim(c)
		s.giveUpClaim(c)
	}
	if !s.claims(k, self, noon) || s.claims(k, other, noon) || len(s.unused) > 0 {
		t.Errorf("the claim is %+v after words about others", s.shown(k, noon))
	}
	s.giveUpClaim(claim{k, self, 2})
	s.giveUpClaim(claim{k, self, 2})
	if s.claims(k, self, noon) || len(s.unused) != 1 {
		t.Errorf("the claim is %+v after it was given up, %d are told of", s.shown(k, noon), len(s.unused))
	}
	s.remember(k, redeemed{is: confirmed, by: self, number: 3, kept: claimHeld}, noon)
	if s.unclaim(claim{k, self, 3}); s.shown(k, noon).is != confirmed {
		t.Error("a session that holds is forgotten")
	}
}

// TestWhoDiesBeforeTheAnswerTakesNoPlace kills a node that has asked an owner. The visitor
// still has the place, whenever and wherever they come back.
func TestWhoDiesBeforeTheAnswerTakesNoPlace(t *testing.T) {
	for _, policy := range limiting {
		for _, backAt := range []string{"the owner", "another node"} {
			for _, after := range []time.Duration{time.Second, 65 * time.Second} {
				settings := testSettings(9)
				settings.Policy, settings.DisableSessionRenewal = policy, true // else the anchor has the say
				w, waited := turnComesIn(t, settings)
				owner := w.nodes[0].core.owner(roomID, waited.Visitor)
				others := slices.DeleteFunc(slices.Clone(w.nodes), func(m *machine) bool { return m.id == owner })
				p := &person{name: "visitor", at: others[1], pass: waited, has: true}
				if backAt == "the owner" {
					p.at = w.machine(owner)
				}
				others[0].core.order[0].Begin(waited, true, w.now, func(Verdict) {})
				w.post(others[0], others[0].core.Flush(w.now))
				k := visitKey{roomID, waited.Visitor}
				for i := 0; w.machine(owner).core.stripes.ofVisitor(waited.Visitor).shown(k, w.now).is != claimed; i++ {
					if i > 100 {
						t.Fatalf("%s: the owner was not asked", policy)
					}
					w.now = w.now.Add(time.Millisecond)
					w.deliver()
				}
				w.kill(others[0])
				w.run(after)
				p.pass.LastPoll = w.now.Add(-10 * time.Second) // as if it had been polled elsewhere
				began := w.now
				for !p.in && w.now.Sub(began) < time.Minute {
					if w.ask(p); p.pass.Visitor != waited.Visitor {
						t.Fatalf("%s: back at %s after %v, the visitor has lost the place", policy, backAt, after)
					}
					w.run(2 * time.Second)
				}
				if took := w.now.Sub(began); !p.in || policy == room.Even && took > claimHeld+4*time.Second {
					t.Errorf("%s: back at %s after %v, the visitor is in: %t, after %v", policy, backAt, after, p.in, took)
				}
			}
		}
	}
}

// TestAClaimOfNoUseIsGivenUp has a visitor ask in vain at one node, and then at another one,
// which is not to wait for the first.
func TestAClaimOfNoUseIsGivenUp(t *testing.T) {
	w, waited := turnComes(t, room.Escrow)
	owner := w.nodes[0].core.owner(roomID, waited.Visitor)
	others := slices.DeleteFunc(slices.Clone(w.nodes), func(m *machine) bool { return m.id == owner })
	w.lose = func(l letter) bool { return l.m.Kind == kindCall || l.m.Kind == kindGrant }
	r := others[0].core.order[0]
	k := r.counters.Load()
	k.mu.Lock()
	k.desks[ticket.SiteCounter].Drain()
	k.mu.Unlock()
	s := others[0].core.stripes.ofVisitor(waited.Visitor)
	key := visitKey{roomID, waited.Visitor}
	s.note(key, redeemed{is: claimed, by: others[0].id, number: 7, kept: claimKept}, w.now)
	w.machine(owner).core.order[0].claim(waited.Visitor, others[0].id, 7, w.now)
	pend := &pending{room: r, pass: waited, at: w.now, number: 7, claimed: true, done: func(Verdict) {}}
	others[0].core.pendings.count.Add(1)
	others[0].core.settle(pend, &Verdict{Pass: waited}, nothing, w.now)
	w.lose = nil
	w.run(200 * time.Millisecond)
	if v := w.decide(others[1], waited, true); !v.Admit {
		t.Errorf("at another node soon after: %+v, want the visitor in", v)
	}
}
