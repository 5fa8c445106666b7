package node

import (
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// counterSettings is a room whose tickets come from counters.
func counterSettings(total int) room.Settings {
	s := testSettings(total)
	s.Policy = room.Counter
	return s
}

// askAll has many ask at once, and time go on until all have an answer. It
// returns how many were let in.
func (w *world) askAll(people []*person) (in int) {
	w.t.Helper()
	left := len(people)
	for _, p := range people {
		take := func(v Verdict) {
			left--
			if v.SetPass {
				p.pass, p.has = v.Pass, true
			}
			p.in = v.Admit
			if v.Admit {
				in++
			}
		}
		r := p.at.core.order[0]
		if w.catalog {
			r = p.at.core.Route("shop", "/")
		}
		if v, ok := r.Begin(p.pass, p.has, w.now, take); ok {
			take(v)
		}
	}
	for _, m := range w.nodes {
		if m.core != nil {
			w.post(m, m.core.Flush(w.now))
		}
	}
	for end := w.now.Add(5 * time.Second); left > 0 && w.now.Before(end); {
		w.run(10 * time.Millisecond)
	}
	if left != 0 {
		w.t.Fatalf("%d of %d requests have no answer after 5 s", left, len(people))
	}
	return in
}

// counterOf returns the node that is the counter of a site, as all its nodes say.
func (w *world) counterOf(site string) *machine {
	w.t.Helper()
	var is *machine
	for _, m := range w.nodes {
		if m.core == nil || m.site != site {
			continue
		}
		k := m.core.order[0].counters.Load()
		if k == nil {
			w.t.Fatalf("node %d has no counters", m.id[0])
		}
		named := w.machine(k.loop.ask[ticket.SiteCounter])
		if is != nil && named != is {
			w.t.Fatalf("node %d takes %d for the counter of its site, others %d", m.id[0], named.id[0], is.id[0])
		}
		is = named
	}
	return is
}

// other returns a node of the same site.
func (w *world) other(m *machine) *machine {
	for _, o := range w.nodes {
		if o != m && o.core != nil && o.site == m.site {
			return o
		}
	}
	w.t.Fatal("the site has one node only")
	return nil
}

func at(m *machine) func(int) *machine { return func(int) *machine { return m } }

// TestCounterAdmitsAnUnevenCrowd has everybody come to one node of the site.
func TestCounterAdmitsAnUnevenCrowd(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		w := newWorld(t, counterSettings(100), "a", "a", "a", "a")
		w.run(5 * time.Second)
		m := w.counterOf("a")
		if elsewhere {
			m = w.other(m)
		}
		if in := w.askAll(w.crowd(130, at(m))); in != 100 {
			t.Errorf("at the counter itself %v: %d of 130 were let in at once, want 100", !elsewhere, in)
		}
	}
}

// TestCounterHoldsTheLimitInASite has crowds come to all nodes at once, and all
// who wait ask again at once, through three sessions.
func TestCounterHoldsTheLimitInASite(t *testing.T) {
	const limit = 200
	s := counterSettings(limit)
	s.SessionDuration = 10 * time.Second
	w := newWorld(t, s, "a", "a", "a", "a")
	w.run(5 * time.Second)
	all := w.crowd(900, w.spread)
	in, peak := 0, 0
	begin := w.now
	for w.now.Sub(begin) < 32*time.Second {
		var out []*person
		for _, p := range all {
			if !p.in {
				out = append(out, p)
			}
		}
		in += w.askAll(out)
		for range 5 {
			w.run(time.Second)
			peak = max(peak, w.active(all))
		}
	}
	if peak != limit {
		t.Errorf("peak of active visitors = %d, the limit is %d", peak, limit)
	}
	if in < 3*limit {
		t.Errorf("%d were let in within three sessions, want places to be used again", in)
	}
}

