package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
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

	catalog  bool         // rooms follow what operators set
	leaveOut ticket.Rules // rules that nodes go without
	limits   []limit.Rule // of the configuration of each node
	remember bool         // nodes keep a history
	restless bool         // rooms never sleep
	rests    bool         // nodes tick as seldom as they may
	keys     bool         // data directories have keys
	clocks   bool         // nodes compare theirs, and refuse what is of a time to come

	more []room.Settings   // further rooms, kept by all
	lose func(letter) bool // messages that do not arrive; nil: none
	note func(what ...any) // what nodes say, for comparing runs; nil: nowhere

	// fate, if there is one, says after what delays a message arrives: never, once
	// or more than once.
	fate func(from, to *machine, m Message) []time.Duration

	// cutOff says that two nodes cannot reach each other; nil: cut decides.
	cutOff func(a, b *machine) bool
}

// machine is one node; core is nil while it is down.
type machine struct {
	id       crdt.NodeID
	site     string
	name     string
	boot     uint64
	core     *Core
	snapshot []byte
	next     time.Time
	ahead    time.Duration // of its clock
	stopped  bool          // as SIGSTOP does: others see it go, and what they send waits
	found    bool          // begins the mesh
	mesh     bootstrap.Disk
	bare     bool // is started without rooms
	named    bool // somebody chose its id
	disk     disk
}

type letter struct {
	at       time.Time
	from, to crdt.NodeID
	m        Message
}

var roomID = crdt.RoomID{7}

func testSettings(total int) room.Settings {
	s := room.Settings{
		ID: roomID, Name: "test", Path: "/", TotalActiveUsers: total, NewUsersPerMinute: 10_000,
		SessionDuration: 60 * time.Second, QueueingMethod: room.FIFO, Policy: room.Even,
		RefreshInterval: 5 * time.Second, BucketSpan: 12 * time.Second,
	}
	return s.WithDefaults()
}

// newWorld starts a node per named site and lets the mesh settle.
func newWorld(t *testing.T, s room.Settings, sites ...string) *world {
	t.Helper()
	return newWorldOf(t, []room.Settings{s}, sites...)
}

// newWorldOf is newWorld with several rooms.
func newWorldOf(t *testing.T, rooms []room.Settings, sites ...string) *world {
	t.Helper()
	w := newStoppedWorld(t)
	w.more = rooms[1:]
	w.begin(rooms[0], sites...)
	return w
}

func newStoppedWorld(t testing.TB) *world {
	single.Goroutine(t)
	return &world{t: t, now: time.Unix(1_700_000_000, 0), rng: rand.New(rand.NewPCG(1, 2)), delay: 2 * time.Millisecond}
}

// begin starts a node per named site and lets the mesh settle.
func (w *world) begin(s room.Settings, sites ...string) {
	w.t.Helper()
	for i, site := range sites {
		m := &machine{id: crdt.NodeID{byte(i + 1), 0xaa}, site: site, found: i == 0}
		w.nodes = append(w.nodes, m)
		w.start(m, s)
	}
	w.run(3 * time.Second)
	for _, m := range w.nodes {
		if !m.core.Ready() {
			w.t.Fatalf("node %s is not ready after 3 s", m.id)
		}
	}
}

