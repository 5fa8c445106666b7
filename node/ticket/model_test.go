package ticket

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// The model runs a few anchors and visitors who roam between them, with clocks
// that differ, messages that get lost, doubled and overtaken, cookies that do
// not arrive, and anchors that restart. An oracle knows every pass.

const (
	modelSession = 20 * time.Second
	modelTick    = 50 * time.Millisecond
)

type model struct {
	t        *testing.T
	rng      *rand.Rand
	now      time.Time // of the oracle
	nodes    []*modelNode
	visitors []*modelVisitor
	mail     map[int64][]func()
	faults   bool
	forget   bool // restarts lose how many leases there were

	entered, refused, asked, moved, restarts int
}

type modelNode struct {
	id        crdt.NodeID
	boot, seq uint64
	skew      time.Duration
	leases    *Leases
	renewals  *Renewals
	count     int // what the row says
	anew      map[Ticket]modelPass
	down      bool
}

type modelPass struct {
	ticket Ticket
	end    time.Time
}

type modelVisitor struct {
	pass modelPass // zero: none
	next time.Time // request
	gone bool
}

func newModel(t *testing.T, seed uint64, forget bool) *model {
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 5)), now: epoch, mail: map[int64][]func(){}, faults: true, forget: forget}
	for i := range 4 {
		n := &modelNode{id: crdt.NodeID{byte(i + 1)}, skew: time.Duration(m.rng.IntN(int(Guard)+1)) - Guard/2}
		m.nodes = append(m.nodes, n)
		m.start(n, 0)
	}
	for range 40 {
		m.visitors = append(m.visitors, &modelVisitor{next: m.now.Add(time.Duration(m.rng.IntN(10_000)) * time.Millisecond)})
	}
	return m
}

func (m *model) clock(n *modelNode) time.Time { return m.now.Add(n.skew) }

func (m *model) start(n *modelNode, block int) {
	n.boot++
	n.seq, n.count = 0, 0
	n.renewals, n.anew = NewRenewals(), map[Ticket]modelPass{}
	var d Delta
	n.leases, d = leasesAfter(crdt.Incarnation{Node: n.id, Boot: n.boot}, modelSession, block, m.clock(n))
	m.book(n, d)
}

func (m *model) book(n *modelNode, d Delta) {
	n.count += int(d.P) - int(d.N)
	if n.count != n.leases.InUse() {
		m.t.Fatalf("row says %d, table %d", n.count, n.leases.InUse())
	}
}

// send delivers f later, sometimes twice, sometimes not at all.
func (m *model) send(f func()) {
	copies := 1
	if m.faults {
		copies = []int{0, 0, 1, 1, 1, 1, 1, 1, 2, 2}[m.rng.IntN(10)]
	}
	for range copies {
		delay := time.Duration(20+m.rng.IntN(300)) * time.Millisecond
		if m.faults && m.rng.IntN(20) == 0 {
			delay += time.Duration(m.rng.IntN(5000)) * time.Millisecond
		}
		at := m.now.Add(delay).UnixMilli() / modelTick.Milliseconds()
		m.mail[at+1] = append(m.mail[at+1], f)
	}
}

func (m *model) node(id crdt.NodeID) *modelNode { return m.nodes[id[0]-1] }

// step lets one tick pass.
func (m *model) step() {
	m.now = m.now.Add(modelTick)
	slot := m.now.UnixMilli() / modelTick.Milliseconds()
	mail := m.mail[slot]
	delete(m.mail, slot)
	for _, f := range mail {
		f()
	}
	for _, n := range m.nodes {
		if !n.down {
			m.tick(n)
		}
	}
	for _, v := range m.visitors {
		if !v.gone && !m.now.Before(v.next) {
			m.request(v)
			// Most stay on; some pause for about as long as a session.
			v.next = m.now.Add(time.Duration(m.rng.IntN(6000)) * time.Millisecond)
			if m.rng.IntN(8) == 0 {
				v.next = m.now.Add(modelSession + time.Duration(m.rng.IntN(4000)-2000)*time.Millisecond)
			}
		}
	}
	if m.faults && m.rng.IntN(600) == 0 {
		m.crash(m.nodes[m.rng.IntN(len(m.nodes))])
	}
	m.check()
}

