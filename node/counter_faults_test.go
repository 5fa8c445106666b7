package node

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// stream has n new visitors ask every 100 ms, each at one of nodes, for as long
// as d, and returns them all and when the first was let in.
func (w *world) stream(d time.Duration, n int, nodes []*machine) (people []*person, first time.Time) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		next := w.now.Add(100 * time.Millisecond)
		now := w.crowd(n, func(int) *machine { return nodes[w.rng.IntN(len(nodes))] })
		if w.askAll(now) > 0 && first.IsZero() {
			first = w.now
		}
		people = append(people, now...)
		if next.After(w.now) {
			w.run(next.Sub(w.now))
		}
	}
	return people, first
}

// TestCounterIsKilled has the counter of a site die while visitors stream in.
func TestCounterIsKilled(t *testing.T) {
	const limit = 300
	w := newWorld(t, counterSettings(limit), "a", "a", "a", "a")
	w.run(5 * time.Second)
	lead := w.counterOf("a")
	all, _ := w.stream(2*time.Second, 5, w.nodes)
	some := w.crowd(5, at(lead))
	w.askAll(some)
	all = append(all, some...)
	w.kill(lead)
	died := w.now
	// Whom it let in itself since its last push, nobody else hears of.
	unheard := 0
	for _, p := range all {
		if p.in && p.pass.Ticket.Anchor == lead.id && died.Sub(p.pass.AcceptedAt) < 300*time.Millisecond {
			unheard++
		}
	}
	rest := slices.DeleteFunc(slices.Clone(w.nodes), func(m *machine) bool { return m == lead })
	more, first := w.stream(5*time.Second, 5, rest)
	all = append(all, more...)
	if gap := first.Sub(died); first.IsZero() || gap > 2*time.Second {
		t.Errorf("nobody was let in for %v after the counter died, want at most 2 s", gap)
	}
	if w.counterOf("a") == lead {
		t.Error("the dead node is still the counter")
	}
	w.askAll(w.crowd(limit, func(i int) *machine { return rest[i%3] }))
	all = append(all, w.crowd(limit, at(rest[0]))...)
	peak := 0
	for range 8 { // the waiting come back
		w.askAll(slices.DeleteFunc(slices.Clone(all), func(p *person) bool { return p.in || p.at == lead }))
		w.run(5 * time.Second)
		peak = max(peak, w.active(all))
	}
	if peak > limit+unheard {
		t.Errorf("peak of active visitors = %d, want at most %d and the %d of whom nobody heard", peak, limit, unheard)
	}
	if unheard == 0 || peak < limit {
		t.Errorf("peak of active visitors = %d, %d unheard of: the test is too easy", peak, unheard)
	}
}

// TestCounterIsStoppedAndGoesOn stops the counter for longer than others wait.
// What it is asked meanwhile reaches it when it goes on.
func TestCounterIsStoppedAndGoesOn(t *testing.T) {
	const limit = 120
	s := counterSettings(limit)
	s.SessionDuration = 5 * time.Minute
	w := newWorld(t, s, "a", "a", "a", "a")
	w.run(5 * time.Second)
	lead := w.counterOf("a")
	rest := slices.DeleteFunc(slices.Clone(w.nodes), func(m *machine) bool { return m == lead })
	all, _ := w.stream(time.Second, 4, rest)
	lead.stopped = true // others do not know yet
	some, _ := w.stream(1500*time.Millisecond, 4, rest)
	all = append(all, some...)
	w.members()
	some, first := w.stream(3*time.Second, 4, rest)
	all = append(all, some...)
	if first.IsZero() {
		t.Error("nobody was let in while the counter was stopped")
	}
	lead.stopped = false
	w.members()
	some, _ = w.stream(5*time.Second, 4, rest)
	all = append(all, some...)
	for range 6 {
		w.askAll(slices.DeleteFunc(slices.Clone(all), func(p *person) bool { return p.in }))
		w.run(5 * time.Second)
	}
	if got := w.active(all); got != limit {
		t.Errorf("%d visitors are active, the limit is %d", got, limit)
	}
	w.counterOf("a") // all agree again
}

