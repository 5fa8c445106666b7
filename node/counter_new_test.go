package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// newCounterRoom has a mesh of two sites run, and then makes a room at it whose tickets come
// from counters.
func newCounterRoom(t *testing.T, limit int) *world {
	t.Helper()
	w := newCatalogWorld(t, shopSettings(10), "a", "a", "b", "b")
	w.run(20 * time.Second)
	s := counterSettings(limit)
	s.ID, s.Name, s.Host, s.Path, s.CookieSuffix = crdt.RoomID{9}, "new", "shop", "/new", "new"
	s.SessionDuration = 5 * time.Minute
	w.add(w.nodes[0], s)
	w.run(2500 * time.Millisecond) // until all have heard of it
	w.agree()
	return w
}

// askNew is askAll in the room that was made.
func (w *world) askNew(people []*person) (in int) {
	w.t.Helper()
	left := len(people)
	for _, p := range people {
		take := func(v Verdict) {
			left--
			if v.SetPass {
				p.pass, p.has = v.Pass, true
			}
			if p.in = v.Admit; v.Admit {
				in++
			}
		}
		if v, ok := p.at.core.Route("shop", "/new").Begin(p.pass, p.has, w.now, take); ok {
			take(v)
		}
	}
	for _, m := range w.nodes {
		w.post(m, m.core.Flush(w.now))
	}
	for end := w.now.Add(5 * time.Second); left > 0 && w.now.Before(end); {
		w.run(10 * time.Millisecond)
	}
	if left != 0 {
		w.t.Fatalf("%d of %d requests have no answer after 5 s", left, len(people))
	}
	return in
}

// TestNewRoomLetsInAtOnce has a crowd come to a room that was just made: as many get in as
// its limits say, and not seconds later.
func TestNewRoomLetsInAtOnce(t *testing.T) {
	const limit = 50
	w := newCounterRoom(t, limit)
	all := w.crowd(80, w.spread)
	if in := w.askNew(all); in != limit {
		t.Errorf("%d of 80 were let in to a new room, want the %d of its limit", in, limit)
	}
	for range 10 {
		w.run(time.Second)
		if n := w.active(all); n > limit {
			t.Fatalf("%d are active, the limit is %d", n, limit)
		}
	}
}

// TestNewCounterOfAUsedRoomHoldsBack is the other side: where somebody has been let in, a new
// counter waits until that shows.
func TestNewCounterOfAUsedRoomHoldsBack(t *testing.T) {
	w := newWorld(t, counterSettings(50), "a", "a", "a")
	w.run(5 * time.Second)
	w.askAll(w.crowd(10, w.spread))
	w.run(time.Second)
	lead := w.counterOf("a")
	w.kill(lead)
	w.run(viewInterval)
	next := w.counterOf("a")
	people := w.crowd(60, at(next))
	if in := w.askAll(people); in != 0 {
		t.Errorf("a counter that has just begun let in %d", in)
	}
	w.run(5 * time.Second)
	if in := w.askAll(people); in != 40 {
		t.Errorf("%d were let in when they asked again, want 40", in)
	}
}

// TestStatusCountsEveryVisitorOnce has visitors of another site get tickets of the anywhere
// counter. As long as it is not known whether that site's counts show them, they are
// reckoned with twice, but never reported twice.
func TestStatusCountsEveryVisitorOnce(t *testing.T) {
	const limit = 50
	s := counterSettings(limit)
	s.SessionDuration = 5 * time.Minute
	w := newWorld(t, s, "a", "a", "b", "b")
	w.run(20 * time.Second)
	from := 2 // a node of the site that has to ask the other one
	if w.nodes[0].core.order[0].counters.Load().anywhereSite() == "b" {
		from = 0
	}
	all := w.crowd(30, at(w.nodes[from]))
	if in := w.askAll(all); in != 30 {
		t.Fatalf("%d of 30 were let in", in)
	}
	most := func(st RoomStatus) (n int64) {
		n = st.Active
		sites := int64(0)
		for _, site := range st.Sites {
			sites += site.Active
		}
		return max(n, sites)
	}
	for range 100 {
		for i, m := range w.nodes {
			if n := most(m.core.order[0].status()); n > 30 {
				t.Fatalf("node %d reports %d active visitors, there are 30", i+1, n)
			}
		}
		w.run(100 * time.Millisecond)
	}
	for i, m := range w.nodes {
		if st := m.core.order[0].status(); st.Active != 30 || st.Slots != limit-30 || st.Policy != string(room.Counter) {
			t.Errorf("node %d reports %d active and %d slots, want 30 and %d", i+1, st.Active, st.Slots, limit-30)
		}
	}
}