func (m *model) tick(n *modelNode) {
	now := m.clock(n)
	m.book(n, n.leases.Expire(now))
	for _, b := range n.renewals.Due(now) {
		data := AppendBatch(nil, b, now)
		m.send(func() { m.receive(n, n.boot, data) })
	}
	for _, r := range n.renewals.Unreachable(now) {
		// There is no limit here: a place of this node's own is always free.
		n.anew[r.Ticket] = m.open(n, r.At)
		n.renewals.Forget(r.Ticket)
		m.moved++
	}
}

// receive is a batch of renewals at its anchor.
func (m *model) receive(from *modelNode, boot uint64, data []byte) {
	b, err := DecodeBatch(data, time.Time{})
	if err != nil {
		m.t.Fatal(err)
	}
	to := m.node(b.Anchor)
	if to.down {
		return
	}
	if b, err = DecodeBatch(data, m.clock(to)); err != nil {
		m.t.Fatal(err)
	}
	acks := Acks{Anchor: to.id}
	for _, item := range b.Items {
		end, d, err := to.leases.CheckIn(item.Ticket, item.PassEnd, item.At, m.clock(to))
		m.book(to, d)
		m.mustKnow(to, item.Ticket, item.PassEnd, err)
		acks.Items = append(acks.Items, Ack{Ticket: item.Ticket, End: end})
	}
	reply := AppendAcks(nil, acks)
	m.send(func() {
		if from.down || from.boot != boot {
			return
		}
		a, err := DecodeAcks(reply)
		if err != nil {
			m.t.Fatal(err)
		}
		for _, ack := range a.Items {
			if ack.End.IsZero() {
				from.renewals.Refused(ack.Ticket)
			} else {
				from.renewals.Acked(ack.Ticket, ack.End)
			}
		}
	})
}

// mustKnow fails if an anchor refused a session whose pass is not past there.
func (m *model) mustKnow(n *modelNode, t Ticket, passEnd time.Time, err error) {
	m.t.Helper()
	if err != nil && !m.clock(n).After(passEnd) {
		m.t.Fatalf("%v after the start: anchor refused %+v (%v), pass ends in %v, boot %d",
			m.now.Sub(epoch), t, err, passEnd.Sub(m.clock(n)), n.boot)
	}
}

func (m *model) open(n *modelNode, at time.Time) modelPass {
	n.seq++
	t := Ticket{Anchor: n.id, Boot: n.boot, Seq: n.seq}
	end, d, err := n.leases.Open(t, at, m.clock(n))
	if err != nil {
		m.t.Fatal(err)
	}
	m.book(n, d)
	return modelPass{t, end}
}

// request is one request of a visitor at some node that is up.
func (m *model) request(v *modelVisitor) {
	n := m.nodes[m.rng.IntN(len(m.nodes))]
	if m.rng.IntN(2) == 0 && v.pass != (modelPass{}) {
		n = m.node(v.pass.ticket.Anchor) // most come back to where they were
	}
	if n.down {
		return
	}
	next, ok := m.decide(n, v.pass)
	if !ok {
		m.entered++
		next = m.open(n, m.clock(n))
	}
	// The answer, and the cookie in it, may get lost.
	if !m.faults || m.rng.IntN(10) > 0 || v.pass == (modelPass{}) {
		v.pass = next
	}
}