func (w *world) start(m *machine, s room.Settings) {
	w.t.Helper()
	m.boot++
	rooms := append([]room.Settings{s}, w.more...)
	if m.bare {
		rooms = nil
	}
	var follow *Cataloging
	if w.catalog {
		follow = &Cataloging{}
	}
	var keep *history.Config
	if w.remember {
		keep = &history.Config{}
	}
	var key []byte
	if w.keys {
		key = []byte{m.id[0], 1}
	}
	core, err := NewCore(CoreConfig{
		Key:    key,
		Limits: w.limits, LimitMemory: 1 << 20,
		History: keep, Catalog: follow, Self: crdt.Incarnation{Node: m.id, Boot: m.boot}, Site: m.site, Name: m.name, Rooms: rooms,
		OwnerKey: []byte("key"), Rand: rand.New(rand.NewPCG(uint64(m.id[0]), m.boot)),
		Entropy:  rand.NewChaCha8([32]byte{m.id[0], byte(m.boot)}),
		LeaveOut: w.leaveOut, Stored: m.disk.content(), Found: m.found, Mesh: m.mesh, Named: m.named,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if m.snapshot != nil {
		if err := core.Restore([][]byte{m.snapshot}, w.at(m)); err != nil {
			w.t.Fatal(err)
		}
	}
	core.naps.never = w.restless
	m.core = core
	w.members()
}

// kill stops a node as kill -9 does; the last state on disk stays.
func (w *world) kill(m *machine) {
	snapshot, err := m.core.AppendSnapshot(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	m.snapshot, m.core = snapshot, nil
	m.disk.crash()
	w.members()
}

// members tells every node who lives.
func (w *world) members() {
	for _, m := range w.nodes {
		if m.core == nil || m.stopped {
			continue
		}
		var peers []replica.Peer
		for _, o := range w.nodes {
			if o != m && o.core != nil && !o.stopped && !w.apart(o, m) {
				peers = append(peers, replica.Peer{ID: o.id, Boot: o.boot, Site: o.site, Ready: o.core.Ready()})
			}
		}
		m.core.SetPeers(peers, w.at(m))
		w.compareClocks(m, peers)
	}
}

func (w *world) run(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(10 * time.Millisecond) {
		w.deliver()
		ready := w.ready()
		for _, m := range w.nodes {
			if m.core != nil && !m.stopped && !w.now.Before(m.next) {
				m.next = w.now.Add(tickInterval)
				w.post(m, m.core.Tick(w.at(m)))
				if w.rests && m.core.Rests() {
					m.next = w.now.Add(restInterval)
				}
			} else if soon := w.now.Add(tickInterval); m.core != nil && w.rests && m.next.After(soon) && !m.core.idle() {
				m.next = soon
			} else if m.core != nil && !m.stopped && m.disk.batch != nil {
				w.post(m, nil)
			}
		}
		if w.ready() != ready {
			w.members()
		}
	}
}

// at returns what a node's clock shows.
func (w *world) at(m *machine) time.Time { return w.now.Add(m.ahead) }

// compareClocks tells a node how its clock stands to those of its peers.
func (w *world) compareClocks(m *machine, peers []replica.Peer) {
	if !w.clocks || len(peers) == 0 {
		return
	}
	var offsets []time.Duration
	for _, p := range peers {
		offsets = append(offsets, w.machine(p.ID).ahead-m.ahead)
	}
	ahead := -middle(offsets)
	w.post(m, m.core.SetClock(ahead.Abs() <= MaxClockOffset, ahead, w.at(m)))
}

// apart reports whether two nodes cannot reach each other.
func (w *world) apart(a, b *machine) bool {
	return w.cut && a.site != b.site || w.cutOff != nil && w.cutOff(a, b)
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
	out = append(out, w.write(m)...)
	for _, o := range out {
		if w.note != nil {
			w.note("message", m.id, o.To, o.Kind, o.Slot, o.Payload)
		}
		delays := []time.Duration{w.delay}
		if to := w.machine(o.To); w.fate != nil && to != nil {
			delays = w.fate(m, to, o)
		}
		for _, d := range delays {
			w.air = append(w.air, letter{w.now.Add(d), m.id, o.To, o})
		}
	}
}

func (w *world) deliver() {
	due := w.air
	w.air = nil
	for _, l := range due {
		if to := w.machine(l.to); l.at.After(w.now) || to != nil && to.stopped {
			w.air = append(w.air, l)
			continue
		}
		from, to := w.machine(l.from), w.machine(l.to)
		if to == nil || to.core == nil || w.apart(from, to) || w.lose != nil && w.lose(l) {
			continue
		}
		w.receive(from, to, l.m)
	}
}

// receive gives a node a message at once.
func (w *world) receive(from, to *machine, m Message) {
	out, err := to.core.Receive(replica.Peer{ID: from.id, Boot: from.boot, Site: from.site, Ready: true}, m.Kind, m.Payload, w.at(to))
	if err != nil && (!w.clocks || !errors.Is(err, crdt.ErrAhead)) && (!w.keys || !errors.Is(err, replica.ErrForged)) {
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

// decide has a node answer a request. Time goes on while it asks another.
func (w *world) decide(m *machine, p Pass, known bool) Verdict {
	w.t.Helper()
	var later []Verdict
	v, ok := m.core.Route("shop", "/").Begin(p, known, w.now, func(v Verdict) { later = append(later, v) })
	if ok {
		return v
	}
	w.post(m, m.core.Flush(w.now))
	for end := w.now.Add(5 * time.Second); len(later) == 0 && w.now.Before(end); {
		w.run(10 * time.Millisecond)
	}
	if len(later) != 1 {
		w.t.Fatalf("%d answers to one request after 5 s", len(later))
	}
	return later[0]
}

// ask sends one request to the person's node and takes the cookie.
func (w *world) ask(p *person) Verdict {
	w.t.Helper()
	if p.at.core == nil {
		w.t.Fatalf("%s asks a node that is down", p.name)
	}
	v := w.decide(p.at, p.pass, p.has)
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
