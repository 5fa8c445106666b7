package node

import (
	"math"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// refusingRoom is a room with free places at a node that its counter has refused
// for an hour, and a visitor who waits there and may ask again.
func refusingRoom(tb testing.TB) (r *Room, waiting Pass, now time.Time) {
	tb.Helper()
	w := &world{t: tb, now: noon, delay: 2 * time.Millisecond}
	for i := range 2 {
		m := &machine{id: crdt.NodeID{byte(i + 1)}, site: "a"}
		w.nodes = append(w.nodes, m)
		w.start(m, counterSettings(100))
	}
	w.run(5 * time.Second)
	m := w.other(w.counterOf("a"))
	r = m.core.order[0]
	now = w.now
	for c := range classes {
		r.counters.Load().until[c].Store(now.Add(time.Hour).UnixNano())
	}
	v, n := r.decide(Pass{}, false, now)
	if v.Admit || n != nothing {
		tb.Fatalf("verdict %+v, need %d, want a refusal from memory", v, n)
	}
	if w := r.view.Load(); w.AllowAnywhere == 0 {
		tb.Fatal("the room is full: nobody would have asked")
	}
	return r, v.Pass, now.Add(r.Settings().RefreshInterval)
}

// BenchmarkCounter measures what it costs to have a ticket counted out.
func BenchmarkCounter(b *testing.B) {
	b.Run("refused", benchmarkRefused)
	b.Run("apply", benchmarkApply)
	b.Run("grant", benchmarkGrant)
}

// benchmarkRefused refuses new visitors from memory.
func benchmarkRefused(b *testing.B) {
	r, _, now := refusingRoom(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		r.decide(Pass{}, false, now)
		if n++; n%pollsPerTick == 0 {
			drain(r.core)
		}
	}
}

// benchmarkApply lets in visitors who apply by the thousand: begin, call, grant
// and verdict, per visitor.
func benchmarkApply(b *testing.B) {
	r, _, now := refusingRoom(b)
	k := r.counters.Load()
	lead, _ := r.core.peers.Find(k.loop.ask[ticket.AnywhereCounter])
	for c := range classes {
		k.until[c].Store(0)
	}
	b.ReportAllocs()
	n, in := 0, 0
	for b.Loop() {
		r.Begin(Pass{}, false, now, func(v Verdict) {
			if v.Admit {
				in++
			}
		})
		if n++; n%pollsPerTick != 0 {
			continue
		}
		for _, m := range r.core.Flush(now) {
			call, err := ticket.DecodeCall(m.Payload)
			if err != nil {
				b.Fatal(err)
			}
			g := ticket.Grant{Room: r.id, Scope: call.Scope, Number: call.Number, Given: call.Want}
			if _, err := r.core.Receive(lead, kindGrant, ticket.AppendGrant(nil, g), now); err != nil {
				b.Fatal(err)
			}
		}
		drain(r.core)
	}
	if n >= pollsPerTick && in == 0 {
		b.Fatal("nobody was let in")
	}
}

// benchmarkGrant answers calls.
func benchmarkGrant(b *testing.B) {
	w := &world{t: b, now: noon, delay: 2 * time.Millisecond, nodes: []*machine{{id: crdt.NodeID{1}, site: "a"}}}
	w.start(w.nodes[0], counterSettings(math.MaxInt32))
	w.run(5 * time.Second)
	c := w.nodes[0].core
	from := replica.Peer{ID: crdt.NodeID{9}, Boot: 1, Site: "a", Ready: true}
	call := ticket.Call{Room: roomID, Scope: ticket.AnywhereCounter, Want: ticket.Places{Contested: 1}}
	b.ReportAllocs()
	for b.Loop() {
		call.Number++
		call.Got++
		if _, err := c.Receive(from, kindCall, ticket.AppendCall(nil, call), w.now); err != nil {
			b.Fatal(err)
		}
	}
}