// decide returns the pass that a visitor goes on with, or false for none.
func (m *model) decide(n *modelNode, p modelPass) (modelPass, bool) {
	now := m.clock(n)
	switch {
	case p == modelPass{}:
		return p, false
	case p.ticket.Anchor == n.id:
		end, d, err := n.leases.CheckIn(p.ticket, p.end, now, now)
		m.book(n, d)
		m.mustKnow(n, p.ticket, p.end, err)
		if err != nil {
			m.refused++
			return p, false
		}
		return modelPass{p.ticket, end}, true
	case !now.After(p.end):
		if q, ok := n.anew[p.ticket]; ok && now.Before(q.end) {
			return q, true
		}
		n.renewals.Note(p.ticket, p.end, now)
		if end, ok := n.renewals.Take(p.ticket); ok && end.After(p.end) {
			p.end = end
		}
		return p, true
	}
	anchor := m.node(p.ticket.Anchor)
	if now.Sub(p.end) >= 2*modelSession || anchor.down {
		return p, false
	}
	m.asked++
	at := m.clock(anchor)
	end, d, err := anchor.leases.CheckIn(p.ticket, p.end, at, at)
	m.book(anchor, d)
	m.mustKnow(anchor, p.ticket, p.end, err)
	return modelPass{p.ticket, end}, err == nil
}

// crash stops a node and starts it again, at once or after a while.
func (m *model) crash(n *modelNode) {
	if n.down {
		return
	}
	m.restarts++
	n.down = true
	block := n.leases.InUse()
	if m.forget {
		block = 0
	}
	at := m.now.Add(time.Duration(m.rng.IntN(8)) * time.Second)
	slot := at.UnixMilli()/modelTick.Milliseconds() + 1
	m.mail[slot] = append(m.mail[slot], func() {
		n.down = false
		m.start(n, block)
	})
}

// check compares what anchors count with what visitors may believe: passes that
// are not past at the node whose clock is furthest behind.
func (m *model) check() {
	slowest := m.now.Add(-Guard / 2)
	believed := map[crdt.NodeID]int{}
	for _, v := range m.visitors {
		if v.pass != (modelPass{}) && !slowest.After(v.pass.end) {
			anchor := m.node(v.pass.ticket.Anchor)
			if m.forget && (anchor.down || v.pass.ticket.Boot < anchor.boot) {
				continue // forgotten by the restart, and counted once it shows up
			}
			believed[anchor.id]++
		}
	}
	for _, n := range m.nodes {
		if n.leases.InUse() < believed[n.id] {
			m.t.Fatalf("%v after the start: node %d counts %d, %d believe to be in",
				m.now.Sub(epoch), n.id[0], n.leases.InUse(), believed[n.id])
		}
	}
}

func TestModel(t *testing.T) {
	for _, forget := range []bool{false, true} {
		t.Run(fmt.Sprintf("forget=%v", forget), func(t *testing.T) {
			var total model
			for seed := range uint64(10) {
				m := newModel(t, seed, forget)
				t.Log("seed", seed)
				for range 5 * time.Minute / modelTick {
					m.step()
				}
				// Everybody leaves; every lease must end.
				for _, v := range m.visitors {
					v.gone = true
				}
				m.faults = false
				for range (2*modelSession + 20*time.Second) / modelTick {
					m.step()
				}
				for _, n := range m.nodes {
					if n.leases.InUse() != 0 {
						t.Errorf("seed %d: node %d still counts %d", seed, n.id[0], n.leases.InUse())
					}
					if n.renewals.Len() != 0 {
						t.Errorf("seed %d: node %d still carries %d renewals", seed, n.id[0], n.renewals.Len())
					}
				}
				total.entered += m.entered
				total.refused += m.refused
				total.asked += m.asked
				total.moved += m.moved
				total.restarts += m.restarts
			}
			t.Logf("%d entries, %d refused at their anchor, %d asked for, %d moved to another anchor, %d restarts",
				total.entered, total.refused, total.asked, total.moved, total.restarts)
			// A model in which nothing happens proves nothing.
			if total.refused == 0 || total.asked == 0 || total.moved == 0 || total.restarts < 20 {
				t.Error("some kind of event never happened")
			}
		})
	}
}