// TestCounterStaysWhenNodesJoin restarts a node that all would ask first, were
// nobody the counter yet.
func TestCounterStaysWhenNodesJoin(t *testing.T) {
	s := counterSettings(100)
	w := newWorld(t, s, "a", "a", "a", "a")
	w.run(5 * time.Second)
	before := w.counterOf("a")
	w.kill(before)
	w.run(5 * time.Second)
	after := w.counterOf("a")
	if after == before {
		t.Fatal("the dead node is still the counter")
	}
	w.start(before, s)
	for range 50 {
		w.run(100 * time.Millisecond)
		if got := after.core.order[0].counters.Load().loop.ask[ticket.SiteCounter]; got != after.id {
			t.Fatalf("the counter has moved to node %d when another came back", got[0])
		}
	}
	if w.counterOf("a") != after {
		t.Error("not all ask the counter that lives")
	}
	people := w.crowd(120, func(int) *machine { return before })
	if in := w.askAll(people); in != 100 {
		t.Errorf("%d were let in at the node that came back, want 100", in)
	}
}

// TestCounterInABadNetwork loses, doubles, delays and reorders a good part of all
// messages. No place may be used twice, and none may be lost for good.
func TestCounterInABadNetwork(t *testing.T) {
	for seed := range uint64(6) {
		const limit = 150
		s := counterSettings(limit)
		s.SessionDuration = 20 * time.Second
		w := newWorld(t, s, "a", "a", "a")
		w.run(5 * time.Second)
		rng := rand.New(rand.NewPCG(seed, 1))
		w.fate = func(_, _ *machine, _ Message) (delays []time.Duration) {
			for range []int{0, 1, 1, 1, 1, 1, 1, 2, 2, 3}[rng.IntN(10)] {
				delays = append(delays, w.delay+time.Duration(rng.IntN(200))*time.Millisecond)
			}
			return delays
		}
		all := w.crowd(600, w.spread)
		in, peak := 0, 0
		for begin := w.now; w.now.Sub(begin) < 65*time.Second; {
			for part := range slices.Chunk(slices.DeleteFunc(slices.Clone(all), func(p *person) bool { return p.in }), 50) {
				in += w.askAll(part)
				peak = max(peak, w.active(all))
			}
			w.run(time.Second)
			peak = max(peak, w.active(all))
		}
		if peak > limit {
			t.Errorf("seed %d: peak of active visitors = %d, the limit is %d", seed, peak, limit)
		}
		if in < limit*5/2 {
			t.Errorf("seed %d: %d were let in within three sessions of %d: places are lost", seed, in, limit)
		}
	}
}

// TestLostGrantsComeBack loses every grant for a while, and lets a node die that
// has just been granted some.
func TestLostGrantsComeBack(t *testing.T) {
	const limit = 50
	w := newWorld(t, counterSettings(limit), "a", "a", "a")
	w.run(5 * time.Second)
	lead := w.counterOf("a")
	m := w.other(lead)
	lost := 0
	w.fate = func(_, _ *machine, m Message) []time.Duration {
		if m.Kind == kindGrant {
			lost++
			return nil
		}
		return []time.Duration{w.delay}
	}
	begin := w.now
	if in := w.askAll(w.crowd(20, at(m))); in != 0 {
		t.Fatalf("%d were let in without a grant", in)
	}
	if took := w.now.Sub(begin); took < ticket.CallTimeout || took > ticket.CallTimeout+100*time.Millisecond {
		t.Errorf("applicants were told to wait after %v, want %v", took, ticket.CallTimeout)
	}
	if lost < 3 {
		t.Errorf("%d grants were lost, want the call sent again and answered", lost)
	}
	w.fate = nil
	w.run(time.Second)
	if n := lead.core.order[0].lent(w.now)["a"]; n != 0 {
		t.Errorf("%d places are still reckoned with a second later", n)
	}

	// A node that dies with grants on their way to it.
	for _, p := range w.crowd(10, at(m)) {
		m.core.order[0].Begin(p.pass, false, w.now, func(Verdict) {})
	}
	w.post(m, m.core.Flush(w.now))
	w.run(20 * time.Millisecond)
	w.kill(m)
	w.run(time.Second)
	if n := lead.core.order[0].lent(w.now)["a"]; n != 10 {
		t.Errorf("%d places are reckoned with after a node died with 10, want 10", n)
	}
	w.run(ticket.GrantKept)
	if n := lead.core.order[0].lent(w.now)["a"]; n != 0 {
		t.Errorf("%d places are still reckoned with %v later", n, ticket.GrantKept)
	}
}