// TestSitesPartThenAnywhere is the known example: of 150 slots, settled history
// gives a site 15 and nobody 113, so that 128 of a crowd of 140 are let in.
func TestSitesPartThenAnywhere(t *testing.T) {
	s := counterSettings(200)
	s.SessionDuration = 10 * time.Minute
	w := newWorld(t, s, "san-jose", "san-jose", "london", "london", "london")
	w.now = w.now.Truncate(time.Minute).Add(time.Minute) // stays on the grid of ticks
	w.run(20 * time.Second)                              // sites have not heard of each other for as long as the clock jumped
	for i, n := range []int{20, 0, 30} {
		if in := w.askAll(w.crowd(n, at(w.nodes[i]))); in != n {
			t.Fatalf("%d of the first %d were let in", in, n)
		}
	}
	w.run(130 * time.Second) // the minute of theirs is settled, and no more the last
	v := w.nodes[1].core.order[0].view.Load()
	if v.AllowNew != 15 || v.AllowAnywhere != 113 {
		t.Errorf("%d and %d are to be had, want 15 and 113", v.AllowNew, v.AllowAnywhere)
	}
	for _, m := range []*machine{w.counterOf("san-jose"), w.other(w.counterOf("san-jose"))} {
		if l := m.core.order[0].counters.Load().loop; l.ask[ticket.AnywhereCounter] == (crdt.NodeID{}) {
			t.Errorf("node %d knows of no anywhere counter", m.id[0])
		}
	}
	crowd := w.crowd(140, at(w.other(w.counterOf("san-jose"))))
	if in := w.askAll(crowd); in != 128 {
		t.Errorf("%d of 140 were let in, want 128", in)
	}
	w.run(5 * time.Second)
	if in := w.askAll(w.crowd(140, at(w.other(w.counterOf("london"))))); in != 10 {
		t.Errorf("%d were let in at the other site then, want 10: of its 22, the 12 who wait come first", in)
	}
	waiting, in := slices.DeleteFunc(crowd, func(p *person) bool { return p.in }), 0
	for range 4 { // as soon as it is common knowledge that they wait
		in += w.askAll(slices.DeleteFunc(slices.Clone(waiting), func(p *person) bool { return p.in }))
		w.run(5 * time.Second)
	}
	if in != 12 {
		t.Errorf("%d of the 12 who waited were let in", in)
	}
}

// TestFloodCostsACallPerRoundTrip has 10,000 visitors apply at one node at once,
// and then more and more of them.
func TestFloodCostsACallPerRoundTrip(t *testing.T) {
	const limit = 500
	w := newWorld(t, counterSettings(limit), "a", "a", "a")
	w.run(5 * time.Second)
	m := w.other(w.counterOf("a"))
	calls := 0
	w.fate = func(_, _ *machine, m Message) []time.Duration {
		if m.Kind == kindCall {
			calls++
		}
		return []time.Duration{w.delay}
	}
	if in := w.askAll(w.crowd(10_000, at(m))); in != limit {
		t.Errorf("%d of 10,000 were let in, want %d", in, limit)
	}
	if calls > 2 {
		t.Errorf("%d calls for 10,000 applicants at once, want one, and one that tells", calls)
	}
	calls = 0
	const spans = 20
	for range spans { // the full room refuses from memory
		for _, p := range w.crowd(500, at(m)) {
			if w.ask(p).Admit {
				t.Fatal("somebody was let in to a full room")
			}
		}
		w.run(viewInterval)
	}
	if calls > spans+2 {
		t.Errorf("%d calls in %d spans of %v, want one each at most", calls, spans, viewInterval)
	}
}

// TestOlderPlacesGoFirst has waiting visitors apply in one call for fewer places
// than they are. All are owned by the node that they ask: others apply a round trip later.
func TestOlderPlacesGoFirst(t *testing.T) {
	s := counterSettings(20)
	s.SessionDuration = 10 * time.Second
	w := newWorld(t, s, "a", "a")
	w.run(5 * time.Second)
	m := w.other(w.counterOf("a"))
	w.askAll(w.crowd(20, at(m)))
	var people []*person
	for len(people) < 40 {
		p := w.crowd(1, at(m))[0]
		if w.ask(p); m.core.owner(roomID, p.pass.Visitor) == m.id {
			people = append(people, p)
		}
		w.run(20 * time.Millisecond)
	}
	for range 6 {
		w.run(5 * time.Second)
		reversed := slices.Clone(people)
		slices.Reverse(reversed)
		reversed = slices.DeleteFunc(reversed, func(p *person) bool { return p.in })
		before := len(people) - len(reversed)
		if in := w.askAll(reversed); in > 0 {
			for i, p := range people[:before+in] {
				if !p.in {
					t.Errorf("%d are in, but not number %d in line", before+in, i)
				}
			}
		}
	}
}

