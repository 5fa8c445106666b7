package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// hotRoom is the one room of a node that is full, with one visitor inside and
// one who waits and may ask again.
func hotRoom(tb testing.TB) (r *Room, inside, waiting Pass, now time.Time) {
	tb.Helper()
	s := testSettings(1)
	s.SessionDuration = time.Hour
	m := &machine{id: crdt.NodeID{1}, site: "a"}
	w := &world{t: tb, now: noon, nodes: []*machine{m}}
	w.start(m, s)
	tick := func() {
		w.now = w.now.Add(tickInterval)
		m.core.Tick(w.now)
	}
	tick()
	r = m.core.Route("shop", "/")
	inside = r.Decide(Pass{}, false, w.now).Pass
	tick()
	waiting = r.Decide(Pass{}, false, w.now).Pass
	tick()
	now = w.now.Add(s.RefreshInterval)
	if v := r.Decide(inside, true, now); !v.Admit || v.SetPass {
		tb.Fatalf("verdict inside = %+v, want to be let pass as is", v)
	}
	if v := r.Decide(waiting, true, now); v.Admit || !v.SetPass {
		tb.Fatalf("verdict waiting = %+v, want to wait with a new pass", v)
	}
	return r, inside, waiting, now
}

// pollsPerTick is how many polls a benchmark leaves to the loop before it has
// them collected, as the loop itself does.
const pollsPerTick = 1000

// BenchmarkDecide measures one request, without what surrounds it in HTTP.
func BenchmarkDecide(b *testing.B) {
	r, inside, waiting, now := hotRoom(b)
	early := waiting
	early.LastPoll = now
	for _, c := range []struct {
		name string
		pass Pass
	}{{"inside", inside}, {"waiting", waiting}, {"early", early}, {"new", Pass{}}} {
		p, known := c.pass, c.pass != Pass{}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if v := r.Decide(p, known, now); v.New {
					r.Queue(v.Pass)
				}
				if n++; n%pollsPerTick == 0 {
					drain(r.core)
				}
			}
		})
	}
	b.Run("in_parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			p := inside
			for pb.Next() {
				p.Ticket.Seq++ // another session, and so mostly another stripe
				r.Decide(p, true, now)
				if p.Ticket.Seq%pollsPerTick == 0 {
					drain(r.core)
				}
			}
		})
	})
}

// drain takes the notes away unread.
func drain(c *Core) {
	for range c.stripes.collect() {
	}
}
