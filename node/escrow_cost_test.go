//go:build linux

package node

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// BenchmarkEscrowCost tells where the time goes that a ticket costs, without sockets
// and disks: in a site of three nodes visitors come to two, and the third, which is the
// counter, has nothing else to do. One operation is a millisecond of the mesh's time,
// with 200 visitors. Of the counter it reports all that it does; of the other two what
// requests do themselves, what the loop does to let visitors in and in ticks, and the rest.
// While nobody waits in the room nodes use their own rights; while somebody does, all
// ask the counter. Times are of the processor, and without what is collected on others.
func BenchmarkEscrowCost(b *testing.B) {
	b.Run("nobody-waits", func(b *testing.B) { benchmarkEscrowCost(b, false) })
	b.Run("somebody-waits", func(b *testing.B) { benchmarkEscrowCost(b, true) })
}

func benchmarkEscrowCost(b *testing.B, somebodyWaits bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := newCostWorld(b)
	c.somebodyWaits = somebodyWaits
	for range 8 * time.Second / costStep { // longer than sessions last: as many leave as come
		c.step(200)
	}
	c.spent, c.given = [costs]time.Duration{}, 0
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		c.step(200)
	}
	if c.refused > 0 || c.given < 200*(b.N-1) {
		b.Fatalf("%d tickets in %d ms, %d refused", c.given, b.N, c.refused)
	}
	for part, spent := range c.spent {
		b.ReportMetric(float64(spent.Nanoseconds())/1e3/float64(c.given), costNames[part]+"-µs/ticket")
	}
	b.ReportMetric(float64(c.given)/c.spent[costCounter].Seconds(), "tickets/s/core-of-counter")
	b.ReportMetric(0, "ns/op")
}

const costStep = time.Millisecond

// What a mesh's time is spent on.
const (
	costCounter = iota // whatever the counter does
	costRequest        // what a request does at its own node until it waits
	costLetIn          // serving those who wait, by own rights or by grants
	costTick
	costRest // calls, reports, renewals and counts
	costs
)

var costNames = [costs]string{"counter", "request", "let-in", "tick", "rest"}

// costWorld is a site in virtual time that notes what real time it takes.
type costWorld struct {
	*world
	counter *machine
	ticked  time.Time
	polled  time.Time

	somebodyWaits  bool
	spent          [costs]time.Duration
	given, refused int
}

func newCostWorld(b *testing.B) *costWorld {
	s := testSettings(1 << 30)
	s.Policy, s.NewUsersPerMinute, s.SessionDuration = room.Escrow, 1<<30, 5*time.Second
	w := &world{t: b, now: noon, rng: rand.New(rand.NewPCG(1, 2)), remember: true}
	for i := range 3 {
		m := &machine{id: crdt.NodeID{byte(i + 1), 0xaa}, site: "a", found: i == 0}
		w.nodes = append(w.nodes, m)
		w.start(m, s)
	}
	w.run(20 * time.Second) // until the rights are spread
	c := &costWorld{world: w, ticked: w.now}
	for _, m := range w.nodes {
		m.core.entropy = nil // ids as in production
		if r := m.core.Route("shop", "/"); r.view.Load().leads(ticket.SiteCounter, m.id) {
			c.counter = m
		}
		if held := m.core.order[0].rights.Held().Places; held < 1<<28 {
			b.Fatalf("a node has %d of %d rights", held, 1<<30)
		}
	}
	return c
}

// step is a millisecond.
func (c *costWorld) step(visitors int) {
	c.now = c.now.Add(costStep)
	if c.somebodyWaits && c.now.Sub(c.polled) >= time.Second {
		c.polled = c.now
		c.someoneWaits(c.counter)
	}
	done := func(v Verdict) {
		if v.Admit {
			c.given++
		} else {
			c.refused++
		}
	}
	for _, m := range c.nodes {
		if m == c.counter {
			continue
		}
		r := m.core.Route("shop", "/")
		c.take(m, costRequest, func() []Message {
			for range visitors / (len(c.nodes) - 1) {
				if v, ok := r.Begin(Pass{}, false, c.now, done); ok {
					done(v)
				}
			}
			return nil
		})
		c.take(m, costLetIn, func() []Message { return m.core.Flush(c.now) })
	}
	for len(c.air) > 0 {
		l := c.air[0]
		c.air = c.air[1:]
		from, to, part := c.machine(l.from), c.machine(l.to), costRest
		if l.m.Kind == kindGrant {
			part = costLetIn
		}
		c.take(to, part, func() []Message {
			out, err := to.core.Receive(replica.Peer{ID: from.id, Boot: from.boot, Site: from.site, Ready: true}, l.m.Kind, l.m.Payload, c.now)
			if err != nil {
				c.t.Fatal(err)
			}
			return out
		})
	}
	if c.now.Sub(c.ticked) >= tickInterval {
		c.ticked = c.now
		for _, m := range c.nodes {
			c.take(m, costTick, func() []Message { return m.core.Tick(c.now) })
		}
	}
}

// take has a machine do something, and notes how long it took.
func (c *costWorld) take(m *machine, part int, do func() []Message) {
	if m == c.counter {
		part = costCounter
	}
	start := threadTime()
	out := do()
	c.spent[part] += threadTime() - start
	c.post(m, out)
}