// TestGrantsAreReckonedWithOnce has the counter's view show every place as taken
// exactly once while news of it travels.
func TestGrantsAreReckonedWithOnce(t *testing.T) {
	w := newWorld(t, counterSettings(1000), "a", "a", "a")
	w.run(5 * time.Second)
	lead := w.counterOf("a")
	in := 0
	for range 40 {
		in += w.askAll(w.crowd(7, at(w.other(lead))))
		if got := lead.core.order[0].view.Load().Active; got > in {
			t.Fatalf("the counter reckons with %d active visitors, %d were let in", got, in)
		}
		w.run(viewInterval + tickInterval)
		if got := lead.core.order[0].view.Load().Active; got != in {
			t.Fatalf("the counter reckons with %d active visitors, %d were let in", got, in)
		}
	}
	w.run(time.Second)
	if n := len(lead.core.order[0].lent(w.now)); n != 0 {
		t.Errorf("%d sites are reckoned with although all rows have come", n)
	}
}

// TestApplicantsOutliveASwitch has the settings change while visitors wait for a
// counter that their call does not reach.
func TestApplicantsOutliveASwitch(t *testing.T) {
	for name, tt := range map[string]struct {
		change    func(*room.Settings)
		in, holds int // of 20: how many are let in, and have a pass
	}{
		"even":      {func(s *room.Settings) { s.Policy = room.Even }, 20, 20},
		"open":      {func(s *room.Settings) { s.Policy = room.Open }, 20, 20},
		"full":      {func(s *room.Settings) { s.Policy, s.TotalActiveUsers = room.Even, 8 }, 4, 20},
		"reject":    {func(s *room.Settings) { s.QueueingMethod = room.Reject }, 0, 0},
		"suspended": {func(s *room.Settings) { s.Suspended = true }, 0, 20},
	} {
		s := counterSettings(50)
		w := newWorld(t, s, "a", "a")
		w.run(5 * time.Second)
		m := w.other(w.counterOf("a"))
		w.lose = func(l letter) bool { return l.m.Kind == kindCall }
		answers, in, holds := 0, 0, 0
		for range 20 {
			if _, ok := m.core.order[0].Begin(Pass{}, false, w.now, func(v Verdict) {
				answers++
				in += boolInt(v.Admit)
				holds += boolInt(v.SetPass)
			}); ok {
				t.Fatal("answered without the counter")
			}
		}
		w.post(m, m.core.Flush(w.now))
		tt.change(&s)
		if err := m.core.Configure(s, w.now); err != nil {
			t.Fatal(err)
		}
		w.run(ticket.CallTimeout + 2*tickInterval)
		if n := m.core.pendings.count.Load(); answers != 20 || n != 0 {
			t.Errorf("%s: %d of 20 have an answer, %d still wait", name, answers, n)
		}
		if in != tt.in || holds != tt.holds {
			t.Errorf("%s: %d were let in and %d have a pass, want %d and %d", name, in, holds, tt.in, tt.holds)
		}
	}
}

// TestStatusNamesTheCounters asks every node who hands out tickets.
func TestStatusNamesTheCounters(t *testing.T) {
	s := counterSettings(10)
	w := newWorld(t, s, "a", "a", "b", "b")
	w.run(5 * time.Second)
	a, b := w.counterOf("a"), w.counterOf("b")
	for _, m := range w.nodes {
		st := m.core.order[0].status()
		if want := w.counterOf(m.site).id.String(); st.SiteCounter != want {
			t.Errorf("node %d names %q for its site, want %q", m.id[0], st.SiteCounter, want)
		}
		if st.AnywhereCounter != a.id.String() && st.AnywhereCounter != b.id.String() ||
			st.AnywhereCounter != w.nodes[0].core.order[0].status().AnywhereCounter {
			t.Errorf("node %d names %q as the anywhere counter", m.id[0], st.AnywhereCounter)
		}
	}
	s.Policy = room.Even
	if err := a.core.Configure(s, w.now); err != nil {
		t.Fatal(err)
	}
	if st := a.core.order[0].status(); st.SiteCounter+st.AnywhereCounter != "" {
		t.Errorf("under another policy %q and %q are named", st.SiteCounter, st.AnywhereCounter)
	}
}

// TestPolicyChangesLive switches counters on and off.
func TestPolicyChangesLive(t *testing.T) {
	s := testSettings(90)
	w := newWorld(t, s, "a", "a", "a")
	all := w.crowd(300, w.spread)
	in := 0
	for i, policy := range []room.Policy{room.Counter, room.Even, room.Counter} {
		s.Policy = policy
		for _, m := range w.nodes {
			if err := m.core.Configure(s, w.now); err != nil {
				t.Fatal(err)
			}
		}
		w.run(3 * time.Second)
		in += w.askAll(all[i*30 : i*30+30])
		w.run(2 * time.Second)
	}
	in += w.askAll(all[90:])
	if in != 90 || w.active(all) != 90 {
		t.Errorf("%d were let in and %d are active, want 90", in, w.active(all))
	}
}
