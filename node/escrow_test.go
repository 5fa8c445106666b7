package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

// escrowSettings is a room whose limit is rights.
func escrowSettings(total int) room.Settings {
	s := testSettings(total)
	s.Policy = room.Escrow
	return s
}

// TestOneNodeGivesItsRights has a crowd come to a node that is alone.
func TestOneNodeGivesItsRights(t *testing.T) {
	w := newWorld(t, escrowSettings(100), "a")
	if is := w.nodes[0].core.order[0].Rights(); is.Held.Places != 100 || is.Held.Rate != 10_000 {
		t.Fatalf("the node holds %+v, want what the limits say", is)
	}
	people := w.crowd(130, at(w.nodes[0]))
	if in := w.askAll(people); in != 100 {
		t.Errorf("%d of 130 were let in, want 100", in)
	}
	w.run(61 * time.Second)
	if n := w.active(people); n != 0 {
		t.Errorf("%d are inside after a session, want none", n)
	}
	if in := w.askAll(people[100:]); in != 30 {
		t.Errorf("%d of the 30 who waited were let in then", in)
	}
}

// TestRightsOfASiteServeAnUnevenCrowd has everybody come to one node, which has a
// part of the rights only.
func TestRightsOfASiteServeAnUnevenCrowd(t *testing.T) {
	for name, pick := range map[string]func(w *world) *machine{
		"at the counter": func(w *world) *machine { return w.counterOf("a") },
		"elsewhere":      func(w *world) *machine { return w.other(w.counterOf("a")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, escrowSettings(100), "a", "a", "a")
			w.run(20 * time.Second)
			for _, m := range w.nodes {
				t.Logf("node %d: %+v", m.id[0], m.core.order[0].Rights())
			}
			people := w.crowd(130, at(pick(w)))
			if in := w.askAll(people); in != 100 {
				t.Errorf("%d of 130 were let in, want 100", in)
			}
			for _, m := range w.nodes {
				t.Logf("node %d: %+v", m.id[0], m.core.order[0].Rights())
			}
		})
	}
}

// TestRightsCrossToWhereVisitorsAre has a crowd come to one of two sites.
func TestRightsCrossToWhereVisitorsAre(t *testing.T) {
	for i := range 2 {
		w := newWorld(t, escrowSettings(100), "a", "b")
		w.run(20 * time.Second)
		for _, m := range w.nodes {
			t.Logf("node %d: %+v", m.id[0], m.core.order[0].Rights())
		}
		people := w.crowd(130, at(w.nodes[i]))
		in := w.askAll(people)
		t.Logf("at once %d", in)
		for range 3 {
			w.run(5 * time.Second)
			in += w.askAll(outside(people))
		}
		if in < 99 || in > 100 {
			t.Errorf("%d of 130 are inside, want 99 at least and 100 at most", in)
		}
	}
}

// outside returns those who are not let in.
func outside(people []*person) (out []*person) {
	for _, p := range people {
		if !p.in {
			out = append(out, p)
		}
	}
	return out
}

// TestRowsTellWhatIsFree has all visitors of a site ask at one node, which gives them
// tickets of all: each node's row says how many of its own rights are in use, so that
// the counter knows where the rest are.
func TestRowsTellWhatIsFree(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "a")
	w.run(20 * time.Second)
	people := w.crowd(70, at(w.other(w.counterOf("a"))))
	if in := w.askAll(people); in != 70 {
		t.Fatalf("%d of 70 were let in", in)
	}
	w.run(3 * time.Second)
	used := 0
	for _, m := range w.nodes {
		own := m.core.order[0].Rights()
		for _, o := range w.nodes {
			if o == m {
				continue
			}
			got := o.core.order[0].mateRights(replica.Peer{ID: m.id, Boot: m.core.self.Boot}, new(crdt.Counts), w.now)
			if got.Held != own.Held || got.Free != own.Free {
				t.Errorf("node %d has %+v free of %+v; node %d takes it for %+v of %+v", m.id[0], own.Free, own.Held, o.id[0], got.Free, got.Held)
			}
		}
		used += int(own.InUse)
	}
	if used != 70 {
		t.Errorf("%d places are in use, want 70", used)
	}
}

// someoneWaits has the mesh count a new visitor of a node who waits, as soon as views are
// built anew.
func (w *world) someoneWaits(m *machine) {
	r := m.core.Route("shop", "/")
	r.Queue(r.Hold(Pass{}, true, w.now).Pass)
}

// TestWhileNobodyWaitsNobodyIsAsked has visitors come to a node that is not the counter: as
// long as its own rights are enough and nobody waits, it lets them in by itself. Once somebody
// waits, wherever that is, the counter decides.
func TestWhileNobodyWaitsNobodyIsAsked(t *testing.T) {
	w := newWorld(t, escrowSettings(3000), "a", "a", "a")
	w.run(20 * time.Second)
	m := w.other(w.counterOf("a"))
	calls := 0
	w.lose = func(l letter) bool {
		if l.from == m.id && l.m.Kind == kindCall {
			calls++
		}
		return false
	}
	come := func() {
		t.Helper()
		people := w.crowd(10, at(m))
		if in := w.askAll(people); in != 10 {
			t.Errorf("%d of 10 were let in", in)
		}
		for _, p := range people {
			if calls == 0 && p.pass.Ticket.Anchor != m.id {
				t.Errorf("a ticket of %s was given without a call", p.pass.Ticket.Anchor)
			}
		}
		w.run(200 * time.Millisecond)
	}
	for range 10 { // until what is on disk covers them, calls are for the disk's sake
		come()
	}
	calls = 0
	for range 10 {
		come()
	}
	if calls > 0 {
		t.Errorf("%d calls while nobody waits, want none", calls)
	}
	w.someoneWaits(w.other(m))
	w.run(time.Second)
	if come(); calls == 0 {
		t.Error("no call though somebody waits")
	}
	w.holds(3000, 10_000, "at the end")
}
