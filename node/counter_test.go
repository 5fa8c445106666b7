package node

import (
	"testing"
	"time"

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
		if v, ok := p.at.core.order[0].Begin(p.pass, p.has, w.now, take); ok {
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