// TestGrantsComeOnlyFromTheCounter has others answer calls, and call.
func TestGrantsComeOnlyFromTheCounter(t *testing.T) {
	w := newWorld(t, counterSettings(50), "a", "a", "a", "b")
	w.run(5 * time.Second)
	lead := w.counterOf("a")
	m := w.other(lead)
	var third *machine
	for _, o := range w.nodes {
		if o.site == "a" && o != lead && o != m {
			third = o
		}
	}
	var got []Verdict
	m.core.order[0].Begin(Pass{}, false, w.now, func(v Verdict) { got = append(got, v) })
	var call ticket.Call
	for _, out := range m.core.Flush(w.now) {
		c, err := ticket.DecodeCall(out.Payload)
		if err != nil {
			t.Fatal(err)
		}
		call = c
	}
	g := ticket.Grant{Room: call.Room, Scope: call.Scope, Number: call.Number, Given: call.Want}
	w.receive(third, m, Message{Kind: kindGrant, Payload: ticket.AppendGrant(nil, g)})
	if len(got) != 0 {
		t.Error("a grant of a node that was not asked was taken")
	}
	g.Given.Contested = 2
	peer := func(m *machine) replica.Peer {
		return replica.Peer{ID: m.id, Boot: m.boot, Site: m.site, Ready: true}
	}
	for _, who := range []*machine{lead, w.nodes[3]} {
		if _, err := m.core.Receive(peer(who), kindGrant, ticket.AppendGrant(nil, g), w.now); who == lead && err == nil {
			t.Error("a grant of more than was wanted was taken")
		}
	}
	if _, err := lead.core.Receive(peer(w.nodes[3]), kindCall, ticket.AppendCall(nil, ticket.Call{Room: roomID, Number: 1}), w.now); err == nil {
		t.Error("another site's call for the site's counter was answered")
	}
	if _, err := lead.core.Receive(peer(w.nodes[3]), kindClaims, ticket.AppendClaims(nil, nil), w.now); err == nil {
		t.Error("another site's claims were heard")
	}
	if len(got) != 0 {
		t.Errorf("%d verdicts, want none before the counter answers", len(got))
	}
}

// TestTwoCountersAfterACutInASite cuts a site in half. Each half has a counter,
// and neither hears of the other's visitors: that is what this policy costs.
func TestTwoCountersAfterACutInASite(t *testing.T) {
	const limit = 100
	s := counterSettings(limit)
	s.SessionDuration = time.Minute
	w := newWorld(t, s, "a", "a", "a", "a")
	w.run(5 * time.Second)
	half := func(m *machine) bool { return m.id[0] > 2 }
	w.fate = func(from, to *machine, m Message) []time.Duration {
		if half(from) != half(to) {
			return nil
		}
		return []time.Duration{w.delay}
	}
	for _, m := range w.nodes {
		for _, o := range w.nodes {
			if o != m && half(o) == half(m) {
				m.core.SetPeers([]replica.Peer{{ID: o.id, Boot: o.boot, Site: o.site, Ready: true}}, w.now)
			}
		}
	}
	w.run(5 * time.Second)
	all := w.crowd(4*limit, w.spread)
	if in := w.askAll(all); in != 2*limit {
		t.Errorf("%d were let in, want %d by each half", in, limit)
	}
	w.fate = nil
	w.members()
	w.run(3 * time.Second)
	w.counterOf("a") // one is left
	end := w.now.Add(50 * time.Second)
	for w.now.Before(end) {
		if in := w.askAll(slices.DeleteFunc(slices.Clone(all), func(p *person) bool { return p.in })); in != 0 {
			t.Fatalf("%d were let in while the site is full twice over", in)
		}
		w.run(5 * time.Second)
	}
}

