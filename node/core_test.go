package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

// world runs whole nodes in virtual time, with a network that delays.
type world struct {
	t     testing.TB
	now   time.Time
	rng   *rand.Rand
	delay time.Duration
	nodes []*machine
	air   []letter
	cut   bool // between sites
}

// machine is one node; core is nil while it is down.
type machine struct {
	id       crdt.NodeID
	site     string
	boot     uint64
	core     *Core
	snapshot []byte
	next     time.Time
}

type letter struct {
	at       time.Time
	from, to crdt.NodeID
	m        Message
}

var roomID = crdt.RoomID{7}

func testSettings(total int) room.Settings {
	s := room.Settings{ID: roomID, Name: "test", Path: "/", TotalActiveUsers: total, NewUsersPerMinute: 10_000,
		SessionDuration: 60 * time.Second, QueueingMethod: room.FIFO, Policy: room.Even,
		RefreshInterval: 5 * time.Second, BucketSpan: 12 * time.Second}
	return s.WithDefaults()
}

// newWorld starts a node per named site and lets the mesh settle.
func newWorld(t *testing.T, s room.Settings, sites ...string) *world {
	w := &world{t: t, now: time.Unix(1_700_000_000, 0), rng: rand.New(rand.NewPCG(1, 2)), delay: 2 * time.Millisecond}
	for i, site := range sites {
		m := &machine{id: crdt.NodeID{byte(i + 1), 0xaa}, site: site}
		w.nodes = append(w.nodes, m)
		w.start(m, s)
	}
	w.run(3 * time.Second)
	for _, m := range w.nodes {
		if !m.core.Ready() {
			t.Fatalf("node %s is not ready after 3 s", m.id)
		}
	}
	return w
}