// TestAnywhereCounterAcrossSites has crowds come to all nodes of three sites at
// once, 80 ms apart, where no history claims anything.
func TestAnywhereCounterAcrossSites(t *testing.T) {
	const limit = 300
	s := counterSettings(limit)
	s.SessionDuration = time.Minute
	w := newWorld(t, s, "a", "a", "b", "b", "c", "c")
	w.fate = func(from, to *machine, _ Message) []time.Duration {
		if from.site != to.site {
			return []time.Duration{80 * time.Millisecond}
		}
		return []time.Duration{w.delay}
	}
	w.run(5 * time.Second)
	var all []*person
	for range 10 {
		people := w.crowd(60, w.spread)
		w.askAll(people)
		all = append(all, people...)
		w.run(200 * time.Millisecond)
	}
	// Until their site's counts show them, the last few seconds' are reckoned with
	// twice: some places are free still.
	if n := w.active(all); n > limit || n < limit*2/3 {
		t.Errorf("%d visitors are active, the limit is %d", n, limit)
	}
	for range 4 {
		w.run(5 * time.Second)
		w.askAll(slices.DeleteFunc(slices.Clone(all), func(p *person) bool { return p.in }))
	}
	if n := w.active(all); n != limit {
		t.Errorf("%d visitors are active once the news is round, the limit is %d", n, limit)
	}
}

// TestGrantToAStoppedNodeIsVoid stops a node while a grant for it is on the way,
// for so long that the counter gives the places to others.
func TestGrantToAStoppedNodeIsVoid(t *testing.T) {
	const limit = 50
	s := counterSettings(limit)
	s.SessionDuration = 5 * time.Minute
	w := newWorld(t, s, "a", "a", "a")
	w.run(5 * time.Second)
	lead := w.counterOf("a")
	m := w.other(lead)
	answers := 0
	for range limit {
		if _, ok := m.core.order[0].Begin(Pass{}, false, w.now, func(v Verdict) {
			answers++
			if v.Admit {
				t.Error("somebody was let in with a grant of long ago")
			}
		}); ok {
			t.Fatal("answered without the counter")
		}
	}
	w.post(m, m.core.Flush(w.now))
	m.stopped = true
	w.members()
	w.run(ticket.GrantKept + 2*time.Second)
	if in := w.askAll(w.crowd(limit, at(lead))); in != limit {
		t.Fatalf("%d were let in elsewhere, want all %d: the test is too easy", in, limit)
	}
	m.stopped = false
	w.members()
	w.run(time.Second)
	if answers != limit {
		t.Errorf("%d of %d have an answer", answers, limit)
	}
}

// TestMembersWithoutNewsChangeNothing tells a node again who lives, as its shell
// does every second: thousands of rooms shall not all be looked at for it.
func TestMembersWithoutNewsChangeNothing(t *testing.T) {
	w := newWorld(t, counterSettings(10), "a", "a")
	r := w.nodes[0].core.order[0]
	w.run(time.Second)
	for r.news {
		w.run(tickInterval)
	}
	if w.members(); r.news {
		t.Error("the same members are news")
	}
	w.kill(w.nodes[1])
	if !r.stale(w.now) {
		t.Error("that a node died is no news")
	}
}

// TestTicketIsAskedForAtOnceAfterTheAnchor has a visitor come to a second node
// with a pass that has run out and whose session is over.
func TestTicketIsAskedForAtOnceAfterTheAnchor(t *testing.T) {
	s := counterSettings(10)
	s.SessionDuration = 10 * time.Second
	w := newWorld(t, s, "a", "a")
	w.run(5 * time.Second)
	lead := w.counterOf("a")
	m := w.other(lead)
	p := w.crowd(1, at(lead))[0]
	if w.ask(p); !p.in {
		t.Fatal("not let in to an empty room")
	}
	w.run(s.SessionDuration + ticket.Guard + tickInterval)
	if _, ok := m.core.order[0].Begin(p.pass, true, w.now, func(Verdict) {}); ok {
		t.Fatal("answered without the anchor")
	}
	out := m.core.Flush(w.now)
	for _, kind := range []uint8{kindAsk, kindAnswer, kindCall} {
		if len(out) != 1 || out[0].Kind != kind {
			t.Fatalf("%d messages %+v, want one of kind %d at once", len(out), out, kind)
		}
		from, to := lead, m
		if out[0].To == lead.id {
			from, to = m, lead
		}
		var err error
		if out, err = to.core.Receive(replica.Peer{ID: from.id, Boot: from.boot, Site: "a", Ready: true}, out[0].Kind, out[0].Payload, w.now); err != nil {
			t.Fatal(err)
		}
	}
}