func (w *world) start(m *machine, s room.Settings) {
	w.t.Helper()
	m.boot++
	core, err := NewCore(CoreConfig{
		Self: crdt.Incarnation{Node: m.id, Boot: m.boot}, Site: m.site, Rooms: []room.Settings{s},
		OwnerKey: []byte("key"), Rand: rand.New(rand.NewPCG(uint64(m.id[0]), m.boot)),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	core.call = func(_ context.Context, to crdt.NodeID, method uint8, req []byte) ([]byte, error) {
		for _, o := range w.nodes {
			if o.id == to && o.core != nil && !(w.cut && o.site != m.site) {
				return o.core.Answer(method, req, w.now)
			}
		}
		return nil, errors.New("unreachable")
	}
	if m.snapshot != nil {
		if err := core.Restore(m.snapshot, w.now); err != nil {
			w.t.Fatal(err)
		}
	}
	m.core = core
	w.members()
}

// kill stops a node as kill -9 does; the last state on disk stays.
func (w *world) kill(m *machine) {
	snapshot, err := m.core.Snapshot()
	if err != nil {
		w.t.Fatal(err)
	}
	m.snapshot, m.core = snapshot, nil
	w.members()
}

// members tells every node who lives.
func (w *world) members() {
	for _, m := range w.nodes {
		if m.core == nil {
			continue
		}
		var peers []replica.Peer
		for _, o := range w.nodes {
			if o != m && o.core != nil && !(w.cut && o.site != m.site) {
				peers = append(peers, replica.Peer{ID: o.id, Boot: o.boot, Site: o.site, Ready: o.core.Ready()})
			}
		}
		m.core.SetPeers(peers, w.now)
	}
}

func (w *world) run(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(10 * time.Millisecond) {
		w.deliver()
		ready := w.ready()
		for _, m := range w.nodes {
			if m.core != nil && !w.now.Before(m.next) {
				m.next = w.now.Add(tickInterval)
				w.post(m, m.core.Tick(w.now))
			}
		}
		if w.ready() != ready {
			w.members()
		}
	}
}

func (w *world) ready() (n int) {
	for _, m := range w.nodes {
		if m.core != nil && m.core.Ready() {
			n++
		}
	}
	return n
}

func (w *world) post(m *machine, out []Message) {
	for _, o := range out {
		w.air = append(w.air, letter{w.now.Add(w.delay), m.id, o.To, o})
	}
}

func (w *world) deliver() {
	due := w.air
	w.air = nil
	for _, l := range due {
		if l.at.After(w.now) {
			w.air = append(w.air, l)
			continue
		}
		from, to := w.machine(l.from), w.machine(l.to)
		if to == nil || to.core == nil || w.cut && from.site != to.site {
			continue
		}
		w.receive(from, to, l.m)
	}
}

// receive gives a node a message at once.
func (w *world) receive(from, to *machine, m Message) {
	out, err := to.core.Receive(replica.Peer{ID: from.id, Boot: from.boot, Site: from.site, Ready: true}, m.Kind, m.Payload, w.now)
	if err != nil {
		w.t.Errorf("message of kind %d from %s to %s: %v", m.Kind, from.id, to.id, err)
	}
	w.post(to, out)
}

func (w *world) machine(id crdt.NodeID) *machine {
	for _, m := range w.nodes {
		if m.id == id {
			return m
		}
	}
	return nil
}

// person is a visitor with a browser.
type person struct {
	name string
	pass Pass
	has  bool
	in   bool
	at   *machine
	next time.Time // the next request
}

// ask sends one request to the person's node and takes the cookie.
func (w *world) ask(p *person) Verdict {
	w.t.Helper()
	if p.at.core == nil {
		w.t.Fatalf("%s asks a node that is down", p.name)
	}
	v := p.at.core.Route("shop", "/").Decide(p.pass, p.has, w.now)
	if !v.SetPass && p.has && v.Pass != p.pass {
		w.t.Errorf("%s: the pass changed without being set", p.name)
	}
	if v.SetPass {
		p.pass, p.has = v.Pass, true
	}
	p.in = v.Admit
	return v
}

func (w *world) crowd(n int, at func(i int) *machine) []*person {
	people := make([]*person, n)
	for i := range people {
		people[i] = &person{name: fmt.Sprintf("visitor %d", i), at: at(i)}
	}
	return people
}

func (w *world) spread(i int) *machine { return w.nodes[i%len(w.nodes)] }

// active returns how many people have a pass that is not past.
func (w *world) active(people []*person) (n int) {
	for _, p := range people {
		if p.has && p.pass.Accepted() && !w.now.After(p.pass.LeaseEnd) {
			n++
		}
	}
	return n
}

func TestLimitHoldsAtOneNode(t *testing.T) {
	w := newWorld(t, testSettings(5), "a")
	people := w.crowd(12, w.spread)
	for i, p := range people {
		v := w.ask(p)
		if want := i < 5; v.Admit != want {
			t.Errorf("%s admitted = %v, want %v", p.name, v.Admit, want)
		}
		w.run(300 * time.Millisecond)
	}
	if got := w.nodes[0].core.order[0].status(); got.Active != 5 || got.Waiting != 7 {
		t.Errorf("active, waiting = %d, %d, want 5, 7", got.Active, got.Waiting)
	}
}

func TestEverybodyIsLetInAtLastInOrder(t *testing.T) {
	for _, sites := range [][]string{{"a"}, {"a", "a", "b"}} {
		t.Run(fmt.Sprint(sites), func(t *testing.T) {
			const limit = 6
			s := testSettings(limit)
			s.SessionDuration = 10 * time.Second
			w := newWorld(t, s, sites...)
			people := w.crowd(40, w.spread)
			begin := w.now
			var order []int
			peak := 0
			for range 6000 {
				for i, p := range people {
					came := w.now.Sub(begin) >= time.Duration(i)*500*time.Millisecond
					if !came || p.in || w.now.Before(p.next) {
						continue
					}
					if w.ask(p); p.in {
						order = append(order, i)
					}
					p.next = w.now.Add(5 * time.Second)
				}
				peak = max(peak, w.active(people))
				w.run(50 * time.Millisecond)
			}
			for _, p := range people {
				if !p.in {
					t.Errorf("%s was never let in", p.name)
				}
			}
			// A node of the policy even knows of the others' admissions within a
			// push; until then each may use a part that has gone.
			if over := peak - limit; over > len(sites)-1 {
				t.Errorf("peak of active visitors = %d, the limit is %d", peak, limit)
			}
			late := 0
			for i := range order {
				for j := i + 1; j < len(order); j++ {
					if order[i] > order[j] {
						late++
					}
				}
			}
			pairs := len(order) * (len(order) - 1) / 2
			if float64(late) > 0.1*float64(pairs) {
				t.Errorf("%d of %d pairs were let in against their order", late, pairs)
			}
		})
	}
}

func TestSessionOutlivesItsAnchor(t *testing.T) {
	w := newWorld(t, testSettings(10), "a", "a", "b")
	p := &person{name: "visitor", at: w.nodes[0]}
	if !w.ask(p).Admit {
		t.Fatal("not admitted to an empty room")
	}
	anchor := p.pass.Ticket.Anchor
	w.run(2 * time.Second)
	w.kill(w.nodes[0])
	p.at = w.nodes[2]
	for range 60 { // three sessions
		w.run(3 * time.Second)
		if !w.ask(p).Admit {
			t.Fatalf("the session was lost at %v", w.now)
		}
	}
	if p.pass.Ticket.Anchor == anchor {
		t.Error("the session is still anchored at a node that is gone")
	}
}

// TestSessionOutlivesItsAnchorWhateverTheMoment has the anchor die at each moment
// of a session, and the visitor come back to another node at each later one.
func TestSessionOutlivesItsAnchorWhateverTheMoment(t *testing.T) {
	s := testSettings(10)
	s.SessionDuration = 8 * time.Second
	for dies := 0; dies < 8; dies += 2 {
		for pause := 1; pause <= 7; pause++ {
			w := newWorld(t, s, "a", "a")
			p := &person{name: "visitor", at: w.nodes[0]}
			w.ask(p)
			for range dies {
				w.run(time.Second)
				w.ask(p)
			}
			w.kill(w.nodes[0])
			p.at = w.nodes[1]
			for range 4 {
				w.run(time.Duration(pause) * time.Second)
				if !w.ask(p).Admit {
					t.Errorf("anchor dead after %d s, requests every %d s: the session was lost", dies, pause)
				}
			}
		}
	}
}

func TestReanchoringCountsOneMore(t *testing.T) {
	w := newWorld(t, testSettings(10), "a", "a")
	p := &person{name: "visitor", at: w.nodes[0]}
	w.ask(p)
	w.run(2 * time.Second)
	w.kill(w.nodes[0])
	p.at = w.nodes[1]
	old := p.pass
	for range 20 {
		w.run(time.Second)
		// A browser that does not take up the new cookie is still one visitor.
		if v := p.at.core.order[0].Decide(old, true, w.now); !v.Admit {
			t.Fatal("the session was lost")
		}
	}
	if got := w.nodes[1].core.replica.Own(roomID, w.now).Active; got != 1 {
		t.Errorf("active at the new anchor = %d, want 1", got)
	}
}

func TestSessionsSurviveTheRestartOfTheirNode(t *testing.T) {
	s := testSettings(4)
	w := newWorld(t, s, "a")
	people := w.crowd(6, w.spread)
	for _, p := range people {
		w.ask(p)
		w.run(time.Second)
	}
	w.kill(w.nodes[0])
	w.start(w.nodes[0], s)
	w.run(time.Second)
	for i, p := range people {
		p.next = w.now
		if i < 4 && !w.ask(p).Admit {
			t.Errorf("%s lost the session in a restart", p.name)
		}
	}
	if late := (&person{name: "newcomer", at: w.nodes[0]}); w.ask(late).Admit {
		t.Error("a newcomer was let in although four of four are active")
	}
	// The sessions end; those who waited before the restart come first.
	end := w.now.Add(3 * s.SessionDuration)
	for w.now.Before(end) && (!people[4].in || !people[5].in) {
		w.run(5 * time.Second)
		w.ask(people[4])
		w.ask(people[5])
	}
	if !people[4].in || !people[5].in {
		t.Error("those who waited were never let in after the restart")
	}
}

// TestCutOfTenMinutesHeals cuts the sites apart while visitors come to both, and
// expects one picture soon after.
func TestCutOfTenMinutesHeals(t *testing.T) {
	s := testSettings(1000)
	w := newWorld(t, s, "a", "a", "b", "b")
	people := w.crowd(24, w.spread)
	for _, p := range people[:8] {
		w.ask(p)
	}
	w.run(2 * time.Second)
	w.cut = true
	w.members()
	for minute := range 10 {
		for range 6 {
			w.run(10 * time.Second)
			for i, p := range people {
				if i < 8+minute {
					w.ask(p)
				}
			}
		}
	}
	w.cut = false
	w.members()
	w.run(10 * time.Second)
	want := int64(w.active(people))
	for _, m := range w.nodes {
		if got := m.core.order[0].status().Active; got != want {
			t.Errorf("active at node %d of site %s 10 s after the cut = %d, want %d", m.id[0], m.site, got, want)
		}
	}
	// What was counted stays counted.
	for range 30 {
		w.run(time.Second)
		for _, p := range people[:17] {
			w.ask(p)
		}
		for _, m := range w.nodes {
			if got := m.core.order[0].status().Active; got < want {
				t.Fatalf("active at node %d of site %s went back to %d from %d", m.id[0], m.site, got, want)
			}
		}
	}
}

func TestCookieIsSetRarely(t *testing.T) {
	w := newWorld(t, testSettings(10), "a", "a")
	p := &person{name: "visitor", at: w.nodes[0]}
	w.ask(p)
	for _, at := range w.nodes { // at the anchor, and elsewhere
		p.at = at
		sets := 0
		const requests = 240
		for range requests {
			w.run(500 * time.Millisecond)
			v := w.ask(p)
			if !v.Admit {
				t.Fatal("the session was lost")
			}
			if v.SetPass {
				sets++
			}
		}
		// Two minutes are two sessions: a later end is written each eighth.
		if sets < 8 || sets > 17 {
			t.Errorf("%d of %d answers set a cookie, want about 16", sets, requests)
		}
	}
}

func TestPassRunOutIsAskedForAtTheAnchor(t *testing.T) {
	s := testSettings(10)
	w := newWorld(t, s, "a", "b")
	p := &person{name: "visitor", at: w.nodes[0]}
	w.ask(p)
	old := p.pass
	w.run(s.SessionDuration / 2)
	w.ask(p) // the lease goes on, and the browser loses the answer
	w.run(s.SessionDuration * 3 / 4)
	p.pass, p.at = old, w.nodes[1]
	if v := w.ask(p); !v.Admit || v.Pass.Ticket != old.Ticket || !v.Pass.LeaseEnd.After(w.now) {
		t.Errorf("verdict = %+v, want the same session with a later end", v)
	}
	w.run(s.SessionDuration * 3 / 2)
	if v := w.ask(p); !v.Pass.AcceptedAt.IsZero() && v.Pass.Ticket == old.Ticket {
		t.Errorf("verdict = %+v, want a new session: the old one is over", v)
	}
}

// TestAbsenteesAreNotLetInUncounted keeps a queue from asking until nobody of it
// is counted, and then lets it all come back at once.
func TestAbsenteesAreNotLetInUncounted(t *testing.T) {
	const limit = 6
	s := testSettings(limit)
	s.SessionDuration = 20 * time.Second
	w := newWorld(t, s, "a", "a", "b")
	people := w.crowd(40, w.spread)
	for _, p := range people {
		w.ask(p)
		w.run(100 * time.Millisecond)
	}
	w.run(30 * time.Second)
	peak := 0
	for range 4 {
		for _, p := range people {
			w.ask(p)
			peak = max(peak, w.active(people))
		}
		w.run(5 * time.Second)
	}
	if peak > limit+len(w.nodes)-1 {
		t.Errorf("peak of active visitors = %d, the limit is %d", peak, limit)
	}
	if peak == 0 {
		t.Error("nobody was let in")
	}
}

func TestWaitingPassIsRedeemedOnce(t *testing.T) {
	s := testSettings(1)
	s.SessionDuration = 20 * time.Second
	w := newWorld(t, s, "a")
	first, second := &person{name: "first", at: w.nodes[0]}, &person{name: "second", at: w.nodes[0]}
	w.ask(first)
	w.run(time.Second)
	w.ask(second)
	waiting := second.pass
	for !second.in {
		w.run(5 * time.Second)
		waiting = second.pass
		w.ask(second)
	}
	again := &person{name: "the lost answer", at: w.nodes[0], pass: waiting, has: true}
	if v := again.at.core.order[0].Decide(waiting, true, w.now); !v.Admit || v.Pass.Ticket != second.pass.Ticket {
		t.Errorf("the same pass again got %+v, want the same ticket %+v", v, second.pass.Ticket)
	}
	w.run(time.Second)
	if got := w.nodes[0].core.replica.Own(roomID, w.now).Active; got != 1 {
		t.Errorf("active = %d, want 1", got)
	}
	w.run(s.SessionDuration)
	if v := w.ask(again); v.Admit && v.Pass.Visitor == second.pass.Visitor {
		t.Errorf("the same pass got %+v after its session was over, want a new visitor", v)
	}
}

func TestForeignMessagesChangeNothing(t *testing.T) {
	w := newWorld(t, testSettings(3), "a", "b")
	c := w.nodes[0].core
	stranger := replica.Peer{ID: crdt.NodeID{9}, Boot: 1, Site: "b", Ready: true}
	before := c.order[0].status()
	for kind := range uint8(8) {
		for _, payload := range [][]byte{nil, {0}, {0xdd, 0xff, 0xff, 0xff, 0xff}, []byte("rubbish"), encodeVisits(1, []visit{{visitor: VisitorID{1}, room: roomID, at: w.now, arrival: w.now}})} {
			if kind == kindVisitsAck && len(payload) == 1 {
				continue
			}
			if _, err := c.Receive(stranger, kind, payload, w.now); err == nil {
				t.Errorf("message of kind %d with %q was accepted", kind, payload)
			}
		}
	}
	w.run(time.Second)
	if after := c.order[0].status(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("status = %+v, want %+v", after, before)
	}
}
